"""The graph against the encoder written out in numpy, on small random weights."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from homing.embedders.bert_graph import BertConfig, build_fp32, tap_names
from homing.embedders.local import open_session
from homing.errors import InvalidArgument, MissingExtra
from training.int8_graph import Range, balance, build_int8, grid_over, quantise_columns, quantise_rows

Floats = npt.NDArray[np.float32]
WIDTH, INNER, HEADS, LAYERS, WORDS, PLACES = 32, 64, 4, 2, 50, 16
CONFIG = BertConfig(layers=LAYERS, hidden=WIDTH, heads=HEADS, layer_norm_eps=1e-12, max_tokens=PLACES)
IDS = np.array([[1, 7, 7, 30, 2], [1, 49, 3, 8, 2], [1, 5, 6, 7, 2]], dtype=np.int64)


def random_weights() -> dict[str, Floats]:
    draw = np.random.default_rng(3)

    def normal(*shape: int) -> Floats:
        return draw.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": normal(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": normal(PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": normal(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        linears = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linears |= {"attention.output.dense": (WIDTH, WIDTH)}
        linears |= {"intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}
        for name, shape in linears.items():
            weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"] = normal(*shape), normal(shape[0])
        norms += [prefix + "attention.output.LayerNorm", prefix + "output.LayerNorm"]
    for norm in norms:
        weights[norm + ".weight"], weights[norm + ".bias"] = 1 + normal(WIDTH), normal(WIDTH)
    return weights


def written_out(weights: dict[str, Floats], ids: npt.NDArray[np.int64]) -> Any:
    """One text through the encoder, as the paper has it."""

    def linear(rows: Any, name: str) -> Any:
        return rows @ weights[name + ".weight"].T + weights[name + ".bias"]

    def norm(rows: Any, name: str) -> Any:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + CONFIG.layer_norm_eps)
        return centred / spread * weights[name + ".weight"] + weights[name + ".bias"]

    places = weights["embeddings.position_embeddings.weight"][: len(ids)]
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(weights["embeddings.word_embeddings.weight"][ids] + places + segment, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        q, k, v = (
            linear(x, f"{prefix}attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH / HEADS))
        context = (scores / scores.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = norm(x + linear(context, prefix + "attention.output.dense"), prefix + "attention.output.LayerNorm")
        wide = linear(x, prefix + "intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = norm(x + linear(wide, prefix + "output.dense"), prefix + "output.LayerNorm")
    mean = x.mean(axis=0)
    return mean / np.linalg.norm(mean)


def run(graph: bytes, outputs: list[str] | None = None) -> list[Floats]:
    # With the kernels that are exact on every processor: what others make of a graph is not the graph's doing.
    answer: list[Floats] = open_session(graph, exact=True).run(outputs, {"ids": IDS})
    return answer


def test_the_graph_computes_what_the_encoder_says() -> None:
    weights = random_weights()
    [rows] = run(build_fp32(weights, CONFIG))
    np.testing.assert_allclose(rows, [written_out(weights, ids) for ids in IDS], atol=1e-5)


def test_checkpoints_with_a_prefix_are_read_alike() -> None:
    weights = random_weights()
    prefixed = {f"bert.{name}": value for name, value in weights.items()}
    np.testing.assert_array_equal(run(build_fp32(prefixed, CONFIG))[0], run(build_fp32(weights, CONFIG))[0])


@pytest.mark.parametrize("fine_layers", [0, 1, 2])
def test_the_int8_graph_stays_close(fine_layers: int) -> None:
    weights, taps = random_weights(), tap_names(CONFIG)
    seen = run(build_fp32(weights, CONFIG, taps=True), taps)
    ranges = {tap: Range(rows.min(axis=0), rows.max(axis=0)) for tap, rows in zip(taps, seen, strict=True)}
    [exact], [rounded] = (
        run(build_fp32(weights, CONFIG)),
        run(build_int8(weights, CONFIG, ranges, fine_layers=fine_layers)),
    )
    assert (exact * rounded).sum(axis=1).min() > 0.995


def test_rounding_to_int8_errs_by_half_a_step_at_most() -> None:
    table = np.random.default_rng(0).normal(0, 1, (20, 30)).astype(np.float32)
    rows, row_scale = quantise_rows(table)
    assert (np.abs(rows * row_scale[:, None] - table) <= row_scale[:, None] * 0.501).all()
    columns, column_scale = quantise_columns(table)
    assert (np.abs(columns * column_scale - table) <= column_scale * 0.501).all()


def test_a_grid_spans_what_was_seen_and_holds_zero() -> None:
    grid = grid_over(Range(np.array([-1.0], np.float32), np.array([3.0], np.float32)))
    ends = (np.array([0, 255]) - int(grid.zero)) * float(grid.scale)
    np.testing.assert_allclose(ends, [-1, 3], atol=float(grid.scale))


def test_balancing_turns_loud_channels_down() -> None:
    seen = Range(np.array([-30.0, -1.0, -1.0], np.float32), np.array([30.0, 1.0, 1.0], np.float32))
    factors = balance(seen, [np.ones((3, 4), np.float32)])
    assert factors[0] < factors[1] == factors[2]
    assert np.log(factors).sum() == pytest.approx(0, abs=1e-5)


def test_another_architecture_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="BERT"):
        BertConfig.from_json({"model_type": "roberta", "hidden_act": "gelu"})


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"homing\[models\]"):
        build_fp32(random_weights(), CONFIG)
