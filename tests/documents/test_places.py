"""A document gets another name or goes to another project: its chunks keep their ids, and nothing is embedded."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.errors import InvalidArgument, NotFound
from homing.testing.fake import FakeEmbedder
from tests.documents.gated import Gated
from tests.documents.novel import Library, novel

TEXT = f"{novel(30)}\n\n最后一段写到了独角兽。"


def test_a_document_is_renamed(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "draft", TEXT)
    assert documents.flush(120)
    before = documents.chunks("p", "draft", embeddings=True)
    embedder.texts.clear()
    documents.rename("p", "draft", "final")
    after = documents.chunks("p", "final", embeddings=True)
    assert [(one.id, one.text, one.pending) for one in after] == [(one.id, one.text, False) for one in before]
    assert all((one.embedding == other.embedding).all() for one, other in zip(after, before, strict=True))  # type: ignore[union-attr]
    assert [one.id for one in documents.documents("p")] == ["final"]
    for mode in ("keyword", "semantic", "hybrid"):
        hit = documents.search("p", "独角兽", mode=mode, min_score=None, document="final")[0]
        assert (hit.id, hit.metadata["document_id"]) == (before[-1].id, "final")
        assert len(documents.search("p", "独角兽", mode=mode, min_score=None, document="draft")) == 0
    with pytest.raises(NotFound):
        documents.text("p", "draft")
    assert documents.flush(120)
    assert embedder.texts.count("最后一段写到了独角兽。") == 0
    assert documents.check() == library.store.check() == []


def test_a_document_goes_to_another_project(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "d", TEXT)
    documents.save("q", "other", novel(5, seed=2))
    assert documents.flush(120)
    ids = [one.id for one in documents.chunks("p", "d")]
    asked = len(embedder.texts)
    documents.move("p", "d", "q")
    assert [one.id for one in documents.chunks("q", "d")] == ids
    assert [(one.id, one.documents) for one in documents.projects()] == [("q", 2)]
    assert len(documents.search("p", "独角兽", mode="keyword")) == 0
    [hit] = documents.search("q", "独角兽", mode="keyword")
    assert hit.metadata["project_id"] == "q"
    assert documents.reindex().embedded == 0
    assert len(embedder.texts) == asked
    assert documents.check() == library.store.check() == []


def test_edits_go_on_under_the_new_name(library: Library, embedder: FakeEmbedder) -> None:
    documents = library.documents
    documents.save("p", "a", TEXT)
    documents.rename("p", "a", "b")
    saved = documents.save("p", "b", TEXT.replace("独角兽", "麒麟"))
    assert (len(saved.changed), len(saved.unchanged)) == (1, 30)
    assert len(documents.save("p", "a", "旧名字下的新文档。").changed) == 1
    assert documents.flush(120)
    assert documents.check() == library.store.check() == []


def test_what_exists_is_not_overwritten(library: Library) -> None:
    documents = library.documents
    documents.save("p", "a", "第一篇。")
    documents.save("p", "b", "第二篇。")
    documents.save("q", "a", "第三篇。")
    with pytest.raises(InvalidArgument, match="'b' in project 'p' already"):
        documents.rename("p", "a", "b")
    with pytest.raises(InvalidArgument, match="'a' in project 'q' already"):
        documents.move("p", "a", "q")
    with pytest.raises(NotFound):
        documents.rename("p", "nothing", "c")
    with pytest.raises(InvalidArgument):
        documents.rename("p", "a", "")
    documents.rename("p", "a", "a")
    documents.move("p", "a", "p")
    assert [documents.text(*one) for one in (("p", "a"), ("p", "b"), ("q", "a"))] == [
        "第一篇。",
        "第二篇。",
        "第三篇。",
    ]


def test_a_document_may_be_renamed_while_it_is_embedded(tmp_path: Path) -> None:
    embedder = Gated()
    library = Library(tmp_path, embedder)
    library.documents.save("p", "a", "灯塔亮了。\n\n船靠岸了。")
    assert embedder.asked.wait(120)
    library.documents.rename("p", "a", "b")
    assert [one.pending for one in library.documents.chunks("p", "b")] == [True, True]
    embedder.answer.set()
    assert library.documents.flush(120)
    assert [one.pending for one in library.documents.chunks("p", "b")] == [False, False]
    assert sorted(embedder.texts) == ["灯塔亮了。", "船靠岸了。"]
    assert library.documents.check() == library.store.check() == []
    library.close()
