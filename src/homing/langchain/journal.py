"""What a search leaves behind: in the log one record when it is done, with its figures as fields, and what went wrong;
and spans for OpenTelemetry, where its API is installed.

The texts are those of the specification. Every record carries its figures as attributes (`extra`), so that a formatter
for machines finds them without reading the text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from homing.langchain.options import HybridRetrieverOptions
from homing.legs import Outcome
from homing.records import Leg, Retrieved

try:
    from opentelemetry import trace
except ModuleNotFoundError:
    trace = None  # type: ignore[assignment]

log = logging.getLogger("homing.langchain")

DEGRADED: Mapping[Leg, str] = {
    "vector": "向量检索失败，使用关键词检索降级",
    "keyword": "关键词检索失败，使用向量检索降级",
}
FAILED: Mapping[Leg, str] = {"vector": "向量检索失败", "keyword": "关键词检索失败"}
BOTH_FAILED = "知识库检索失败"
UNBALANCED = "权重总和不为 1，建议调整"
NO_KEYWORDS = "未提取到关键词，仅使用向量检索"
SLOW = "混合检索耗时过长"
DONE = "混合检索完成"
TOP = 3
FILE_KEYS = ("fileName", "file_name", "filename", "source")
"""Where the name of a file stands in the metadata; the first that is there counts."""


@contextmanager
def span(name: str, **facts: Any) -> Iterator[Callable[..., None]]:
    """A span around a block, a child of the current one, and what takes facts about it while it runs.

    What the block raises is recorded on it and passed on.
    """
    if trace is None:
        yield lambda **facts: None
        return
    with trace.get_tracer("homing").start_as_current_span(name) as current:

        def note(**facts: Any) -> None:
            current.set_attributes({f"homing.{key}": value for key, value in facts.items()})

        note(**facts)
        yield note


def file_name(metadata: Mapping[str, Any]) -> str | None:
    """The file that a document came from; None where its metadata does not tell."""
    return next((str(metadata[key]) for key in FILE_KEYS if metadata.get(key) is not None), None)


def unbalanced(options: HybridRetrieverOptions) -> None:
    """Say so where the weights do not add up to 1; they are used as they are."""
    if abs(options.vector_weight + options.keyword_weight - 1) > 1e-9:
        weights = {"vector_weight": options.vector_weight, "keyword_weight": options.keyword_weight}
        log.warning(UNBALANCED, extra=weights)


def no_keywords(options: HybridRetrieverOptions, query: str, user_id: int | str) -> None:
    """Say that the query has no words to look for."""
    log.warning(NO_KEYWORDS, extra={"user_id": user_id} | ({"query": query} if options.log_query else {}))


def failed(options: HybridRetrieverOptions, outcomes: Mapping[Leg, Outcome[Any]], user_id: int | str) -> None:
    """Say which legs failed and how; the other's answer then stands alone."""
    # A traceback shows what drivers say, and they quote the values of a statement.
    traced = options.log_query
    broken = {leg: outcome for leg, outcome in outcomes.items() if not outcome.ok}
    for leg, outcome in broken.items():
        fields = {"user_id": user_id, "leg": leg, "code": outcome.code, "elapsed_ms": outcome.milliseconds}
        cause = outcome.error if traced else None
        log.error("%s: %s", FAILED[leg], _described(outcome.error), exc_info=cause, extra=fields)
    if len(broken) == len(outcomes):
        _gave_up({leg: _described(outcome.error) for leg, outcome in broken.items()}, user_id)
        return
    for leg, outcome in broken.items():
        log.warning(DEGRADED[leg], extra={"user_id": user_id, "leg": leg, "code": outcome.code})


def unreadable(error: Exception, user_id: int | str) -> None:
    """Say that what the legs found could not be read."""
    _gave_up({"read": _described(error)}, user_id)


def _gave_up(causes: Mapping[str, str], user_id: int | str) -> None:
    listed = "; ".join(f"{leg}: {text}" for leg, text in causes.items())
    log.error("%s: %s", BOTH_FAILED, listed, extra={"user_id": user_id, "causes": causes})


def done(
    options: HybridRetrieverOptions,
    query: str,
    keywords: Sequence[str],
    found: Mapping[Leg, int],
    answer: Retrieved,
    user_id: int | str,
) -> None:
    """Say what was found and how long each step took, and warn where it took too long."""
    timings = {name: round(value, 2) for name, value in answer.timings.items()}
    top = [{"fileName": file_name(hit.metadata) or hit.id, "score": round(hit.fused, 6)} for hit in answer.hits[:TOP]]
    fields: dict[str, Any] = {
        "user_id": user_id,
        "vector_count": found.get("vector", 0),
        "keyword_count": found.get("keyword", 0),
        "result_count": len(answer),
        "top_results": top,
        "degraded": answer.degraded,
        "reason": answer.reason,
        **timings,
    }
    if options.log_query:
        fields |= {"query": query, "keywords": list(keywords)}
    asked = f"查询={query!r} 关键词={list(keywords)} " if options.log_query else ""
    log.info(
        "%s: %s向量结果=%d 关键词结果=%d 返回=%d 前三=%s "
        "向量耗时=%.1fms 关键词耗时=%.1fms 融合耗时=%.1fms 总耗时=%.1fms",
        DONE, asked, fields["vector_count"], fields["keyword_count"], len(answer), top,
        *(timings.get(name, 0.0) for name in ("vector_ms", "keyword_ms", "fusion_ms", "total_ms")),
        extra=fields,
    )  # fmt: skip
    log.debug("混合检索步骤耗时: %s", timings, extra={"timings": timings, "user_id": user_id})
    if timings["total_ms"] > options.slow_ms:
        log.warning("%s: %.0f ms > %.0f ms", SLOW, timings["total_ms"], options.slow_ms, extra=fields)


def _described(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}"
