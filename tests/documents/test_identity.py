"""A paragraph stays itself through edits: only what says something new is embedded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homing.documents import DocumentService, Saved
from homing.embedders.cached import Cached
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, novel, paragraphs

NOVEL = novel(1000)
PARTS = NOVEL.split("\n\n")


def save(documents: DocumentService, text: str) -> Saved:
    changes = documents.save("novel", "book", text)
    assert documents.flush(120)
    return changes


@pytest.fixture
def written(documents: DocumentService, embedder: FakeEmbedder) -> Callable[[str], tuple[Saved, int]]:
    """Saves a text over the novel, and tells what changed and how many texts were embedded for it."""
    save(documents, NOVEL)
    assert len(embedder.texts) == 1000

    def write(text: str) -> tuple[Saved, int]:
        before = len(embedder.texts)
        changes = save(documents, text)
        assert documents.text("novel", "book") == text
        return changes, len(embedder.texts) - before

    return write


def sizes(changes: Saved) -> tuple[int, int, int, int]:
    return len(changes.changed), len(changes.unchanged), len(changes.moved), len(changes.removed)


def test_changing_one_word_embeds_one_paragraph(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written(NOVEL.replace("第500个夜晚", "第五百个夜晚"))
    assert (sizes(changes), embedded) == ((1, 999, 0, 0), 1)


def test_a_paragraph_inserted_at_the_top_embeds_one(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written("楔子：一切从一封没有寄出的信开始。\n\n" + NOVEL)
    assert (sizes(changes), embedded) == ((1, 1000, 0, 0), 1)


def test_moving_a_chapter_embeds_none(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written("\n\n".join(PARTS[:100] + PARTS[150:700] + PARTS[100:150] + PARTS[700:]))
    assert (sizes(changes), embedded) == ((0, 950, 50, 0), 0)


def test_moving_the_last_chapter_to_the_front_embeds_none(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written("\n\n".join(PARTS[960:] + PARTS[:960]))
    assert (sizes(changes), embedded) == ((0, 960, 40, 0), 0)


def test_windows_line_ends_embed_none(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written(NOVEL.replace("\n", "\r\n"))
    assert (sizes(changes), embedded) == ((0, 1000, 0, 0), 0)
    changes, embedded = written(NOVEL)
    assert (sizes(changes), embedded) == ((0, 1000, 0, 0), 0)


def test_deleting_paragraphs_embeds_none_and_removes_them(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written("\n\n".join(PARTS[:300] + PARTS[310:]))
    assert (sizes(changes), embedded) == ((0, 990, 0, 10), 0)


def test_splitting_a_paragraph_embeds_its_halves(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written(NOVEL.replace(PARTS[400], PARTS[400].replace("，", "。\n\n", 1)))
    assert (sizes(changes), embedded) == ((2, 999, 0, 0), 2)


def test_saving_the_same_text_again_changes_nothing(written: Callable[[str], tuple[Saved, int]]) -> None:
    changes, embedded = written(NOVEL)
    assert (sizes(changes), embedded) == ((0, 1000, 0, 0), 0)


def test_undo_embeds_none(tmp_path: Path) -> None:
    counting = FakeEmbedder(64)
    library = Library(tmp_path, Cached(counting, tmp_path / "cache.db"))
    save(library.documents, NOVEL)
    save(library.documents, NOVEL.replace("第500个夜晚", "第五百个夜晚"))
    assert len(counting.texts) == 1001
    changes = save(library.documents, NOVEL)
    assert (sizes(changes), len(counting.texts)) == ((1, 999, 0, 0), 1001)
    library.close()


def test_an_edited_paragraph_keeps_its_id(written: Callable[[str], tuple[Saved, int]], library: Library) -> None:
    before = library.documents.chunks("novel", "book")[500]
    changes, _ = written("新的开头，新的故事。\n\n" + NOVEL.replace("第500个夜晚", "第五百个夜晚"))
    after = next(one for one in library.documents.chunks("novel", "book") if "第五百个" in one.text)
    assert after.id == before.id
    assert after.id in changes.changed
    assert after.updated_at > before.updated_at


def test_an_untouched_paragraph_keeps_its_time(written: Callable[[str], tuple[Saved, int]], library: Library) -> None:
    before = {one.id: one.updated_at for one in library.documents.chunks("novel", "book")}
    changes, _ = written("新的开头，新的故事。\n\n" + NOVEL)
    after = {one.id: one.updated_at for one in library.documents.chunks("novel", "book")}
    assert all(after[one] == before[one] for one in changes.unchanged)


def test_ids_are_never_used_again(documents: DocumentService) -> None:
    first = save(documents, "第一段在这里。\n\n第二段在这里。")
    save(documents, "第一段在这里。")
    later = save(documents, "第一段在这里。\n\n完全不同的新段落。")
    assert not set(later.changed) & set(first.changed)


def test_repeated_paragraphs_each_have_their_own_id(documents: DocumentService) -> None:
    changes = save(documents, "\n\n".join(["雨还在下。"] * 5))
    assert len(set(changes.changed)) == 5
    changes = save(documents, "\n\n".join(["雨还在下。"] * 4))
    assert sizes(changes) == (0, 4, 0, 1)


def test_edits_far_apart_embed_only_what_they_touch(written: Callable[[str], tuple[Saved, int]]) -> None:
    changed = list(PARTS)
    changed[0] = changed[0].replace("夜晚", "清晨")
    changed[999] = changed[999].replace("夜晚", "清晨")
    changes, embedded = written("\n\n".join(changed))
    assert (sizes(changes), embedded) == ((2, 998, 0, 0), 2)


def test_a_novel_without_blank_lines_is_cut_by_lines(documents: DocumentService, embedder: FakeEmbedder) -> None:
    lines = [f"　　{one}" for one in paragraphs(200)]
    assert len(save(documents, "\n".join(lines)).changed) == 200
    before = len(embedder.texts)
    lines[77] = lines[77].replace("夜晚", "清晨")
    changes = save(documents, "\n".join(["　　开头多了一行，就这一行。", *lines]))
    assert (len(changes.changed), len(embedder.texts) - before) == (2, 2)
