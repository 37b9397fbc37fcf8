"""The int8 form of the encoder: products of uint8 rows and int8 columns, summed in int32, exactly.

Activations have a few channels with values ten times those of the others, and one grid must span them all. A matrix
product lets us move that burden: `x @ W = (x * f) @ (W / f)` for any factor f per channel, so loud channels are turned
down and their weights, which have a grid of their own for each column, are turned up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from homing.embedders.bert_graph import CONTRIB, BertConfig, Encoder, Weights

Floats = npt.NDArray[np.float32]

SHARE = 0.8
"""How much of a channel's loudness moves into the weights. Measured: .7 to .85 are alike, .5 and 1 are worse."""
FINE_LAYERS = 2
"""How many layers, from the first, round what enters and leaves the gelu to two bytes instead of one.

A neuron there speaks many times as loud as the rest, and every later layer builds on what is rounded: with one byte,
single passages fall to cosine .85 against float32, and names such as 约翰 to .92 when only its output has two.
"""


MAX_SCORE = 80.0
"""No score of an attention is larger: the exponential of a larger one leaves float32. Those seen reach 75."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values an activation was seen to take: for each channel its smallest and its largest."""

    low: Floats
    high: Floats

    def times(self, factors: Floats) -> Range:
        """The range after every channel was multiplied by its positive factor."""
        return Range(self.low * factors, self.high * factors)


@dataclass(frozen=True, slots=True)
class Grid:
    """`value ≈ (step - zero) * scale` for uint8 steps."""

    scale: npt.NDArray[Any]
    zero: npt.NDArray[Any]


def grid_over(seen: Range) -> Grid:
    """The grid that spans everything seen, with zero exactly on it. Nothing is clipped: the extremes carry meaning."""
    low, high = min(float(seen.low.min()), 0.0), max(float(seen.high.max()), 0.0)
    scale = max((high - low) / 255, 1e-12)
    return Grid(np.array(scale, dtype=np.float32), np.array(round(-low / scale), dtype=np.uint8))


def balance(seen: Range, weights: Sequence[Floats], *, share: float = SHARE) -> Floats:
    """For each channel, the factor that makes activation and weights equally hard to round.

    `weights` are the matrices (channels, columns) that the activation is multiplied with. Only the ratios of the
    factors matter; their geometric mean is 1.
    """
    loudness = np.maximum(np.maximum(np.abs(seen.low), np.abs(seen.high)), 1e-3).astype(np.float64)
    strength = np.maximum(np.max([np.abs(weight).max(axis=1) for weight in weights], axis=0), 1e-6)
    factors = strength ** (1 - share) / loudness**share
    balanced: Floats = (factors / np.exp(np.log(factors).mean())).astype(np.float32)
    return balanced


def quantise_rows(table: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 with one scale for each row: `table ≈ quantised * scale[:, None]`."""
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12).astype(np.float32) / np.float32(127)
    return np.rint(table / scale[:, None]).astype(np.int8), scale


def quantise_columns(weight: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Symmetric int8 with one scale for each column: `weight ≈ quantised * scale`."""
    quantised, scale = quantise_rows(np.ascontiguousarray(weight.T))
    return np.ascontiguousarray(quantised.T), scale


Ranges = Mapping[str, Range]
"""What each activation of `tap_names` was seen to do."""


def build_int8(weights: Weights, config: BertConfig, ranges: Ranges, *, fine_layers: int = FINE_LAYERS) -> bytes:
    """The serialised graph with int8 weights and static activation ranges.

    The ranges are constants of the graph, so a text's vector cannot depend on the texts beside it.
    """
    return _Int8Encoder(weights, config, ranges, fine_layers).build([])


class _Int8Encoder(Encoder):
    def __init__(self, weights: Weights, config: BertConfig, ranges: Ranges, fine_layers: int) -> None:
        super().__init__(weights, config)
        self._ranges = dict(ranges)
        self._fine = {f"{layer}.{tap}" for layer in range(fine_layers) for tap in ("middle", "gelu")}
        for layer in range(config.layers):
            self._balance_context(layer)

    def _balance_context(self, layer: int) -> None:
        # The context is a mean of values, so its channels are turned up and down in the weights that make the values.
        prefix, tap = f"encoder.layer.{layer}.attention.", f"{layer}.context"
        output = prefix + "output.dense.weight"
        factors = balance(self._ranges[tap], [self.weights[output].T])
        self._ranges[tap] = self._ranges[tap].times(factors)
        self.weights[output] = self.weights[output] / factors
        for part, factor in (("weight", factors[:, None]), ("bias", factors)):
            name = f"{prefix}self.value.{part}"
            self.weights[name] = self.weights[name] * factor

    def words(self, table: Floats) -> str:
        quantised, scale = quantise_rows(table)
        rows = self.node("Gather", [self.constant("words", quantised), "ids"])
        scales = self.node("Gather", [self.constant("words.scale", scale[:, None]), "ids"])
        return self.node("Mul", [self.node("Cast", [rows], to=self.onnx.TensorProto.FLOAT), scales])

    def attention(self, heads: list[str], scale: float) -> str:
        """Written out, and without onnxruntime's softmax: that adds up in another order with AVX-512 than with AVX2.

        The last bit of a sum decides now and then how a value is rounded to a step, and every later layer makes more of
        it: single texts then differ by cosine .001 between two processors. These nodes give the same bits on both.
        """
        shape = self.constant(
            "heads_shape", np.array([0, -1, self.config.heads, self.config.hidden // self.config.heads])
        )
        by = self.constant("attention.scale", np.array(scale, dtype=np.float32))
        queries, keys, values = (
            self.node("Transpose", [self.node("Reshape", [rows, shape])], perm=order)
            for rows, order in zip(
                [self.node("Mul", [heads[0], by]), *heads[1:]],
                ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]),
                strict=True,
            )
        )
        most = self.constant("most_score", np.array(MAX_SCORE, dtype=np.float32))
        scores = self.node("Clip", [self.node("MatMul", [queries, keys]), "", most])
        shares = self.node("Exp", [scores])
        total = self.node("ReduceSum", [shares, self.constant("last", np.array([-1]))], keepdims=1)
        seen = self.node("Div", [self.node("MatMul", [shares, values]), total])
        return self.node("Reshape", [self.node("Transpose", [seen], perm=[0, 2, 1, 3]), "batch_shape"])

    def linear(self, rows: str, names: list[str]) -> list[str]:
        seen, matrices = self._ranges[rows], [self.matrix(name) for name in names]
        if rows in self._fine:
            return [self._fine_product(rows, name) for name in names]
        balanced = rows
        if not rows.endswith(".context"):
            factors = balance(seen, matrices)
            seen, matrices = seen.times(factors), [matrix / factors[:, None] for matrix in matrices]
            balanced = self.node("Mul", [rows, self.constant(rows + ".factors", factors)])
        grid = grid_over(seen)
        steps = self._steps(rows, grid)
        quantised = self.node("QuantizeLinear", [balanced, *steps])
        return [
            self.node("QGemm", [quantised, *steps, *self._columns(name, matrix, grid)], domain=CONTRIB)
            for name, matrix in zip(names, matrices, strict=True)
        ]

    def _fine_product(self, rows: str, name: str) -> str:
        """The rows as steps of a coarse grid plus steps of a fine one that spans what the coarse one rounds away."""
        grid = grid_over(self._ranges[rows])
        steps = self._steps(rows, grid)
        coarse = self.node("QuantizeLinear", [rows, *steps])
        rest = self.node("Sub", [rows, self.node("DequantizeLinear", [coarse, *steps])])
        half: Floats = np.array([grid.scale / 2], dtype=np.float32)
        fine_steps = self._steps(rows + ".rest", grid_over(Range(-half, half)))
        fine = self.node("QuantizeLinear", [rest, *fine_steps])
        weight, scale, zero, bias = self._columns(name, self.matrix(name), grid)
        # onnxruntime's exact kernels (see local.py) rewrite the weights of each product: each needs its own, made as
        # the graph is loaded rather than stored twice.
        shape = self.constant(name + ".shape", np.array(self.matrix(name).shape, dtype=np.int64))
        own_weight = self.node("Reshape", [weight, shape])
        own_zero = self.constant(name + ".rest.zero", np.zeros(self.matrix(name).shape[1], dtype=np.int8))
        return self.node(
            "Add",
            [
                self.node("QGemm", [coarse, *steps, weight, scale, zero, bias], domain=CONTRIB),
                self.node("QGemm", [fine, *fine_steps, own_weight, scale, own_zero], domain=CONTRIB),
            ],
        )

    def _steps(self, name: str, grid: Grid) -> list[str]:
        return [self.constant(name + ".scale", grid.scale), self.constant(name + ".zero", grid.zero)]

    def _columns(self, name: str, matrix: Floats, grid: Grid) -> list[str]:
        """Weight, scales, zero points and bias of a linear layer whose rows come on this grid."""
        quantised, scale = quantise_columns(matrix)
        bias = np.rint(self.bias(name) / (scale * grid.scale)).astype(np.int32)
        return [
            self.constant(name + ".weight", quantised),
            self.constant(name + ".scale", scale),
            self.constant(name + ".zero", np.zeros(scale.shape, dtype=np.int8)),
            self.constant(name + ".bias", bias),
        ]
