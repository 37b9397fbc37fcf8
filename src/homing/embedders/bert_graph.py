"""The ONNX graph of a BERT sentence encoder, in float32 or int8, written from its weights without torch.

The graph reads token ids of one length (batch, tokens) and answers unit-length sentence vectors (batch, hidden):
encoder, mean over the tokens, L2. It has no attention mask: texts of different length do not share a batch, so padding
can neither cost time nor change a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from homing.errors import InvalidArgument, MissingExtra

Floats = npt.NDArray[np.float32]

# Activations have a few channels with values ten times those of the others, and one grid must span them all. A matrix
# product lets us move that burden: `x @ W = (x * f) @ (W / f)` for any factor f per channel, so loud channels are
# turned down and their weights, which have a grid of their own for each column, are turned up.
SHARE = 0.8
"""How much of a channel's loudness moves into the weights. Measured: .7 to .85 are alike, .5 and 1 are worse."""

Weights = Mapping[str, npt.NDArray[Any]]
"""Arrays by their BertModel name, e.g. `encoder.layer.0.attention.self.query.weight`."""
CONTRIB = "com.microsoft"
OPSET = 17
FINE_LAYERS = 2
"""How many layers, from the first, round what enters and leaves the gelu to two bytes instead of one.

A neuron there speaks many times as loud as the rest, and every later layer builds on what is rounded: with one byte,
single passages fall to cosine .85 against float32, and names such as 约翰 to .92 when only its output has two.
"""


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


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The measures of an encoder that its weights do not say themselves."""

    layers: int
    hidden: int
    heads: int
    layer_norm_eps: float
    max_tokens: int

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> BertConfig:
        """Reads a Hugging Face `config.json`. Refuses what this graph would silently compute differently."""
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise InvalidArgument(
                "only BERT encoders with gelu can be converted; this one is "
                f"{config.get('model_type')!r} with {config.get('hidden_act')!r}"
            )
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise InvalidArgument("only absolute position embeddings can be converted")
        return cls(
            layers=int(config["num_hidden_layers"]),
            hidden=int(config["hidden_size"]),
            heads=int(config["num_attention_heads"]),
            layer_norm_eps=float(config["layer_norm_eps"]),
            max_tokens=int(config["max_position_embeddings"]),
        )


def bare_names(weights: Weights) -> dict[str, npt.NDArray[Any]]:
    """The same weights without the `bert.` that some checkpoints put before every name."""
    return {name.removeprefix("bert."): array for name, array in weights.items()}


def tap_names(config: BertConfig) -> list[str]:
    """The activations that enter a matrix product with weights: what static quantisation must know the range of."""
    return [f"{layer}.{tap}" for layer in range(config.layers) for tap in ("input", "context", "middle", "gelu")]


def build_fp32(weights: Weights, config: BertConfig, *, taps: bool = False) -> bytes:
    """The serialised graph in float32; with `taps`, every activation of `tap_names` is an output as well."""
    return Encoder(weights, config).build(tap_names(config) if taps else [])


class Encoder:
    """Writes the graph node by node; every method returns the name of what it computed.

    Tokens of all texts are rows of one matrix, except inside the attention. Add and LayerNormalization are two nodes on
    purpose: onnxruntime's fused SkipLayerNormalization is not vectorised on a CPU and takes six times as long.
    """

    def __init__(self, weights: Weights, config: BertConfig) -> None:
        self.weights = {name: np.asarray(array, dtype=np.float32) for name, array in bare_names(weights).items()}
        self.config = config
        self.onnx = _import_onnx()
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def build(self, taps: list[str]) -> bytes:
        onnx, config = self.onnx, self.config
        self._shapes()
        hidden = self._embeddings()
        for layer in range(config.layers):
            hidden = self._layer(layer, hidden)
        mean = self.node("ReduceMean", [self._as_batch(hidden)], axes=[1], keepdims=0)
        self.node("LpNormalization", [mean], axis=-1, p=2, out="vectors")
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(
            self._nodes,
            "bert",
            [value("ids", onnx.TensorProto.INT64, ["batch", "tokens"])],
            [value("vectors", onnx.TensorProto.FLOAT, ["batch", config.hidden])]
            + [value(tap, onnx.TensorProto.FLOAT, ["rows", "channels"]) for tap in taps],
            list(self._constants.values()),
        )
        opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(CONTRIB, 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, producer_name="homing", ir_version=8)
        serialised: bytes = model.SerializeToString()
        return serialised

    def _shapes(self) -> None:
        width = self.config.hidden
        self.node("Shape", ["ids"], out="shape")
        self.node("Slice", ["shape", self._ints("one", [1]), self._ints("two", [2])], out="tokens")
        self.node("Concat", ["shape", self._ints("width", [width])], axis=0, out="batch_shape")
        self._ints("rows_shape", [-1, width])

    def _embeddings(self) -> str:
        # Every text is a single segment, so the segment's row is part of each position's.
        segment = self.weights["embeddings.token_type_embeddings.weight"][0]
        places = self.constant("places", self.weights["embeddings.position_embeddings.weight"] + segment)
        here = self.node("Slice", [places, self._ints("zero", [0]), "tokens"])
        words = self.words(self.weights["embeddings.word_embeddings.weight"])
        return self._norm(self._as_rows(self.node("Add", [words, here])), "embeddings.LayerNorm")

    def words(self, table: npt.NDArray[np.float32]) -> str:
        return self.node("Gather", [self.constant("words", table), "ids"])

    def _layer(self, layer: int, hidden: str) -> str:
        prefix = f"encoder.layer.{layer}."
        attention = prefix + "attention."
        parts = [f"{attention}self.{part}" for part in ("query", "key", "value")]
        hidden = self.node("Identity", [hidden], out=f"{layer}.input")
        heads = [self._as_batch(rows) for rows in self.linear(hidden, parts)]
        seen = self.node(
            "MultiHeadAttention", heads, domain=CONTRIB, num_heads=self.config.heads,
            scale=1 / math.sqrt(self.config.hidden / self.config.heads),
        )  # fmt: skip
        context = self._as_rows(seen, out=f"{layer}.context")
        [attended] = self.linear(context, [attention + "output.dense"])
        middle = self._norm(self.node("Add", [attended, hidden]), attention + "output.LayerNorm", f"{layer}.middle")
        [wide] = self.linear(middle, [prefix + "intermediate.dense"])
        wide = self.node("Gelu", [wide], domain=CONTRIB, out=f"{layer}.gelu")
        [narrow] = self.linear(wide, [prefix + "output.dense"])
        return self._norm(self.node("Add", [narrow, middle]), prefix + "output.LayerNorm")

    def linear(self, rows: str, names: list[str]) -> list[str]:
        """The rows through each of the named linear layers."""
        return [self._gemm(rows, name) for name in names]

    def _gemm(self, rows: str, name: str) -> str:
        weight = self.constant(name + ".weight", self.matrix(name))
        return self.node("Gemm", [rows, weight, self.constant(name + ".bias", self.bias(name))])

    def matrix(self, name: str) -> npt.NDArray[np.float32]:
        return self.weights[name + ".weight"].T

    def bias(self, name: str) -> npt.NDArray[np.float32]:
        return self.weights[name + ".bias"]

    def _norm(self, rows: str, name: str, out: str = "") -> str:
        gain, shift = (self.constant(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", [rows, gain, shift], out=out, epsilon=self.config.layer_norm_eps)

    def _as_batch(self, rows: str) -> str:
        return self.node("Reshape", [rows, "batch_shape"])

    def _as_rows(self, batch: str, out: str = "") -> str:
        return self.node("Reshape", [batch, "rows_shape"], out=out)

    def node(self, op: str, inputs: list[str], *, domain: str = "", out: str = "", **attributes: Any) -> str:
        out = out or f"{op}.{len(self._nodes)}"
        self._nodes.append(self.onnx.helper.make_node(op, inputs, [out], domain=domain, **attributes))
        return out

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        self._constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _ints(self, name: str, values: list[int]) -> str:
        return self.constant(name, np.array(values, dtype=np.int64))


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra("building a model needs the onnx library: pip install 'homing[models]'") from error
    return onnx


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
