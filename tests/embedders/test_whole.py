"""Texts beyond a model's window."""

from __future__ import annotations

import numpy as np
import pytest

from homing.embedders.local import LocalProvider
from homing.engine.batch import embed_long


@pytest.mark.slow
def test_the_end_of_a_long_text_counts_in_both_languages() -> None:
    model = LocalProvider()
    for filler, ending, question in (
        ("城市道路的养护由各区的工程队负责，每年春季检查一次。" * 80, "员工每年有十五天带薪年假。", "年假有几天"),
        (
            "The roads of the city are mended by the districts. " * 150,
            "Employees have fifteen days of leave.",
            "annual leave",
        ),
    ):
        query = model.embed([question], kind="query")[0]
        cut, whole = model.embed([filler + ending])[0], embed_long(model, [filler + ending])[0]
        only_filler = embed_long(model, [filler])[0]
        assert np.allclose(cut @ query, model.embed([filler])[0] @ query, atol=0.02)
        assert whole @ query > only_filler @ query


def test_short_texts_are_embedded_as_ever_beside_long_ones() -> None:
    model = LocalProvider()
    texts = ["短句", "一个很长的段落。" * 300, "a short one", ""]
    rows = embed_long(model, texts)
    assert np.allclose(rows[[0, 2, 3]], model.embed(["短句", "a short one", ""]), atol=1e-5)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert embed_long(model, []).shape == (0, model.dimensions)
