"""Seed 004, the hybrid retriever: the interface, both legs, and their fusion; one test per scenario."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from homing.errors import ProviderUnavailable
from homing.langchain import HybridRetriever, HybridRetrieverOptions, extract_keywords, merge_results_with_rrf
from tests.conftest import Database
from tests.langchain.places import TablePlace, Text

REFUND = Text("退款政策：七天内可以申请退款", "退款.md")
SHIPPING = Text("物流说明：下单后两天发货", "物流.md")
MIXED = Text("Refund policy 退款 in English", "refund.md")


@pytest.fixture
def place(database: Database) -> Iterator[TablePlace]:
    made = TablePlace(database)
    yield made
    made.close()


def named(*names: str) -> list[Document]:
    return [Document(id=name, page_content=f"text of {name}", metadata={"fileName": name}) for name in names]


class TestBaseRetriever:
    """实现 BaseRetriever 接口."""

    def test_class_definition_and_inheritance(self) -> None:
        """类定义和继承."""
        assert issubclass(HybridRetriever, BaseRetriever)
        assert list(inspect.signature(HybridRetriever._get_relevant_documents).parameters)[:2] == ["self", "query"]
        assert HybridRetriever.get_lc_namespace() == ["mirror", "retrievers"]

    def test_constructor_parameters(self, place: TablePlace) -> None:
        """构造函数参数."""
        parameters = list(inspect.signature(HybridRetriever.__init__).parameters)
        assert parameters[1:4] == ["vector_store", "user_id", "options"]
        retriever = HybridRetriever(place.vector_store, 1, HybridRetrieverOptions(limit=3))
        assert (retriever.vector_store, retriever.user_id, retriever.options.limit) == (place.vector_store, 1, 3)
        assert HybridRetriever(place.vector_store, 1).get_name() == "HybridRetriever", "the parent was initialised"

    def test_configuration_options(self, place: TablePlace) -> None:
        """配置选项."""
        options = HybridRetriever(place.vector_store, 1).options
        assert (options.limit, options.min_similarity, options.rrf_k) == (5, 0.3, 60)
        assert (options.vector_weight, options.keyword_weight) == (0.7, 0.3)
        given = {"limit": 2, "minSimilarity": 0.1, "rrfK": 10, "vectorWeight": 0.5, "keywordWeight": 0.5}
        options = HybridRetriever(place.vector_store, 1, given).options
        assert (options.limit, options.min_similarity, options.rrf_k) == (2, 0.1, 10)
        assert (options.vector_weight, options.keyword_weight) == (0.5, 0.5)


class TestVectorSearch:
    """执行向量检索."""

    def test_basic_flow_of_the_vector_search(self, place: TablePlace) -> None:
        """向量检索基本流程."""
        place.add(1, [Text(f"退款政策 {n}") for n in range(9)] + [SHIPPING])
        answer = place.retriever(1, limit=2).retrieve("退款政策")
        ranks = [share.rank for hit in answer for share in hit.legs if share.leg == "vector"]
        assert ranks
        assert max(ranks) <= 4, "limit * 2 of each leg"
        every = place.retriever(1, limit=20, min_similarity=-1.0).retrieve("退款政策")
        near = place.retriever(1, limit=20).retrieve("退款政策")
        assert len(every) == 10
        assert {hit.metadata["fileName"] for hit in near} == {"notes.md"}, "what is less similar than 0.3 is dropped"
        assert all(hit.score is not None and hit.score >= 0.3 for hit in near)

    def test_user_data_isolation(self, place: TablePlace) -> None:
        """用户数据隔离."""
        place.add(1, [Text("退款 一")])
        place.add(2, [Text("退款 二")])
        # The same condition, as langchain-postgres reads it: both agree on whose a row is.
        theirs = place.vector_store.similarity_search_with_score("退款", k=10, filter={"userId": {"$eq": 1}})
        ours = place.retriever(1, min_similarity=-1.0, keyword_weight=0.0, vector_weight=1.0).invoke("退款")
        assert [one.page_content for one, _ in theirs] == [one.page_content for one in ours] == ["退款 一"]

    def test_handling_a_failed_vector_search(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """处理向量检索失败."""
        place.add(1, [REFUND])
        place.embedder.fail_with = ProviderUnavailable("no connection")
        (found,) = place.retriever(1).invoke("退款")
        assert (found.metadata["vectorRank"], found.metadata["keywordRank"]) == (None, 1)
        assert any(one.levelno == logging.ERROR and "no connection" in one.getMessage() for one in caplog.records)


class TestKeywordSearch:
    """执行关键词检索."""

    def test_keyword_extraction(self) -> None:
        """关键词提取."""
        found = extract_keywords("我想知道 Refund policy 的退款流程是什么 and how long")
        assert "Refund" in found
        assert "policy" in found
        assert "退款" in found
        assert not {"的", "是什么", "and", "how"} & set(found)
        assert all(2 <= len(one) <= 4 for one in found if not one.isascii())
        assert (
            len(extract_keywords("用户注册账号无法收到验证邮件登录页面显示错误代码后台日志没有任何记录数据库连接超时"))
            == 10
        )

    def test_keyword_matching(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """关键词匹配."""
        place.add(1, [Text("退款", "one"), Text("REFUND 退款 流程", "three"), Text("退款 流程", "two"), SHIPPING])
        retriever = place.retriever(1, limit=5, min_similarity=1.0)
        with caplog.at_level(logging.DEBUG, "homing.langchain"):
            found = retriever.invoke("refund 退款，流程")
        assert [(one.metadata["fileName"], one.metadata["keywordScore"]) for one in found] == [
            ("three", 3),
            ("two", 2),
            ("one", 1),
        ]
        (statement,) = [one.__dict__["sql"] for one in caplog.records if "sql" in one.__dict__]
        assert statement.count("ILIKE") >= 3
        assert "DESC" in statement
        place.add(1, [Text(f"退款 {n}") for n in range(30)])
        answer = place.retriever(1, limit=3, min_similarity=1.0, leg_limit=None).retrieve("退款")
        assert max(share.rank for hit in answer for share in hit.legs) <= 6, "limit * 2"

    def test_user_data_isolation(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """用户数据隔离."""
        place.add(1, [Text("退款 一")])
        place.add(2, [Text("退款 二")])
        with caplog.at_level(logging.DEBUG, "homing.langchain"):
            found = place.retriever(2, min_similarity=1.0).invoke("退款")
        assert [one.page_content for one in found] == ["退款 二"]
        (statement,) = [one.__dict__["sql"] for one in caplog.records if "sql" in one.__dict__]
        assert "->> 'userId' = " in statement.split("WHERE")[1]

    def test_no_keywords_could_be_extracted(self, place: TablePlace, caplog: pytest.LogCaptureFixture) -> None:
        """关键词提取失败."""
        place.add(1, [Text("什么是什么")])
        answer = place.retriever(1, min_similarity=-1.0).retrieve("什么是的吗")
        assert [[share.leg for share in hit.legs] for hit in answer] == [["vector"]]
        assert not answer.degraded
        assert any(one.levelno == logging.WARNING and "关键词" in one.getMessage() for one in caplog.records)


class TestRrf:
    """使用 RRF 算法融合结果."""

    def test_the_basic_rrf_algorithm(self) -> None:
        """RRF 基本算法."""
        merged = merge_results_with_rrf(named("a", "b", "c"), named("c", "d"), limit=3)
        assert [one.id for one in merged] == ["c", "a", "b"]
        assert merged[0].metadata["score"] == pytest.approx(0.7 / 63 + 0.3 / 61)
        assert merged[1].metadata["score"] == pytest.approx(0.7 / 61)
        assert merged[2].metadata["score"] == pytest.approx(0.7 / 62)

    def test_deduplication(self, place: TablePlace) -> None:
        """文档去重."""
        place.add(1, [REFUND, MIXED])
        found = place.retriever(1, min_similarity=-1.0).invoke("退款政策")
        assert len({one.id for one in found}) == len(found) == 2
        first = found[0].metadata
        assert first["score"] == pytest.approx(0.7 / (60 + first["vectorRank"]) + 0.3 / (60 + first["keywordRank"]))

    def test_vector_results_only(self) -> None:
        """仅向量检索结果."""
        merged = merge_results_with_rrf(named("a", "b", "c"), [], limit=2)
        assert [one.id for one in merged] == ["a", "b"]
        assert [one.metadata["score"] for one in merged] == pytest.approx([0.7 / 61, 0.7 / 62])

    def test_keyword_results_only(self) -> None:
        """仅关键词检索结果."""
        merged = merge_results_with_rrf([], named("a", "b", "c"), limit=2)
        assert [one.id for one in merged] == ["a", "b"]
        assert [one.metadata["score"] for one in merged] == pytest.approx([0.3 / 61, 0.3 / 62])


class TestKeptRrf:
    """保留现有 RRF 实现."""

    def test_rrf_is_a_method_of_its_own(self) -> None:
        """提取 RRF 逻辑为独立方法."""
        alone = merge_results_with_rrf(named("a", "b"), named("b"))
        method = HybridRetriever.merge_results_with_rrf(named("a", "b"), named("b"))
        assert method == alone
        assert [one.id for one in method] == ["b", "a"]

    def test_unit_tests_cover_it(self) -> None:
        """单元测试覆盖: deduplication, scores, weights, edges."""
        assert [one.id for one in merge_results_with_rrf(named("a", "a", "b"), named("a"))] == ["a", "b"]
        equal = merge_results_with_rrf(named("a"), named("b"), vector_weight=0.5, keyword_weight=0.5)
        assert [one.metadata["score"] for one in equal] == pytest.approx([0.5 / 61, 0.5 / 61])
        heavy = merge_results_with_rrf(named("a"), named("b"), vector_weight=0.2, keyword_weight=0.8, rrf_k=1)
        assert [(one.id, one.metadata["score"]) for one in heavy] == [
            ("b", pytest.approx(0.4)),
            ("a", pytest.approx(0.1)),
        ]
        assert merge_results_with_rrf([], []) == []
        assert [one.id for one in merge_results_with_rrf(named("a"), [])] == ["a"]
