"""Scores that read alike whatever the model: fitting its scale."""

from __future__ import annotations

import numpy as np
import pytest

from homing.embedders.local import LocalProvider
from homing.errors import InvalidArgument
from homing.models.calibrate import MAX_PAIRS, Pair, calibrate, keep_scale, pairs_of, shipped_pairs
from homing.models.config_service import LLMConfigService
from homing.models.manager import LLMManager
from homing.testing.fake import FakeEmbedder

pytestmark = pytest.mark.slow

ARTICLE = """# 灯塔的历史

灯塔是建在海边的高塔。它在夜里发出亮光，为来往的船只指明方向。

# Coffee

Coffee is brewed from roasted beans. The grind and the temperature of the water decide how it tastes.
"""


def test_the_shipped_pairs_are_bilingual_and_distinct() -> None:
    pairs = shipped_pairs()
    assert len(pairs) == 150
    assert len({(pair.question, pair.answer) for pair in pairs}) == 150
    asked_in_chinese = [not pair.question.isascii() for pair in pairs]
    answered_in_chinese = [not pair.answer.isascii() for pair in pairs]
    kinds = {(asked, answered) for asked, answered in zip(asked_in_chinese, answered_in_chinese, strict=True)}
    assert kinds == {(True, True), (False, False), (True, False)}


def test_the_border_lies_between_related_and_unrelated_pairs_of_the_bundled_model() -> None:
    fitted = calibrate(LocalProvider(), shipped_pairs())
    assert fitted.pairs == 150
    assert fitted.related_above > 0.85
    assert fitted.unrelated_below > 0.85
    rows = LocalProvider().embed(["怎么种番茄", "growing tomatoes in the garden", "公司的年终晚会"])
    assert fitted.scale.score(float(rows[0] @ rows[1])) > 0.5 > fitted.scale.score(float(rows[0] @ rows[2]))


def test_pairs_of_ones_own_texts_are_headings_and_first_sentences_with_what_follows() -> None:
    found = pairs_of([ARTICLE, "没有第二句"])
    assert {pair.question for pair in found} == {"灯塔的历史", "Coffee"}
    assert all(pair.source == 0 for pair in found)
    assert "指明方向" in found[0].answer


def test_many_texts_are_sampled_alike_every_time() -> None:
    texts = [
        f"# 标题 {number}\n\n这是第 {number} 篇文章的正文，写的是第 {number} 件事。" for number in range(MAX_PAIRS + 50)
    ]
    assert len(pairs_of(texts)) == MAX_PAIRS
    assert pairs_of(texts) == pairs_of(texts)


def test_ones_own_corpus_fits_a_scale() -> None:
    words = np.random.default_rng(3).permutation(4000).tolist()
    texts = [
        f"# topic{words[at]} matter{words[at + 1]}\n\nAll about topic{words[at]} and matter{words[at + 1]}, of course."
        for at in range(0, 120, 2)
    ]
    fitted = calibrate(FakeEmbedder(256), pairs_of(texts))
    assert fitted.related_above == fitted.unrelated_below == 1.0
    assert 0.1 < fitted.scale.border < 0.9


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "paragraphs of several sentences"),
        ([Pair("一样", "相同", 0)], "about the same"),
        ([Pair(f"问{n}", f"答{n}", n) for n in range(5)], "too few"),
    ],
)
def test_too_little_to_go_by_is_refused(pairs: list[Pair], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        calibrate(FakeEmbedder(), pairs)


def test_a_kept_scale_is_used_from_the_next_call(service: LLMConfigService, manager: LLMManager) -> None:
    model = service.ensure_default_embedding_model()
    fitted = calibrate(manager.get_or_create_adapter(manager.model_registry.find_model()), shipped_pairs())
    keep_scale(service, model, fitted.scale)
    assert manager.get_or_create_adapter(manager.model_registry.find_model()).scale == fitted.scale
    assert service.get_model(model.id).model_config.dimensions == 384
