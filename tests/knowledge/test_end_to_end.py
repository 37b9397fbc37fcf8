"""上传文档 → HybridRetriever → RetrievalChain → 查询: the whole of it, on a real server, with the bundled model."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from homing.embedders.local import LocalProvider
from homing.knowledge import CHUNKS, KnowledgeBase
from homing.langchain import HybridRetriever
from homing.stores.postgres.store import PostgresStore
from homing.vectors import score_of
from tests.conftest import Database
from tests.files.made_files import make_docx, make_pdf

PROMPT = ChatPromptTemplate.from_messages([("system", "根据资料回答。\n\n{context}"), ("human", "{input}")])


@pytest.fixture(scope="module")
def model() -> LocalProvider:
    return LocalProvider()


@pytest.fixture(scope="module")
def store(database: Database, model: LocalProvider) -> Iterator[PostgresStore]:
    store = PostgresStore(database.url, schema=f"e2e_{secrets.token_hex(4)}", row_security=True)
    alice = KnowledgeBase(1, store=store, embedder=model)
    alice.upload(
        make_docx(
            ("员工手册", 1),
            "员工每年有十五天带薪年假，入职满五年后增加到二十天。",
            "差旅费用在返回后的三十天之内凭发票报销。",
        ),
        "员工手册.docx",
    )
    alice.upload(make_pdf(["Refunds are paid back within seven days."]), "refunds.pdf")
    bob = KnowledgeBase(2, store=store, embedder=model)
    bob.upload("鲍勃的公司每年有三十天年假。".encode(), "员工手册.docx.txt")
    yield store
    store.close()


def chain(
    store: PostgresStore, user: int, model: LocalProvider, asked: list[str]
) -> Runnable[dict[str, str], dict[str, Any]]:
    """A retrieval chain over a user's files; what the chat model is asked is kept in `asked`."""

    def answer(prompt: object) -> BaseMessage:
        asked.append(str(prompt))
        return AIMessage("十五天")

    retriever = HybridRetriever(store, user, {"limit": 3}, embeddings=model, collection=CHUNKS)
    made: Runnable[dict[str, str], dict[str, Any]] = create_retrieval_chain(
        retriever, create_stuff_documents_chain(RunnableLambda(answer), PROMPT)
    )
    return made


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("年假有几天？", "员工手册.docx", "十五天带薪年假"),
        ("when do I get my refund", "refunds.pdf", "seven days"),
        ("出差 reimbursement 怎么报销", "员工手册.docx", "凭发票报销"),
    ],
)
def test_a_question_to_the_chain_is_answered_from_the_uploaded_files(
    store: PostgresStore, model: LocalProvider, query: str, name: str, said: str
) -> None:
    asked: list[str] = []
    result = chain(store, 1, model, asked).invoke({"input": query})
    assert result["answer"] == "十五天"
    documents = result["context"]
    assert documents[0].metadata["fileName"] == name
    assert documents[0].metadata["similarity"] > 0.3
    assert said in documents[0].page_content
    assert said in asked[0]


def test_the_chain_of_one_user_knows_nothing_of_another(store: PostgresStore, model: LocalProvider) -> None:
    asked: list[str] = []
    result = chain(store, 2, model, asked).invoke({"input": "年假有几天？"})
    assert [one.page_content for one in result["context"]] == ["鲍勃的公司每年有三十天年假。"]
    assert "十五天带薪" not in asked[0]


def test_the_knowledge_base_and_the_retriever_find_the_same(store: PostgresStore, model: LocalProvider) -> None:
    retriever = HybridRetriever(store, 1, embeddings=model, collection=CHUNKS)
    own = KnowledgeBase(1, store=store, embedder=model)
    for query in ("年假有几天", "when do I get my refund", "发票报销"):
        theirs = retriever.invoke(query)
        ours = own.search(query)
        assert ours[0].id == theirs[0].id
        assert ours[0].cosine is not None
        assert ours[0].score is not None
        similarity = score_of(ours[0].cosine, model.scale)
        assert similarity == pytest.approx(theirs[0].metadata["similarity"], abs=1e-3)
        # The retriever says how near a passage is; the one ranking also counts the words that it shares.
        assert ours[0].score >= similarity


def test_a_replaced_file_is_what_the_chain_knows_from_then_on(store: PostgresStore, model: LocalProvider) -> None:
    own = KnowledgeBase(3, store=store, embedder=model)
    own.upload("食堂中午十二点开门。".encode(), "食堂.txt")
    assert "十二点" in chain(store, 3, model, []).invoke({"input": "食堂几点开门"})["context"][0].page_content
    own.upload("食堂现在十一点半开门。".encode(), "食堂.txt")
    context = chain(store, 3, model, []).invoke({"input": "食堂几点开门"})["context"]
    assert [one.page_content for one in context] == ["食堂现在十一点半开门。"]
