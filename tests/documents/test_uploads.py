"""An uploaded file is a document: in the lists, in every search, cut into windows, kept whatever happens."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import homing
from homing.config import EmbeddingSettings, Settings
from homing.documents import DocumentService
from homing.documents.records import COLLECTION
from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from homing.errors import ProviderUnavailable
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder
from homing.text.sentences import windows
from tests.documents.novel import Library
from tests.effort import times
from tests.files.made_files import make_pdf
from tests.forked import run_python

LONG = "".join(f"第{n}条规定了部门的职责和权限，由主管{'😀' * (n % 2)}负责落实。" for n in range(3_000))


def places(documents: DocumentService, name: str) -> list[tuple[int, int]]:
    return [(one.start_offset, one.end_offset) for one in documents.chunks("uploads", name)]


def test_an_upload_is_in_every_list_and_in_every_search(documents: DocumentService) -> None:
    documents.save("novel", "ch1", "他一个人守着灯塔。")
    uploaded = documents.upload(make_pdf(["封面"], ["守灯塔的人领了工资"]), "工资.pdf")
    assert (uploaded.file.format, uploaded.file.embedded) == ("pdf", True)
    assert [project.id for project in documents.projects()] == ["novel", "uploads"]
    assert [(one.id, one.pending) for one in documents.documents("uploads")] == [("工资.pdf", 0)]
    found = documents.search(None, "灯塔", mode="keyword")
    assert {(hit.metadata["project_id"], hit.metadata["document_id"]) for hit in found} == {
        ("novel", "ch1"),
        ("uploads", "工资.pdf"),
    }
    near = documents.search("uploads", "守灯塔的人领了工资", min_score=None)
    assert [(hit.metadata["document_id"], hit.pending) for hit in near] == [("工资.pdf", False)]


@pytest.mark.slow
def test_what_the_owner_of_a_folder_uploads_is_among_their_documents(tmp_path: Path) -> None:
    with homing.open(tmp_path / "data", settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        app.knowledge().upload("员工每年有十五天带薪年假。".encode(), "手册.txt")
        app.knowledge("bob").upload("鲍勃的年假。".encode(), "手册.txt")
        hits = app.documents.search(None, "年假", mode="keyword")
        assert [(hit.metadata["project_id"], hit.text) for hit in hits] == [("uploads", "员工每年有十五天带薪年假。")]
        assert app.documents.check() == app.store.check() == []


def test_a_file_is_cut_into_windows_and_one_that_is_saved_again_still_is(documents: DocumentService) -> None:
    documents.upload(LONG.encode(), "规定.txt")
    assert documents.text("uploads", "规定.txt") == LONG
    assert places(documents, "规定.txt") == [(one.start, one.end) for one in windows(LONG)]
    edited = LONG.replace("第1500条", "第一千五百条")
    saved = documents.save("uploads", "规定.txt", edited)
    assert len(saved.changed) < 5
    assert places(documents, "规定.txt") == [(one.start, one.end) for one in windows(edited)]
    assert documents.text("uploads", "规定.txt") == edited
    assert documents.check() == []


def test_places_are_counted_in_utf_16_where_that_is_asked_for(documents: DocumentService) -> None:
    documents.upload(LONG.encode(), "规定.txt")
    wide = LONG.encode("utf-16-le")
    for one in documents.chunks("uploads", "规定.txt", offsets="utf-16"):
        assert wide[2 * one.start_offset : 2 * one.end_offset].decode("utf-16-le") == one.text
    hit = documents.search("uploads", "第2900条", mode="keyword", top_k=1, offsets="utf-16")[0]
    start, end = hit.metadata["start_offset"], hit.metadata["end_offset"]
    assert wide[2 * start : 2 * end].decode("utf-16-le") == hit.text


def test_only_windows_that_say_something_new_are_embedded(documents: DocumentService, embedder: FakeEmbedder) -> None:
    documents.upload(LONG.encode(), "规定.txt")
    embedder.texts.clear()
    new = LONG.replace("第2000条", "第两千条")
    documents.upload(new.encode(), "规定.txt")
    assert 0 < len(embedder.texts) < 5
    assert documents.check() == []


@pytest.mark.slow
@settings(
    max_examples=times(5, in_full=100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_whatever_is_uploaded_after_whatever_the_index_says_the_same(library: Library, seeds: list[int]) -> None:
    documents, store = library.documents, library.store
    for seed in seeds:
        chance = random.Random(seed)
        sentences = [f"第{n}句{'长' * chance.randrange(60)}话。" for n in range(chance.randrange(1, 3_000, 250))]
        chance.shuffle(sentences)
        text = "".join(sentences)
        if chance.randrange(3):
            documents.upload(text.encode(), "a.txt")
        else:
            documents.save("uploads", "a.txt", text)
        assert documents.text("uploads", "a.txt") == text
        assert documents.check() == []
    if documents.uploads()[0].format == "txt":
        records = sorted(store.records(COLLECTION), key=lambda one: one.metadata.get("chunk", 0))
        for one in records:
            assert "start" not in one.metadata or text[one.metadata["start"] : one.metadata["end"]] == one.text


def test_a_reindex_rebuilds_what_the_index_says_of_a_file(library: Library) -> None:
    library.documents.upload(make_pdf(["封面"], ["第二页写着潜水艇的深度"]), "船.pdf")
    [record] = library.store.records(COLLECTION)
    assert record.metadata["part"] == "1"
    library.store.delete(COLLECTION, [record.id])
    assert library.documents.check()
    library.documents.reindex("uploads")
    assert [one.metadata for one in library.store.records(COLLECTION)] == [record.metadata]
    assert library.documents.check() == []


def test_a_renamed_file_keeps_its_vectors_and_tells_its_new_name(library: Library, embedder: FakeEmbedder) -> None:
    library.documents.upload("潜水艇的深度".encode(), "船.txt")
    calls = embedder.calls
    library.documents.rename("uploads", "船.txt", "潜艇.txt")
    assert [one.metadata["fileName"] for one in library.store.records(COLLECTION)] == ["潜艇.txt"]
    assert [(file.name, file.embedded) for file in library.documents.uploads()] == [("潜艇.txt", True)]
    assert embedder.calls == calls
    assert library.documents.check() == []


def test_a_document_that_was_written_becomes_an_upload(documents: DocumentService) -> None:
    documents.save("uploads", "a.txt", "一段。\n\n又一段。")
    assert len(documents.chunks("uploads", "a.txt")) == 2
    assert documents.upload("一段。\n\n又一段。".encode(), "a.txt").replaced
    assert [one.text for one in documents.chunks("uploads", "a.txt")] == ["一段。\n\n又一段。"]
    assert documents.check() == []


def test_what_came_while_the_model_was_down_is_embedded_when_it_is_back(tmp_path: Path) -> None:
    embedder = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    store = SqliteStore(tmp_path / "homing.db")
    engine = Engine(store, embedder, options=WorkerOptions(retries=Retries(backoff=0.01, max_backoff=0.02)))
    documents = DocumentService(engine)
    assert not documents.upload("员工每年有十五天带薪年假。".encode(), "手册.txt").file.embedded
    found = documents.search("uploads", "年假")
    assert [hit.pending for hit in found] == [True]
    assert found.degraded
    embedder.fail_with = None
    assert engine.worker.wait(lambda: documents.uploads()[0].embedded, 60)
    assert documents.search("uploads", "带薪年假", min_score=None)[0].score is not None
    engine.close()
    store.close()


UPLOADS = """
import os, signal, sys
from homing.documents import DocumentService
from homing.engine import Engine
from homing.errors import ProviderUnavailable
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder

engine = Engine(SqliteStore(sys.argv[1]), FakeEmbedder(fail_with=ProviderUnavailable("down")))
DocumentService(engine).upload("员工每年有十五天带薪年假。".encode(), "手册.txt")
os.kill(os.getpid(), signal.SIGKILL)
"""
READS = """
import json, sys
from homing.documents import DocumentService
from homing.engine import Engine
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder

store = SqliteStore(sys.argv[1])
engine = Engine(store, FakeEmbedder())
documents = DocumentService(engine)
found = documents.search(None, "年假")
print(json.dumps([[[hit.metadata["document_id"], hit.pending] for hit in found], documents.waiting("uploads")]))
assert not engine.worker.running
engine.close()
store.close()
"""


@pytest.mark.slow
def test_killed_right_after_an_upload_a_process_that_only_reads_finds_it_by_its_words(tmp_path: Path) -> None:
    path = str(tmp_path / "homing.db")
    assert run_python(["-c", UPLOADS, path]).returncode == -9
    read = run_python(["-c", READS, path])
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout) == [[["手册.txt", True]], 1]
