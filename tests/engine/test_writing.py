"""Text is the truth: durable and found by words when a write returns, whatever becomes of its vector."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from homing.database import Transaction
from homing.documents import DocumentService
from homing.engine import Engine
from homing.errors import InvalidArgument, ProviderUnavailable
from homing.memory import Memory
from homing.records import VectorRecord
from homing.stores.lance import LanceStore
from homing.stores.sqlite.store import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.text import terms
from tests.engine.parts import Held, Interrupted, Parts


def test_a_text_is_found_by_its_words_at_once_by_everybody_and_by_meaning_later(tmp_path: Path) -> None:
    held = Held()
    parts, other = Parts(tmp_path / "homing.db", held), Parts(tmp_path / "homing.db")
    parts.engine.collection("notes").write([VectorRecord("a", "notes", None, {}, "他一个人守着燈塔")])
    for one in (parts, other):
        [hit] = one.search("灯塔")
        assert (hit.id, hit.pending, hit.score) == ("a", True, None)
    held.go.set()
    parts.until(lambda: parts.engine.work.waiting() == 0)
    [hit] = other.search("灯塔")
    assert not hit.pending
    assert hit.score is not None
    other.close()
    parts.close()


def test_a_write_that_is_taken_back_leaves_nothing(parts: Parts) -> None:
    class Regret(Exception):
        pass

    notes = parts.engine.collection("notes")

    def work(transaction: Transaction) -> None:
        notes.write([VectorRecord("a", "notes", None, {}, "灯塔")], transaction)
        raise Regret

    with pytest.raises(Regret):
        parts.engine.database.write(work, notes.scope)
    assert parts.engine.work.waiting() == 0
    assert list(parts.store.records("notes")) == []
    assert len(parts.search("灯塔")) == 0


def test_of_two_texts_for_one_id_the_newer_counts(parts: Parts) -> None:
    parts.put({"a": "旧的"})
    parts.put({"a": "新的"})
    assert parts.engine.work.waiting() == 1
    assert parts.engine.flush()
    assert parts.embedder.texts == ["新的"]
    assert parts.embedded() == {"a": "新的"}


def test_a_text_that_says_the_same_keeps_its_vector(parts: Parts) -> None:
    parts.put({"a": "灯塔"})
    assert parts.engine.flush()
    parts.engine.collection("notes").write([VectorRecord("a", "notes", None, {"by": "me"}, "灯塔")])
    assert parts.embedded() == {"a": "灯塔"}
    assert parts.engine.flush()
    assert parts.embedder.texts == ["灯塔"]


def test_what_is_deleted_is_gone_with_its_vector_and_with_what_waits_for_it(parts: Parts) -> None:
    parts.put({"a": "灯塔", "b": "花园"})
    assert parts.engine.flush()
    parts.put({"b": "新的花园", "c": "海鸥"})
    assert parts.engine.collection("notes").delete(["a", "b", "c", "never there"]) == 3
    assert parts.engine.work.waiting() == 0
    assert parts.engine.flush()
    assert list(parts.store.records("notes")) == []
    assert parts.embedder.texts == ["灯塔", "花园"]
    assert parts.store.check() == []


def test_a_text_that_changes_while_it_is_embedded_ends_with_the_vector_of_the_new_one(tmp_path: Path) -> None:
    other = Parts(tmp_path / "homing.db")
    parts = Parts(tmp_path / "homing.db", Interrupted(lambda: other.put({"a": "新的"})))
    parts.put({"a": "旧的", "b": "灯塔"})
    assert parts.engine.flush()
    assert parts.embedded() == {"a": "新的", "b": "灯塔"}
    assert sorted(parts.embedder.texts) == ["新的", "旧的", "灯塔"]
    other.close()
    parts.close()


def test_a_text_that_is_deleted_while_it_is_embedded_stays_deleted(tmp_path: Path) -> None:
    other = Parts(tmp_path / "homing.db")
    parts = Parts(tmp_path / "homing.db", Interrupted(lambda: other.engine.collection("notes").delete(["a"])))
    parts.put({"a": "秘密", "b": "灯塔"})
    assert parts.engine.flush()
    assert parts.embedded() == {"b": "灯塔"}
    assert parts.store.check() == []
    other.close()
    parts.close()


def test_a_dropped_collection_waits_for_nothing(parts: Parts) -> None:
    parts.put({"a": "灯塔"})
    parts.put({"a": "花园"}, "others")
    assert parts.engine.collection("notes").drop() == 1
    assert parts.engine.flush()
    assert parts.embedder.texts == ["花园"]


def test_without_a_model_texts_are_kept_for_words_and_nothing_waits(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "homing.db")
    engine = Engine(store, None)
    engine.collection("notes").write([VectorRecord("a", "notes", None, {}, "他守着燈塔")])
    assert engine.work.waiting() == 0
    assert engine.flush()
    assert engine.wait("notes", ["a"], 0)
    assert not engine.worker.running
    assert engine.close() == 0
    store.close()


def test_who_wrote_may_wait_for_the_vector_and_is_not_kept_by_a_model_that_fails(parts: Parts) -> None:
    notes = parts.engine.collection("notes")
    notes.write([VectorRecord("a", "notes", None, {}, "灯塔")])
    assert parts.engine.wait("notes", ["a"], 60)
    parts.embedder.fail_with = ProviderUnavailable("down")
    notes.write([VectorRecord("b", "notes", None, {}, "花园")])
    assert not parts.engine.wait("notes", ["b"], 60)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [DocumentService, Memory])
def test_a_store_that_is_no_database_is_refused_with_a_way_out(
    parts: Parts, tmp_path: Path, capability: Callable[[Engine], object]
) -> None:
    store = LanceStore(tmp_path / "lance")
    with pytest.raises(InvalidArgument, match="give the engine one"):
        Engine(store, parts.embedder)
    engine = Engine(store, parts.embedder, database=parts.store.database)
    with pytest.raises(InvalidArgument, match="homing store copy"):
        capability(engine)
    store.close()


def test_a_text_beyond_the_window_of_the_model_is_embedded_as_a_whole(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "homing.db", FakeEmbedder(max_characters=150))
    parts.put({"a": "the market was loud " * 20 + "\n\n" + "灯塔看守人" * 10})
    assert parts.engine.flush()
    [hit] = parts.search("灯塔看守人")
    assert hit.cosine is not None
    assert hit.cosine > 0.5
    parts.close()


def test_texts_are_cut_into_words_before_the_file_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a collection, and the paragraphs of a document: others can write meanwhile."""
    engine = Engine(SqliteStore(tmp_path / "homing.db"), None, background=False)
    cut, real = list[str](), terms.terms_in

    def watched(text: str) -> terms.Terms:
        with closing(apsw.Connection(str(tmp_path / "homing.db"))) as other:
            other.execute("BEGIN IMMEDIATE")
        cut.append(text)
        return real(text)

    documents = DocumentService(engine)
    monkeypatch.setattr(terms, "terms_in", watched)
    documents.save("novel", "ch1", "\n\n".join(f"第{number}段 about lamp {number}" for number in range(20)))
    assert len(cut) == 20
    documents.save("novel", "ch1", "\n\n".join(f"第{number}段 about lamp {number}" for number in range(21)))
    assert len(cut) == 21
    engine.collection("notes").write([VectorRecord("a", "notes", None, {}, "灯塔 the lighthouse")])
    assert cut[21:] == ["灯塔 the lighthouse"]
    engine.close()
    engine.store.close()
