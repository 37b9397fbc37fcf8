"""Seed 004, the hybrid retriever: failures, speed, logs, weights, edges and the whole chain; one test per scenario."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate

from homing.errors import ProviderUnavailable, RetrievalFailed
from homing.knowledge import CHUNKS, KnowledgeBase
from homing.langchain import HomingEmbeddings, HybridRetriever, extract_keywords, merge_results_with_rrf
from homing.stores.postgres.store import PostgresStore
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.langchain.places import TablePlace, Text
from tests.langchain.waiting import Waiting
from tests.seeds.test_seed_004_retriever import named

REFUND = Text("退款政策：七天内可以申请退款", "退款.md")
SHIPPING = Text("物流说明：下单后两天发货", "物流.md")


@pytest.fixture
def place(database: Database) -> Iterator[TablePlace]:
    made = TablePlace(database)
    yield made
    made.close()


def said(caplog: pytest.LogCaptureFixture, level: int, start: str) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.levelno == level and one.getMessage().startswith(start)]


class TestFailures:
    """异常处理."""

    def test_both_searches_fail(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """两个检索都失败."""
        retriever = place.retriever(1)
        place.embedder.fail_with = ProviderUnavailable("the model is away")
        place.engine.drop_table(place.name)
        with pytest.raises(RetrievalFailed, match="知识库检索失败") as caught:
            retriever.invoke("退款")
        assert caught.value.code == "RETRIEVAL_FAILED"
        assert caught.value.message == "知识库检索失败"
        told = said(caplog, logging.ERROR, "知识库检索失败")[-1].getMessage()
        assert "the model is away" in told
        assert place.name in told

    def test_one_search_fails(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """部分检索失败."""
        place.add(1, [REFUND, SHIPPING])
        place.embedder.fail_with = ProviderUnavailable("the model is away")
        assert [one.metadata["fileName"] for one in place.retriever(1).invoke("申请退款")] == ["退款.md"]
        (record,) = said(caplog, logging.WARNING, "向量")
        assert record.getMessage() == "向量检索失败，使用关键词检索降级"


class TestSpeed:
    """性能优化."""

    def test_searches_run_in_parallel(self, place: TablePlace, database: Database) -> None:
        """并行执行检索: the vector leg goes on only when it sees the keyword leg at work."""
        place.add(1, [REFUND])
        place.retriever(1).invoke("退款")
        with Waiting(database, place.name) as lock:

            class Watching(Embeddings):
                def embed_documents(self, texts: list[str]) -> list[list[float]]:
                    return [self.embed_query(text) for text in texts]

                def embed_query(self, text: str) -> list[float]:
                    lock.waiting(1)
                    lock.release()
                    return HomingEmbeddings(place.embedder).embed_query(text)

            answer = place.retriever(1, embeddings=Watching(), deadline=30.0).retrieve("退款政策")
        assert not answer.degraded
        assert {share.leg for share in answer[0].legs} == {"vector", "keyword"}

    def test_the_number_of_results_is_limited(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """限制检索数量."""
        place.add(1, [Text(f"退款 {n}") for n in range(40)])
        with caplog.at_level(logging.INFO, "homing.langchain"):
            assert len(place.retriever(1, limit=3, min_similarity=-1.0).invoke("退款")) == 3
        (record,) = said(caplog, logging.INFO, "混合检索完成")
        assert (record.__dict__["vector_count"], record.__dict__["keyword_count"]) == (6, 6)

    def test_timings_are_logged(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """记录检索耗时."""
        place.add(1, [REFUND])
        retriever = place.retriever(1)
        with caplog.at_level(logging.INFO, "homing.langchain"):
            retriever.invoke("退款")
        (record,) = said(caplog, logging.INFO, "混合检索完成")
        assert all(record.__dict__[name] >= 0 for name in ("vector_ms", "keyword_ms", "fusion_ms", "total_ms"))
        # On a busy machine the first may be slow as well, and says so then only.
        assert bool(said(caplog, logging.WARNING, "混合检索耗时过长")) == (record.__dict__["total_ms"] > 500)
        caplog.clear()
        place.embedder.delay = 0.52
        retriever.invoke("退款")
        (slow,) = said(caplog, logging.WARNING, "混合检索耗时过长")
        assert slow.__dict__["total_ms"] > 500


class TestLogs:
    """日志和可观测性."""

    def test_details_of_a_search(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """记录检索详情."""
        place.add(1, [REFUND, SHIPPING, *[Text(f"退款 附录{n}", f"附录{n}.md") for n in range(3)]])
        with caplog.at_level(logging.INFO, "homing.langchain"):
            found = place.retriever(1).invoke("退款政策")
        (record,) = said(caplog, logging.INFO, "混合检索完成")
        fields = record.__dict__
        assert (fields["query"], fields["keywords"]) == ("退款政策", extract_keywords("退款政策"))
        assert fields["result_count"] == len(found)
        assert fields["vector_count"] >= 1
        assert fields["keyword_count"] == 4
        assert [one["fileName"] for one in fields["top_results"]] == [one.metadata["fileName"] for one in found[:3]]
        assert all(one["score"] > 0 for one in fields["top_results"])

    def test_performance_figures_in_debug_mode(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """记录性能指标."""
        place.add(1, [REFUND])
        with caplog.at_level(logging.DEBUG, "homing.langchain"):
            place.retriever(1).invoke("退款")
        (steps,) = said(caplog, logging.DEBUG, "混合检索步骤耗时")
        assert set(steps.__dict__["timings"]) >= {"vector_ms", "keyword_ms", "fusion_ms", "total_ms"}
        assert len([one for one in caplog.records if "ILIKE" in one.__dict__.get("sql", "")]) == 1


class TestWeights:
    """可配置权重."""

    def test_default_weights(self, place: TablePlace) -> None:
        """使用默认权重."""
        place.add(1, [REFUND])
        (found,) = place.retriever(1).invoke("退款政策")
        assert found.metadata["score"] == pytest.approx(0.7 / 61 + 0.3 / 61)

    def test_custom_weights(self, place: TablePlace) -> None:
        """自定义权重."""
        place.add(1, [REFUND])
        (found,) = place.retriever(1, {"vectorWeight": 0.8, "keywordWeight": 0.2}).invoke("退款政策")
        assert found.metadata["score"] == pytest.approx(0.8 / 61 + 0.2 / 61)

    def test_validation_of_weights(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """权重验证."""
        place.add(1, [REFUND])
        (found,) = place.retriever(1, {"vectorWeight": 0.6, "keywordWeight": 0.6}).invoke("退款政策")
        assert found.metadata["score"] == pytest.approx(1.2 / 61)
        (record,) = said(caplog, logging.WARNING, "权重")
        assert record.getMessage() == "权重总和不为 1，建议调整"


class TestUnits:
    """单元测试覆盖."""

    def test_vector_search(self, place: TablePlace) -> None:
        """测试向量检索."""
        place.add(1, [REFUND, SHIPPING])
        place.add(2, [REFUND])
        found = place.retriever(1).invoke("退款政策：七天内可以申请退款")
        assert [one.metadata["vectorRank"] for one in found if one.metadata["vectorRank"]] == [1], (
            "0.3 keeps the rest out"
        )
        assert found[0].metadata["similarity"] == pytest.approx(1, abs=1e-5)

    def test_keyword_search(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """测试关键词检索."""
        place.add(1, [REFUND, SHIPPING])
        place.add(2, [REFUND])
        assert extract_keywords("发货 shipping") == ["发货", "shipping"]
        with caplog.at_level(logging.DEBUG, "homing.langchain"):
            found = place.retriever(1, min_similarity=1.0).invoke("发货 shipping")
        assert [one.metadata["matchedKeywords"] for one in found] == [["发货"]]
        (statement,) = [one.__dict__["sql"] for one in caplog.records if "sql" in one.__dict__]
        assert "发货" not in statement, "keywords are parameters"
        assert statement.count(":owner") == 1

    def test_rrf_fusion(self) -> None:
        """测试 RRF 融合."""
        merged = merge_results_with_rrf(named("a", "b"), named("b", "c"))
        assert [one.id for one in merged] == ["b", "a", "c"]
        assert merged[0].metadata["score"] == pytest.approx(0.7 / 62 + 0.3 / 61)

    def test_edges(self, place: TablePlace) -> None:
        """测试边界情况."""
        assert place.retriever(1).invoke("退款") == [], "nothing there"
        place.add(1, [REFUND])
        assert place.retriever(1).invoke("") == [], "an empty query"
        assert len(place.retriever(1).invoke("退款")) == 1, "a single result"
        assert place.retriever(1, min_similarity=1.0).invoke("天气预报") == [], "nothing is similar enough"
        assert place.retriever(1).invoke("的了吗") == [], "stop words only"


class TestIntegration:
    """集成测试."""

    def test_end_to_end(self, database: Database) -> None:
        """端到端检索流程."""
        store = PostgresStore(database.url, schema=f"seed_{secrets.token_hex(4)}")
        embedder = FakeEmbedder(128)
        base = KnowledgeBase(1, store=store, embedder=embedder)
        base.upload("退款政策：收到货后七天内可以申请退款。".encode(), "退款.md")
        base.upload("物流说明：下单后两天发货。".encode(), "物流.md")
        KnowledgeBase(2, store=store, embedder=embedder).upload("退款政策：别人的秘密。".encode(), "秘密.md")
        retriever = HybridRetriever(store, 1, embeddings=embedder, collection=CHUNKS)
        prompt = ChatPromptTemplate.from_template("根据资料回答：\n{context}\n\n问题：{input}")
        model = FakeListChatModel(responses=["七天内"])
        chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
        answer = chain.invoke({"input": "怎么申请退款"})
        assert answer["answer"] == "七天内"
        assert [one.metadata["fileName"] for one in answer["context"]] == ["退款.md"]
        assert "七天内可以申请退款" in answer["context"][0].page_content
        wanted = {"id", "fileName", "similarity", "score", "keywordScore", "matchedKeywords", "userId"}
        assert wanted <= set(answer["context"][0].metadata), "what the page shows"
        store.close()
