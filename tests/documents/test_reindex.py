"""Reindexing puts in order what is not, once, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from homing.database.sqlite import SqliteDatabase
from homing.documents import DocumentService
from homing.errors import EmbeddingError, InvalidArgument, NotFound, ProviderUnavailable
from homing.records import VectorRecord
from homing.testing.fake import FakeEmbedder
from tests.documents.killed_reindex import BATCH
from tests.documents.novel import Library, novel, paragraphs
from tests.forked import Process, start_python


def test_what_is_in_order_is_left_alone(documents: DocumentService, embedder: FakeEmbedder) -> None:
    documents.save("p", "d", novel(50))
    assert documents.flush(120)
    report = documents.reindex()
    assert (report.documents, report.chunks, report.embedded, report.repaired, report.waiting) == (1, 50, 0, 0, 0)
    assert len(embedder.texts) == 50


def test_it_embeds_what_waits_and_tells_how_far_it_is(tmp_path: Path) -> None:
    embedder = FakeEmbedder(32, fail_with=ProviderUnavailable("down"))
    with closing(Library(tmp_path, embedder)) as library:
        library.documents.save("p", "d", novel(100))
        assert not library.documents.flush(10)
        embedder.fail_with = None
        embedder.texts.clear()
        seen: list[tuple[int, int]] = []
        report = library.documents.reindex("p", batch_size=10, progress=lambda *at: seen.append(at))
        assert (report.embedded, report.waiting) == (100, 0)
        assert len(embedder.texts) == 100
        assert seen[0] == (0, 100)
        assert seen[-1] == (100, 100)
        assert len(library.documents.search("p", "夜晚", min_score=None)) == 20


def test_while_the_model_is_down_it_ends_and_says_what_waits(tmp_path: Path) -> None:
    embedder = FakeEmbedder(32, fail_with=ProviderUnavailable("down"))
    with closing(Library(tmp_path, embedder)) as library:
        library.documents.save("p", "d", novel(30))
        report = library.documents.reindex("p")
        assert (report.embedded, report.waiting, report.canceled) == (0, 30, False)


def test_it_can_be_called_off(tmp_path: Path) -> None:
    embedder = FakeEmbedder(32, fail_with=ProviderUnavailable("down"))
    with closing(Library(tmp_path, embedder)) as library:
        library.documents.save("p", "d", novel(100))
        library.documents.flush(120)
        library.engine.worker.stop(5, drain=False)
        embedder.fail_with = None
        rounds = iter(range(100))
        report = library.documents.reindex("p", batch_size=10, cancelled=lambda: next(rounds) >= 4)
        assert report.canceled
        assert 0 < report.embedded < 100
        assert report.waiting == 100 - report.embedded
        again = library.documents.reindex("p")
        assert (again.embedded, again.waiting) == (report.waiting, 0)


def test_what_the_index_lost_is_embedded_again_and_leftovers_go(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "d", novel(30))
    assert documents.flush(120)
    ids = [chunk.id for chunk in documents.chunks("p", "d")]
    library.store.delete("paragraphs", ids[:5])
    library.store.upsert([VectorRecord("stranger.7", "paragraphs", None, {"project": "p"}, "不知道从哪里来的一段")])
    embedder.texts.clear()
    report = documents.reindex("p")
    assert (report.embedded, report.removed) == (5, 1)
    assert len(embedder.texts) == 5
    assert {record.id for record in library.store.records("paragraphs")} == set(ids)


def test_damaged_vectors_are_found_and_made_again(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "d", novel(40))
    assert documents.flush(120)
    ids = [chunk.id for chunk in documents.chunks("p", "d")]
    damage(library.path, "paragraphs", ids[3], np.full(128, np.nan, np.float32))
    damage(library.path, "paragraphs", ids[9], np.zeros(128, np.float32))
    embedder.texts.clear()
    report = documents.reindex("p")
    assert (report.repaired, report.embedded) == (2, 2)
    vectors = np.stack([record.embedding for record in library.store.records("paragraphs")])  # type: ignore[misc]
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert library.store.check() == []
    assert documents.reindex("p").repaired == 0


def damage(path: Path, collection: str, chunk: str, vector: np.ndarray) -> None:
    """Write something else over a vector, where it lies."""
    database = SqliteDatabase(path)
    with database.writing() as connection:
        key, space = connection.execute(
            "SELECT r.key, c.space FROM records r JOIN collections c ON c.id = r.collection "
            "WHERE c.name = ? AND r.id = ?",
            (collection, chunk),
        ).get
        connection.execute(f"UPDATE vectors_{space} SET embedding = ? WHERE record = ?", (vector.tobytes(), key))
    database.close()


def test_a_text_the_model_refuses_does_not_stop_the_others_and_can_be_tried_again(tmp_path: Path) -> None:
    class Picky(FakeEmbedder):
        refuses = "毒药"

        def embed(self, texts, **options):  # type: ignore[no-untyped-def]
            if any(self.refuses in text for text in texts):
                raise EmbeddingError("cannot embed this")
            return super().embed(texts, **options)

    embedder = Picky(32)
    with closing(Library(tmp_path, embedder)) as library:
        library.documents.save("p", "d", "\n\n".join([*paragraphs(20), "桌上放着一瓶毒药。"]))
        for _ in range(4):
            library.documents.flush(120)
        poison = library.documents.chunks("p", "d")[-1]
        assert [letter.id for letter in library.engine.work.dead_letters()] == [poison.id]
        assert poison.text == "桌上放着一瓶毒药。"
        [hit] = library.documents.search("p", "毒药", mode="keyword")
        assert hit.metadata["pending"] is True
        embedder.refuses = "nothing"
        report = library.documents.reindex("p")
        assert (report.embedded, report.waiting) == (1, 0)
        assert library.engine.work.dead_letters() == []


def test_one_document_can_be_reindexed(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "a", novel(10))
    documents.save("p", "b", novel(10, seed=2))
    assert documents.flush(120)
    library.store.delete("paragraphs", [record.id for record in library.store.records("paragraphs")])
    report = documents.reindex("p", document="b")
    assert (report.documents, report.embedded) == (1, 10)
    assert documents.reindex().embedded == 10


def test_wrong_requests_are_refused(documents: DocumentService) -> None:
    with pytest.raises(NotFound):
        documents.reindex("p", document="nowhere")
    with pytest.raises(InvalidArgument):
        documents.reindex(document="d")
    with pytest.raises(InvalidArgument):
        documents.reindex(batch_size=0)
    assert documents.reindex("nowhere").documents == 0


@pytest.mark.slow
def test_killed_again_and_again_it_goes_on_and_embeds_nothing_twice_but_the_batch_under_way(tmp_path: Path) -> None:
    texts = paragraphs(400)
    prepare(tmp_path, "\n\n".join(texts))
    log = tmp_path / "embedded.txt"
    log.touch()
    chance = random.Random(3)
    killed = 0
    for worker in processes(tmp_path):
        if killed == 5:
            assert worker.wait(120) == 0
            break
        # Of 25 batches at most four are done each time, so there is work left for every process.
        enough = lines(log) + BATCH * chance.randint(1, 3)
        while lines(log) < enough:
            assert worker.poll() is None
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.015))
        os.kill(worker.pid, signal.SIGKILL)
        assert worker.wait() == -signal.SIGKILL
        killed += 1
    counted = Counter(log.read_text(encoding="utf-8").split("\n"))
    counted.pop("")
    assert set(counted) == set(texts)
    # A batch that was embedded and not stored when its process died is embedded again; nothing else is.
    again = sum(counted.values()) - len(texts)
    assert again <= killed * BATCH
    with closing(Library(tmp_path, FakeEmbedder(32))) as library:
        assert library.documents.reindex().embedded == 0
        assert library.store.check() == []
        assert all(record.embedding is not None for record in library.store.records("paragraphs"))


def prepare(folder: Path, text: str) -> None:
    """A project whose chunks all wait."""
    with closing(Library(folder, FakeEmbedder(32, fail_with=ProviderUnavailable("down")))) as library:
        library.documents.save("p", "d", text)


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


def processes(folder: Path) -> Iterator[Process]:
    while True:
        arguments = ["-m", "tests.documents.killed_reindex", str(folder)]
        with start_python(arguments, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"begun\n"
            yield worker


def test_a_project_written_without_a_model_gets_its_vectors_when_there_is_one(tmp_path: Path) -> None:
    with closing(Library(tmp_path, None)) as library:
        library.documents.save("p", "d", novel(12))
        assert library.documents.flush(120)
        assert library.documents.reindex().embedded == 0
    with closing(Library(tmp_path, FakeEmbedder(32))) as library:
        assert library.documents.reindex().embedded == 12
        assert not library.documents.search("p", "夜晚").degraded
