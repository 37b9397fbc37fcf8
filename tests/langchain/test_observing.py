"""What a search leaves in the log and in a trace."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from homing.errors import ProviderUnavailable, RetrievalFailed
from tests.langchain.places import Place, StorePlace, TablePlace, Text, shared_place

TEXTS = [Text(f"退款政策 refund 第{n}条", f"{n}.md") for n in range(4)]


def records(caplog: pytest.LogCaptureFixture, start: str) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.getMessage().startswith(start)]


def test_a_search_is_one_record_with_its_figures_as_fields(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS)
    retriever = place.retriever(1, min_similarity=-1.0)
    with caplog.at_level(logging.INFO, "homing.langchain"):
        found = retriever.invoke("退款政策 refund")
    (record,) = records(caplog, "混合检索完成")
    fields = record.__dict__
    assert fields["query"] == "退款政策 refund"
    assert fields["keywords"] == ["退款", "退款政策", "政策", "refund"]
    assert (fields["vector_count"], fields["keyword_count"], fields["result_count"]) == (4, 4, 4)
    assert fields["top_results"] == [
        {"fileName": one.metadata["fileName"], "score": round(one.metadata["score"], 6)} for one in found[:3]
    ]
    assert fields["user_id"] == 1
    assert (fields["degraded"], fields["reason"]) == (False, None)
    for name in ("vector_ms", "keyword_ms", "fusion_ms", "total_ms"):
        assert fields[name] >= 0
    assert "退款政策" in record.getMessage()


def test_what_people_ask_can_be_kept_out_of_logs_and_traces(
    place: Place, caplog: pytest.LogCaptureFixture, spans: InMemorySpanExporter
) -> None:
    place.add(1, TEXTS)
    with caplog.at_level(logging.DEBUG):
        place.retriever(1, log_query=False).invoke("退款政策")
        place.retriever(1, log_query=False).invoke("的")
    (record, _) = records(caplog, "混合检索完成")
    assert "query" not in record.__dict__
    assert "keywords" not in record.__dict__
    ours = [one for one in caplog.records if one.name.startswith("homing")]
    assert not any("退款" in json.dumps(one.__dict__, default=str, ensure_ascii=False) for one in ours)
    assert not any("退款" in str(dict(one.attributes or {})) for one in spans.get_finished_spans())


def test_a_failure_does_not_tell_what_people_ask(table: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
    retriever = table.retriever(1, log_query=False)
    table.engine.drop_table(table.name)
    with caplog.at_level(logging.DEBUG, "homing"), pytest.raises(RetrievalFailed):
        retriever.invoke("退款政策")
    assert "知识库检索失败" in caplog.text
    assert "退款" not in caplog.text


def test_a_slow_search_is_a_warning(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS)
    place.retriever(1, slow_ms=60_000).invoke("退款")
    assert records(caplog, "混合检索耗时过长") == []
    place.embedder.delay = 0.55
    place.retriever(1).invoke("退款")
    (record,) = records(caplog, "混合检索耗时过长")
    assert record.levelno == logging.WARNING
    assert record.__dict__["total_ms"] > 500


def test_debugging_shows_the_steps_and_the_sql_of_the_keyword_leg(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.add(1, TEXTS)
    retriever = place.retriever(1)
    with caplog.at_level(logging.DEBUG, "homing"):
        retriever.invoke("退款")
    (steps,) = records(caplog, "混合检索步骤耗时")
    steps_of = {"vector_ms", "keyword_ms", "fusion_ms", "similarity_ms", "total_ms"}
    assert set(steps.__dict__["timings"]) == steps_of
    (statement,) = [one.__dict__["sql"] for one in caplog.records if "ILIKE" in one.__dict__.get("sql", "")]
    user = "r.user_id = %s" if isinstance(place, StorePlace) else "->> 'userId' = CAST(:owner AS text)"
    assert user in statement
    assert "退款" not in statement


def test_debugging_shows_what_the_keyword_leg_of_a_file_reads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = shared_place("sqlite", tmp_path)
    place.add(1, TEXTS)
    with caplog.at_level(logging.DEBUG, "homing"):
        place.retriever(1).invoke("退款")
    (line,) = [one.message for one in caplog.records if one.name.endswith("sqlite.words")]
    assert line == "3 terms in 1 segments of collection 1"
    place.close()


def test_weights_that_do_not_add_up_are_used_and_remarked_upon(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.add(1, TEXTS[:1])
    found = place.retriever(1, {"vectorWeight": 0.6, "keywordWeight": 0.6}).invoke("退款")
    assert [one.message for one in records(caplog, "权重")] == ["权重总和不为 1，建议调整"]
    assert found[0].metadata["score"] == pytest.approx(0.6 / 61 + 0.6 / 61)
    caplog.clear()
    place.retriever(1, vector_weight=0.8, keyword_weight=0.2)
    assert records(caplog, "权重") == []


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


def test_a_search_is_a_span_with_its_legs_as_children(place: Place, spans: InMemorySpanExporter) -> None:
    place.add(1, TEXTS)
    with trace.get_tracer("caller").start_as_current_span("request"):
        place.retriever(1, limit=2).invoke("退款政策")
    by_name = {one.name: one for one in spans.get_finished_spans()}
    whole = by_name["homing.hybrid_search"]
    assert whole.parent is not None
    assert whole.parent.span_id == by_name["request"].context.span_id
    for name in ("homing.vector_search", "homing.keyword_search", "homing.rrf_fusion"):
        parent = by_name[name].parent
        assert parent is not None
        assert parent.span_id == whole.context.span_id
    assert whole.attributes is not None
    assert whole.attributes["homing.query"] == "退款政策"
    assert whole.attributes["homing.results"] == 2
    assert (by_name["homing.keyword_search"].attributes or {})["homing.results"] == 4


async def test_an_asynchronous_search_is_a_child_of_its_caller(table: TablePlace, spans: InMemorySpanExporter) -> None:
    table.add(1, TEXTS)
    with trace.get_tracer("caller").start_as_current_span("request") as request:
        await table.retriever(1).ainvoke("退款政策")
    (whole,) = [one for one in spans.get_finished_spans() if one.name == "homing.hybrid_search"]
    assert whole.parent is not None
    assert whole.parent.span_id == request.get_span_context().span_id


def test_what_fails_is_recorded_on_its_span(place: Place, spans: InMemorySpanExporter) -> None:
    place.add(1, TEXTS)
    place.embedder.fail_with = ProviderUnavailable("the embedding API is down")
    place.retriever(1).invoke("退款")
    (leg,) = [one for one in spans.get_finished_spans() if one.name == "homing.vector_search"]
    assert leg.status.status_code is trace.StatusCode.ERROR
    assert leg.events[0].name == "exception"
    (whole,) = [one for one in spans.get_finished_spans() if one.name == "homing.hybrid_search"]
    assert (whole.attributes or {})["homing.degraded"] is True


def test_a_search_that_fails_altogether_is_an_error_on_its_span(store: StorePlace, spans: InMemorySpanExporter) -> None:
    retriever = store.retriever(1)
    store.store.close()
    with pytest.raises(RetrievalFailed):
        retriever.invoke("退款")
    (whole,) = [one for one in spans.get_finished_spans() if one.name == "homing.hybrid_search"]
    assert whole.status.status_code is trace.StatusCode.ERROR


@pytest.mark.slow
def test_without_opentelemetry_nothing_is_traced_and_everything_works() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from homing.langchain import journal as tracing\n"
        "assert tracing.trace is None\n"
        "with tracing.span('homing.hybrid_search', query='q') as note: note(a=1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
