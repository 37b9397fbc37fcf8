"""Users never see each other's files, whatever they are called and whatever they ask for."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable

import pytest

from homing.database.postgres.database import PostgresDatabase
from homing.documents import DocumentService
from homing.engine import Engine
from homing.errors import InvalidArgument, NotFound
from homing.knowledge import KnowledgeBase
from homing.stores.postgres.store import PostgresStore
from homing.stores.store import MultiUserStore, Store
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database
from tests.knowledge.conftest import Open

USERS = [
    "alice", "Alice", "alice ", "alice:", ":alice", "alice'; DROP TABLE records; --", "bob\" OR 1=1", "%", "_", "*",
    "李雷", "李雷\u200b", "ａｌｉｃｅ", "knowledge.chunks:alice", "../alice", "null", "[]", "{}", "0", "-1",
]  # fmt: skip


def test_two_users_may_have_files_of_one_name(base: Open) -> None:
    base("alice").upload("爱丽丝的年假".encode(), "假期.txt")
    base("bob").upload("鲍勃的年假".encode(), "假期.txt")
    assert [hit.text for hit in base("alice").search("年假")] == ["爱丽丝的年假"]
    assert [hit.text for hit in base("bob").search("年假")] == ["鲍勃的年假"]
    base("alice").delete("假期.txt")
    assert base("alice").list() == []
    assert [file.name for file in base("bob").list()] == ["假期.txt"]


def test_nothing_of_another_can_be_deleted_or_replaced(base: Open) -> None:
    base("alice").upload("爱丽丝的秘密".encode(), "a.txt")
    with pytest.raises(NotFound):
        base("bob").delete("a.txt")
    assert not base("bob").upload("鲍勃的".encode(), "a.txt").replaced
    assert base("alice").search("秘密")[0].text == "爱丽丝的秘密"


def test_a_narrowed_search_cannot_widen(base: Open) -> None:
    base("alice").upload("爱丽丝的秘密".encode(), "a.txt")
    base("bob").upload("鲍勃的秘密".encode(), "b.txt")
    assert not base("bob").search("秘密", files=["a.txt"])


@pytest.mark.parametrize("user", ["", "  ", None, True, 1.5, ["alice"], "a\0b", "长" * 67, "\ud800"])
def test_there_is_no_knowledge_base_of_nobody(local: Open, user: object) -> None:
    with pytest.raises(InvalidArgument, match="user"):
        local(user)


def test_a_number_and_its_text_are_one_user(base: Open) -> None:
    base(7).upload(b"seven", "a.txt")
    assert [file.name for file in base("7").list()] == ["a.txt"]


@pytest.mark.slow
def test_hostile_names_share_nothing_in_hundreds_of_searches(base: Open) -> None:
    chance = random.Random(4)
    for number, user in enumerate(USERS):
        base(user).upload(f"第{number}位用户写下的共同主题".encode(), "共同.txt")
    for _ in range(100):
        number = chance.randrange(len(USERS))
        found = base(USERS[number]).search(chance.choice(["共同主题", "用户", "第一位用户写下"]), min_similarity=None)
        assert [hit.text for hit in found] == [f"第{number}位用户写下的共同主题"]


def test_the_view_of_one_user_is_no_way_to_another(new_database: Callable[[], str], embedder: FakeEmbedder) -> None:
    store = PostgresStore(new_database())
    with pytest.raises(InvalidArgument, match="store of user 'alice'"):
        KnowledgeBase("bob", store=store.for_user("alice"), embedder=embedder)
    store.close()


def test_documents_of_one_owner_are_in_no_list_or_search_of_another(store: Store, embedder: FakeEmbedder) -> None:
    engine = Engine(store, embedder)
    own = DocumentService(engine)
    apart = isinstance(store, MultiUserStore)
    users = {
        user: DocumentService(engine.for_user(user)) if apart else DocumentService(engine, owner=user)
        for user in ("alice", "bob")
    }
    for name, documents in {"": own, **users}.items():
        documents.upload(f"{name}的年假".encode(), "假期.txt")
        documents.update_config(top_k=len(name) + 1)
    for name, documents in {"": own, **users}.items():
        assert [hit.text for hit in documents.search(None, "年假", mode="keyword")] == [f"{name}的年假"]
        assert [one.documents for one in documents.projects()] == [1]
        assert documents.text("uploads", "假期.txt") == f"{name}的年假"
        assert documents.config().top_k == len(name) + 1
        assert documents.check() == []
        assert documents.reindex().removed == 0
    assert users["bob"].delete("uploads", "假期.txt")
    assert [len(one.uploads()) for one in (own, *users.values())] == [1, 1, 0]
    assert store.check() == []
    engine.close()


def test_the_fence_covers_the_texts_of_documents(database: Database, embedder: FakeEmbedder) -> None:
    store = PostgresStore(database.url, schema=f"k_{secrets.token_hex(4)}", row_security=True)
    for user in ("alice", "bob"):
        KnowledgeBase(user, store=store, embedder=embedder).upload(f"{user}的年假".encode(), "假期.txt")

    def seen(database: PostgresDatabase) -> set[str]:
        """Whose rows a statement reads that forgets to say whose it wants."""
        columns = [f"SELECT user_id FROM {table}" for table in ("documents", "document_blocks", "document_chunks")]
        return {user for (user,) in database.read(lambda transaction: transaction.rows(" UNION ALL ".join(columns)))}

    assert seen(store.database) == set()
    assert seen(store.database.for_user("alice")) == {"alice"}
    store.close()
