"""As a part of LangChain: its own test suites, chains, callbacks, configuration, batches, serialisation."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_tests.integration_tests import EmbeddingsIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from homing.errors import InvalidArgument, ProviderUnavailable
from homing.langchain import HomingEmbeddings, HybridRetriever, HybridRetrieverOptions
from homing.testing.fake import FakeEmbedder
from tests.effort import SOAK
from tests.forked import run_python
from tests.langchain.places import Place, StorePlace, Text, shared_place

TEXTS = [Text(f"退款政策 refund policy 第{n}条", f"{n}.md") for n in range(6)] + [Text("猫在睡觉", "猫.md")]


@pytest.fixture
def filled(place: Place) -> Place:
    place.add(1, TEXTS)
    return place


class OnAPlace(RetrieversIntegrationTests):
    """LangChain's suite for retrievers, on every kind of store and on a table."""

    place: Place

    @pytest.fixture(autouse=True, params=["sqlite", "lance", "store", "table"] if SOAK else ["sqlite", "table"])
    def _filled(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
        if request.param in ("sqlite", "lance"):
            self.place = shared_place(request.param, tmp_path)
        else:
            self.place = request.getfixturevalue(request.param)
        self.place.add(1, TEXTS)
        yield
        if request.param in ("sqlite", "lance"):
            self.place.close()

    @property
    def retriever_constructor(self) -> type[HybridRetriever]:
        return HybridRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        made = self.place.retriever(1)
        return {"vector_store": made.vector_store, "user_id": 1, "embeddings": made.embeddings}

    @property
    def retriever_query_example(self) -> str:
        return "退款政策"


class TestStandard(OnAPlace):
    """By the name that LangChain's retrievers have for the number of results, `k`."""


class TestStandardByLimit(OnAPlace):
    """By the name that specification 004 has for it."""

    @property
    def num_results_arg_name(self) -> str:
        return "limit"


class Ours:
    """What LangChain's suites for embeddings are to try."""

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return HomingEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"provider": FakeEmbedder()}


class TestEmbeddings(Ours, EmbeddingsUnitTests):
    """LangChain's suite for embeddings."""


class TestEmbedding(Ours, EmbeddingsIntegrationTests):
    """And the one that embeds."""


def test_it_is_a_retriever_of_the_namespace_that_its_users_know() -> None:
    assert issubclass(HybridRetriever, BaseRetriever)
    assert HybridRetriever.get_lc_namespace() == ["mirror", "retrievers"]
    assert HybridRetriever.lc_id() == ["mirror", "retrievers", "HybridRetriever"]


def test_it_is_the_first_part_of_a_chain(filled: Place) -> None:
    prompt = ChatPromptTemplate.from_template("资料：\n{context}\n\n问题：{question}")
    seen: list[str] = []

    def model(messages: Any) -> str:
        seen.append(messages.to_string())
        return "七天内"

    chain = (
        {
            "context": filled.retriever(1, limit=2) | (lambda found: "\n".join(one.page_content for one in found)),
            "question": RunnablePassthrough(),
        }
        | prompt
        | RunnableLambda(model)
        | StrOutputParser()
    )
    assert chain.invoke("退款政策") == "七天内"
    assert seen[0].count("退款政策 refund policy") == 2


async def test_it_serves_a_retrieval_chain(filled: Place) -> None:
    prompt = ChatPromptTemplate.from_template("{context}\n\n{input}")
    model = FakeListChatModel(responses=["第一", "第二", "第三"])
    chain = create_retrieval_chain(filled.retriever(1, limit=3), create_stuff_documents_chain(model, prompt))
    answer = chain.invoke({"input": "退款政策"})
    assert answer["answer"] == "第一"
    assert [type(one) for one in answer["context"]] == [Document] * 3
    assert (await chain.ainvoke({"input": "退款政策"}))["answer"] == "第二"
    pieces = list(chain.stream({"input": "退款政策"}))
    assert any("context" in piece for piece in pieces)


class OnSearch(BaseCallbackHandler):
    """Writes down what a retriever tells."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.found: list[int] = []
        self.failed: list[BaseException] = []

    def on_retriever_start(self, serialized: Any, query: str, **more: Any) -> None:
        self.started.append({"query": query, **more})

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **more: Any) -> None:
        self.found.append(len(documents))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self.failed.append(error)


async def test_callbacks_tags_and_metadata_are_heard(filled: Place) -> None:
    heard = OnSearch()
    retriever = filled.retriever(1, limit=2, tags=["kb"], metadata={"team": "search"})
    retriever.invoke("退款政策", config={"callbacks": [heard], "tags": ["once"], "run_name": "知识库"})
    (start,) = heard.started
    assert (start["query"], start["name"]) == ("退款政策", "知识库")
    assert set(start["tags"]) == {"kb", "once"}
    assert start["metadata"]["team"] == "search"
    await retriever.with_config(callbacks=[heard], tags=["bound"]).ainvoke("退款政策")
    assert "bound" in heard.started[1]["tags"]
    assert heard.found == [2, 2]
    with pytest.raises(InvalidArgument):
        retriever.invoke("退款", config={"callbacks": [heard]}, nonsense=1)
    assert len(heard.failed) == 1


async def test_batches_keep_their_order(filled: Place) -> None:
    retriever = filled.retriever(1, limit=1)
    queries = ["猫在睡觉", "退款政策", "猫", "refund"] * 5
    expected = ["猫.md", None, "猫.md", None] * 5
    for answers in (retriever.batch(queries), await retriever.abatch(queries)):
        names = [found[0].metadata["fileName"] for found in answers]
        assert [name if name == "猫.md" else None for name in names] == expected


async def test_events_are_streamed(filled: Place) -> None:
    retriever = filled.retriever(1, limit=1)
    events = [event["event"] async for event in retriever.astream_events("退款政策", version="v2")]
    assert events[0] == "on_retriever_start"
    assert events[-1] == "on_retriever_end"


def test_it_can_be_configured_at_run_time_and_have_a_fallback(filled: Place) -> None:
    retriever = filled.retriever(1)
    flexible = retriever.configurable_fields(options=ConfigurableField(id="options"))
    few = HybridRetrieverOptions(limit=1)
    assert len(flexible.with_config(configurable={"options": few}).invoke("退款政策")) == 1
    assert len(flexible.invoke("退款政策")) == 5
    filled.embedder.fail_with = ProviderUnavailable("down")
    backup: RunnableLambda[str, list[Document]] = RunnableLambda(lambda query: [Document("backup")])
    assert len(retriever.with_fallbacks([backup]).invoke("退款政策")) == 5, "one leg is enough"


def test_options_are_taken_in_both_spellings_and_as_keyword_arguments(filled: Place) -> None:
    camel = {"limit": 3, "minSimilarity": 0.2, "rrfK": 10, "vectorWeight": 0.6, "keywordWeight": 0.4}
    snake = {"limit": 3, "min_similarity": 0.2, "rrf_k": 10, "vector_weight": 0.6, "keyword_weight": 0.4}
    expected = HybridRetrieverOptions(**snake)
    assert filled.retriever(1, camel).options == filled.retriever(1, snake).options == expected
    assert filled.retriever(1, **camel).options == filled.retriever(1, **snake).options == expected
    assert filled.retriever(1, {"limit": 9, "rrfK": 10}, limit=3).options == HybridRetrieverOptions(limit=3, rrf_k=10)
    assert filled.retriever(1, expected).options is expected


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_documents_are_serialised_and_come_back_the_same(filled: Place) -> None:
    found = filled.retriever(1).invoke("退款政策")
    assert loads(dumps(found), allowed_objects="core") == found
    assert pickle.loads(pickle.dumps(found)) == found
    json.dumps([one.metadata for one in found])


def test_what_is_told_of_a_retriever_holds_no_password(filled: Place) -> None:
    retriever = filled.retriever(1)
    told = dumpd(retriever)
    assert told["type"] == "not_implemented", "a live connection is never rebuilt from JSON"
    url = filled.store.address.url if isinstance(filled, StorePlace) else filled.url  # type: ignore[attr-defined]
    password = url.split("@")[0].rsplit(":", 1)[-1]
    assert password not in json.dumps(told) + repr(retriever) + str(retriever)


class Words(Embeddings):
    """Embeddings that can be sent to another process."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return HomingEmbeddings(FakeEmbedder(128)).embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.slow
def test_a_retriever_works_in_the_process_it_is_sent_to(store: StorePlace, tmp_path: Path) -> None:
    places: list[Place] = [store, *(shared_place(kind, tmp_path / "data") for kind in ("sqlite", "lance"))]
    for place in places:
        place.add(1, TEXTS)
    retrievers = [place.retriever(1, {"limit": 2}, embeddings=Words(), tags=["kb"]) for place in places]
    (tmp_path / "sent").write_bytes(pickle.dumps(retrievers))
    code = (
        "import pickle, sys\n"
        f"for retriever in pickle.load(open({str(tmp_path / 'sent')!r}, 'rb')):\n"
        "    assert retriever.tags == ['kb'] and retriever.user_id == 1\n"
        "    print([one.metadata['fileName'] for one in retriever.invoke('退款政策')])"
    )
    done = run_python(["-c", code])
    here = [str([one.metadata["fileName"] for one in retriever.invoke("退款政策")]) for retriever in retrievers]
    assert done.stdout.splitlines() == here, done.stderr
    for place in places[1:]:
        place.close()
