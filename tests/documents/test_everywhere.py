"""One search over all projects, and what a search asks the database for."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.documents import DocumentService
from homing.records import Mode
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, novel
from tests.models.statements import counted_statements

MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
FILES_OWN = "'main'.'"
"""How statements name tables that an index of SQLite keeps for itself."""


@pytest.mark.parametrize("mode", MODES)
def test_all_projects_are_searched_at_once(documents: DocumentService, mode: Mode) -> None:
    documents.save("novel", "ch1", "灯塔亮了，林婉推开窗。\n\n雨还在下。")
    documents.save("notes", "trip", "灯塔在岛的北边，要坐船去。")
    documents.save("work", "plan", "Quarterly figures are due on Friday.")
    assert documents.flush(120)
    found = documents.search(None, "灯塔", mode=mode, min_score=0.2)
    assert {(hit.metadata["project_id"], hit.metadata["document_id"]) for hit in found[:2]} == {
        ("novel", "ch1"),
        ("notes", "trip"),
    }
    scores = [hit.fused for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert {hit.metadata["project_id"] for hit in documents.search("notes", "灯塔", mode=mode, min_score=0.2)} == {
        "notes"
    }
    one = documents.search(None, "灯塔", mode=mode, min_score=0.2, document="trip")
    assert {hit.metadata["document_id"] for hit in one} == {"trip"}


def test_pages_follow_each_other_over_all_projects(documents: DocumentService) -> None:
    for project in ("a", "b", "c"):
        documents.save(project, "d", novel(15, seed=ord(project)))
    whole = [hit.id for hit in documents.search(None, "夜晚", mode="keyword", top_k=45)]
    pages = [
        hit.id
        for offset in range(0, 45, 10)
        for hit in documents.search(None, "夜晚", mode="keyword", top_k=10, offset=offset)
    ]
    assert pages == whole
    assert len(set(whole)) == 45


@pytest.mark.parametrize("mode", MODES)
def test_a_search_takes_at_most_eight_statements(tmp_path: Path, mode: Mode) -> None:
    with counted_statements() as seen:
        library = Library(tmp_path, FakeEmbedder())
        for project in ("p", "q", "r"):
            for number in range(4):
                library.documents.save(project, f"d{number}", novel(40, seed=number))
        assert library.documents.flush(120)
        library.engine.worker.stop(20)
        for asked in ({"project": "p"}, {"project": None}, {"project": "p", "document": "d2"}):
            for _ in range(2):
                seen.clear()
                hits = library.documents.search(query="码头的夜晚", mode=mode, min_score=None, **asked)
                assert len(hits) == 20
            ours = [one for one in seen if FILES_OWN not in one and not one.startswith(("BEGIN", "ROLLBACK", "PRAGMA"))]
            assert len(ours) <= 8, ours
        library.close()


def test_finding_places_takes_as_many_statements_for_many_documents_as_for_one(tmp_path: Path) -> None:
    with counted_statements() as seen:
        library = Library(tmp_path, None)
        for number in range(30):
            library.documents.save("p", f"d{number}", f"第{number}篇写到了灯塔。")
        assert len(library.documents.search("p", "灯塔", mode="keyword", top_k=30)) == 30
        places = [one for one in seen if "FROM document_chunks" in one]
        assert len(places) == 1
        library.close()
