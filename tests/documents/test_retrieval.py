"""Paragraphs for a prompt: the best that fit, and defaults that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.documents import DocumentService, RagConfig
from homing.errors import InvalidArgument, ModelNotReady
from homing.testing.fake import FakeEmbedder
from homing.text.budget import estimate_tokens
from tests.documents.novel import Library, novel


@pytest.fixture
def setting(documents: DocumentService) -> DocumentService:
    texts = [f"灯塔守夜人的第{number}条规矩：灯塔不能熄灭。" + "这一条很长。" * (12 - number) for number in range(8)]
    documents.save("p", "world", "\n\n".join(texts))
    assert documents.flush(120)
    return documents


def test_the_best_chunks_come_with_score_and_cost(setting: DocumentService) -> None:
    packed = setting.retrieve("p", "灯塔守夜人的规矩", min_score=0.1)
    assert len(packed.chunks) == 5
    assert not packed.truncated
    scores = [one.score for one in packed.chunks if one.score is not None]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 5
    for one in packed.chunks:
        assert one.document_id == "world"
        assert one.token_estimate == estimate_tokens(one.text)
    assert packed.used_tokens == sum(one.token_estimate for one in packed.chunks)


def test_over_budget_the_best_are_kept_and_it_is_told(setting: DocumentService) -> None:
    whole = setting.retrieve("p", "灯塔守夜人的规矩", min_score=0.1, top_k=8, max_tokens=100_000)
    packed = setting.retrieve("p", "灯塔守夜人的规矩", min_score=0.1, top_k=8, max_tokens=160)
    assert packed.truncated
    assert not whole.truncated
    assert 0 < packed.used_tokens <= 160
    assert packed.chunks[0] == whole.chunks[0]
    kept = [whole.chunks.index(one) for one in packed.chunks]
    assert kept == sorted(kept)


def test_nothing_found_is_an_empty_answer(setting: DocumentService) -> None:
    for project, query in (("p", "completely unrelated words"), ("nowhere", "灯塔"), ("p", "")):
        packed = setting.retrieve(project, query, min_score=0.99)
        assert (packed.chunks, packed.used_tokens, packed.truncated, packed.degraded) == ((), 0, False, False)


def test_without_a_model_words_are_retrieved_and_it_is_told(setting: DocumentService, embedder: FakeEmbedder) -> None:
    embedder.fail_with = ModelNotReady("gone")
    packed = setting.retrieve("p", "灯塔 规矩")
    assert packed.degraded
    assert packed.reason == "vector:MODEL_NOT_READY"
    assert packed.notice is not None
    assert packed.chunks
    assert all(one.score is None for one in packed.chunks)


def test_defaults_can_be_changed_in_part_and_are_kept(tmp_path: Path) -> None:
    library = Library(tmp_path, FakeEmbedder())
    assert library.documents.config() == RagConfig(top_k=5, min_score=0.7, max_tokens=1500)
    assert library.documents.update_config(top_k=3) == RagConfig(top_k=3, min_score=0.7, max_tokens=1500)
    library.documents.update_config(min_score=0.0, max_tokens=9000)
    library.close()
    again = Library(tmp_path, FakeEmbedder())
    assert again.documents.config() == RagConfig(top_k=3, min_score=0.0, max_tokens=9000)
    again.documents.save("p", "d", novel(10))
    assert again.documents.flush(120)
    assert len(again.documents.retrieve("p", "夜晚").chunks) == 3
    again.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_k": True},
        {"min_score": 2},
        {"min_score": "high"},
        {"max_tokens": -5},
        {"topK": 3},
    ],
)
def test_wrong_defaults_are_refused_and_nothing_changes(documents: DocumentService, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        documents.update_config(**{"max_tokens": 10, **changes})
    assert documents.config() == RagConfig()
