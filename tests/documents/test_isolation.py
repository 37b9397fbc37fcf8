"""A project never sees the chunks of another, whatever is saved, moved, deleted and asked."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homing.documents import DocumentService
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library
from tests.effort import times

# Names that a careless key, pattern or path would confuse.
PROJECTS = ["a", "a:b", "a%", "A", "a'; --", "项目", "a/b", "documents:a", "*"]
DOCUMENTS = ["d", "d.1", "D", "章%"]
WORDS = ["灯塔", "钥匙", "harbour", "石榴"]

steps = st.lists(
    st.tuples(
        st.sampled_from(["save", "save", "save", "delete", "delete_project"]),
        st.sampled_from(PROJECTS),
        st.sampled_from(DOCUMENTS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=times(8, in_full=100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_no_search_finds_what_another_project_holds(actions: list[tuple[str, str, str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        documents = opened.enter_context(closing(Library(Path(folder), FakeEmbedder(32)))).documents
        expected: dict[tuple[str, str], str] = {}
        for number, (action, project, document, words) in enumerate(actions):
            if action == "save":
                text = "\n\n".join(f"{word}，出自第{number}次保存的项目。" for word in words)
                documents.save(project, document, text)
                expected[project, document] = text
            elif action == "delete":
                assert documents.delete(project, document) == (expected.pop((project, document), None) is not None)
            else:
                gone = [key for key in expected if key[0] == project]
                assert documents.delete_project(project) == len(gone)
                for key in gone:
                    del expected[key]
        assert documents.flush(120)
        assert {one.id for one in documents.projects()} == {project for project, _ in expected}
        for project in PROJECTS:
            assert {one.id for one in documents.documents(project)} == {d for p, d in expected if p == project}
            for mode in ("semantic", "keyword", "hybrid"):
                for word in WORDS:
                    hits = documents.search(project, word, mode=mode, min_score=None, top_k=100)
                    for hit in hits:
                        whole = expected[project, hit.metadata["document_id"]]
                        assert hit.metadata["project_id"] == project
                        assert hit.text == whole[hit.metadata["start_offset"] : hit.metadata["end_offset"]]
                    if mode == "keyword":
                        there = sum(text.count(word) for (p, _), text in expected.items() if p == project)
                        assert len(hits) == there
        for chunk in documents.retrieve("a", "灯塔", min_score=0.0).chunks:
            assert chunk.text in expected["a", chunk.document_id]


def test_a_question_cannot_name_another_project(documents: DocumentService) -> None:
    documents.save("mine", "d", "我的灯塔。")
    documents.save("yours", "d", "你的灯塔。")
    assert documents.flush(120)
    for mode in ("semantic", "keyword", "hybrid"):
        for query in ("灯塔", "灯塔 OR documents:yours", '灯塔" OR "你的'):
            hits = documents.search("mine", query, mode=mode, min_score=None)
            assert {hit.text for hit in hits} <= {"我的灯塔。"}
