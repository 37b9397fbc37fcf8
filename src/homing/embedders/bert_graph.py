"""The ONNX graph of a BERT sentence encoder, written from its weights without torch.

The graph reads token ids of one length (batch, tokens) and answers unit-length sentence vectors (batch, hidden):
encoder, mean over the tokens, L2. It has no attention mask: texts of different length do not share a batch, so padding
can neither cost time nor change a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from homing.embedders.int8_grid import Range, balance, grid_over, quantise_columns, quantise_rows
from homing.errors import InvalidArgument, MissingExtra

Weights = Mapping[str, npt.NDArray[Any]]
"""Arrays by their BertModel name, e.g. `encoder.layer.0.attention.self.query.weight`."""

CONTRIB = "com.microsoft"
OPSET = 17


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


Ranges = Mapping[str, Range]
"""What an activation was seen to do, by the name of its tap (see `tap_names`)."""


def tap_names(config: BertConfig) -> list[str]:
    """The activations that enter a matrix product with weights: what static quantisation must know the range of."""
    return [f"{layer}.{tap}" for layer in range(config.layers) for tap in ("input", "context", "middle", "gelu")]


def build_fp32(weights: Weights, config: BertConfig, *, taps: bool = False) -> bytes:
    """The serialised graph in float32; with `taps`, every activation of `tap_names` is an output as well."""
    return _Encoder(weights, config).build(tap_names(config) if taps else [])


def build_int8(weights: Weights, config: BertConfig, ranges: Ranges) -> bytes:
    """The serialised graph with int8 weights and static activation ranges.

    The ranges are constants of the graph, so a text's vector cannot depend on the texts beside it.
    """
    return _Int8Encoder(weights, config, ranges).build([])


class _Encoder:
    """Writes the graph node by node; every method returns the name of what it computed.

    Tokens of all texts are rows of one matrix, except inside the attention. Add and LayerNormalization are two nodes on
    purpose: onnxruntime's fused SkipLayerNormalization is not vectorised on a CPU and takes six times as long.
    """

    def __init__(self, weights: Weights, config: BertConfig) -> None:
        self._weights = {name: np.asarray(array, dtype=np.float32) for name, array in bare_names(weights).items()}
        self._config = config
        self._onnx = _import_onnx()
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def build(self, taps: list[str]) -> bytes:
        onnx, config = self._onnx, self._config
        self._shapes()
        hidden = self._embeddings()
        for layer in range(config.layers):
            hidden = self._layer(layer, hidden)
        mean = self._node("ReduceMean", [self._as_batch(hidden)], axes=[1], keepdims=0)
        self._node("LpNormalization", [mean], axis=-1, p=2, out="vectors")
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
        width = self._config.hidden
        self._node("Shape", ["ids"], out="shape")
        self._node("Slice", ["shape", self._ints("one", [1]), self._ints("two", [2])], out="tokens")
        self._node("Concat", ["shape", self._ints("width", [width])], axis=0, out="batch_shape")
        self._ints("rows_shape", [-1, width])

    def _embeddings(self) -> str:
        # Every text is a single segment, so the segment's row is part of each position's.
        segment = self._weights["embeddings.token_type_embeddings.weight"][0]
        places = self._constant("places", self._weights["embeddings.position_embeddings.weight"] + segment)
        here = self._node("Slice", [places, self._ints("zero", [0]), "tokens"])
        words = self._words(self._weights["embeddings.word_embeddings.weight"])
        return self._norm(self._as_rows(self._node("Add", [words, here])), "embeddings.LayerNorm")

    def _words(self, table: npt.NDArray[np.float32]) -> str:
        return self._node("Gather", [self._constant("words", table), "ids"])

    def _layer(self, layer: int, hidden: str) -> str:
        prefix = f"encoder.layer.{layer}."
        attention = prefix + "attention."
        parts = [f"{attention}self.{part}" for part in ("query", "key", "value")]
        hidden = self._node("Identity", [hidden], out=f"{layer}.input")
        heads = [self._as_batch(rows) for rows in self._linear(hidden, parts)]
        seen = self._node(
            "MultiHeadAttention", heads, domain=CONTRIB, num_heads=self._config.heads,
            scale=1 / math.sqrt(self._config.hidden / self._config.heads),
        )  # fmt: skip
        context = self._as_rows(seen, out=f"{layer}.context")
        [attended] = self._linear(context, [attention + "output.dense"])
        middle = self._norm(self._node("Add", [attended, hidden]), attention + "output.LayerNorm", f"{layer}.middle")
        [wide] = self._linear(middle, [prefix + "intermediate.dense"])
        wide = self._node("Gelu", [wide], domain=CONTRIB, out=f"{layer}.gelu")
        [narrow] = self._linear(wide, [prefix + "output.dense"])
        return self._norm(self._node("Add", [narrow, middle]), prefix + "output.LayerNorm")

    def _linear(self, rows: str, names: list[str]) -> list[str]:
        """The rows through each of the named linear layers."""
        return [self._gemm(rows, name) for name in names]

    def _gemm(self, rows: str, name: str) -> str:
        weight = self._constant(name + ".weight", self._matrix(name))
        return self._node("Gemm", [rows, weight, self._constant(name + ".bias", self._bias(name))])

    def _matrix(self, name: str) -> npt.NDArray[np.float32]:
        return self._weights[name + ".weight"].T

    def _bias(self, name: str) -> npt.NDArray[np.float32]:
        return self._weights[name + ".bias"]

    def _norm(self, rows: str, name: str, out: str = "") -> str:
        gain, shift = (self._constant(f"{name}.{part}", self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._node("LayerNormalization", [rows, gain, shift], out=out, epsilon=self._config.layer_norm_eps)

    def _as_batch(self, rows: str) -> str:
        return self._node("Reshape", [rows, "batch_shape"])

    def _as_rows(self, batch: str, out: str = "") -> str:
        return self._node("Reshape", [batch, "rows_shape"], out=out)

    def _node(self, op: str, inputs: list[str], *, domain: str = "", out: str = "", **attributes: Any) -> str:
        out = out or f"{op}.{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(op, inputs, [out], domain=domain, **attributes))
        return out

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        self._constants[name] = self._onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def _ints(self, name: str, values: list[int]) -> str:
        return self._constant(name, np.array(values, dtype=np.int64))


class _Int8Encoder(_Encoder):
    """The same encoder with every matrix as int8: products of uint8 rows and int8 columns, summed in int32, exactly."""

    def __init__(self, weights: Weights, config: BertConfig, ranges: Ranges) -> None:
        super().__init__(weights, config)
        self._ranges = dict(ranges)
        for layer in range(config.layers):
            self._balance_context(layer)

    def _balance_context(self, layer: int) -> None:
        # The context is a mean of values, so its channels are turned up and down in the weights that make the values.
        prefix = f"encoder.layer.{layer}.attention."
        output = prefix + "output.dense.weight"
        seen = self._ranges[f"{layer}.context"]
        factors = balance(seen, [self._weights[output].T])
        self._ranges[f"{layer}.context"] = seen.times(factors)
        self._weights[output] = self._weights[output] / factors
        for part, factor in (("weight", factors[:, None]), ("bias", factors)):
            name = f"{prefix}self.value.{part}"
            self._weights[name] = self._weights[name] * factor

    def _words(self, table: npt.NDArray[np.float32]) -> str:
        quantised, scale = quantise_rows(table)
        rows = self._node("Gather", [self._constant("words", quantised), "ids"])
        scales = self._node("Gather", [self._constant("words.scale", scale[:, None]), "ids"])
        return self._node("Mul", [self._node("Cast", [rows], to=self._onnx.TensorProto.FLOAT), scales])

    def _linear(self, rows: str, names: list[str]) -> list[str]:
        seen, matrices = self._ranges[rows], [self._matrix(name) for name in names]
        if not rows.endswith(".context"):
            factors = balance(seen, matrices)
            seen, matrices = seen.times(factors), [matrix / factors[:, None] for matrix in matrices]
            balanced = self._node("Mul", [rows, self._constant(rows + ".factors", factors)])
        else:
            balanced = rows
        grid = grid_over(seen)
        steps = [self._constant(rows + ".scale", grid.scale), self._constant(rows + ".zero", grid.zero)]
        quantised = self._node("QuantizeLinear", [balanced, *steps])
        return [
            self._product(quantised, steps, float(grid.scale), name, matrix)
            for name, matrix in zip(names, matrices, strict=True)
        ]

    def _product(
        self, rows: str, steps: list[str], row_scale: float, name: str, matrix: npt.NDArray[np.float32]
    ) -> str:
        quantised, scale = quantise_columns(matrix)
        bias = np.rint(self._bias(name) / (scale * row_scale)).astype(np.int32)
        inputs = [
            self._constant(name + ".weight", quantised),
            self._constant(name + ".scale", scale),
            self._constant(name + ".zero", np.zeros(scale.shape, dtype=np.int8)),
            self._constant(name + ".bias", bias),
        ]
        return self._node("QGemm", [rows, *steps, *inputs], domain=CONTRIB)


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra("building a model needs the onnx library: pip install 'homing[models]'") from error
    return onnx
