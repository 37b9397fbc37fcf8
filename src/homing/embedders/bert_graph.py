"""The ONNX graph of a BERT sentence encoder, written from its weights without torch.

The graph reads token ids of one length (batch, tokens) and answers unit-length sentence vectors (batch, hidden): encoder,
mean over the tokens, L2. It has no attention mask: texts of different length do not share a batch, so padding can
neither cost time nor change a vector.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True, slots=True)
class Range:
    """The values an activation was seen to take: for each channel its smallest and its largest."""

    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]


Ranges = Mapping[str, Range]
"""Ranges by the name of the tap (see `tap_names`)."""


def tap_names(config: BertConfig) -> list[str]:
    """The activations that enter a matrix product with weights: what static quantisation must know the range of."""
    return [f"{layer}.{tap}" for layer in range(config.layers) for tap in ("input", "context", "middle", "gelu")]


def build_fp32(weights: Weights, config: BertConfig, *, taps: bool = False) -> bytes:
    """The serialised graph in float32; with `taps`, every activation of `tap_names` is an output as well."""
    graph = _Encoder(weights, config, None)
    return graph.build(tap_names(config) if taps else [])


def build_int8(weights: Weights, config: BertConfig, ranges: Ranges) -> bytes:
    """The serialised graph with int8 weights and static activation ranges.

    The ranges are constants of the graph, so a text's vector cannot depend on the texts beside it.
    """
    return _Encoder(weights, config, ranges).build([])


class _Encoder:
    """Writes the graph node by node; every method returns the name of what it computed."""

    def __init__(self, weights: Weights, config: BertConfig, ranges: Ranges | None) -> None:
        self._w = {name: np.asarray(array, dtype=np.float32) for name, array in bare_names(weights).items()}
        self._config = config
        self._ranges = ranges
        self._onnx = _import_onnx()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self, taps: list[str]) -> bytes:
        onnx, config = self._onnx, self._config
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
            + [value(tap, onnx.TensorProto.FLOAT, None) for tap in taps],
            self._constants,
        )
        opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(CONTRIB, 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, producer_name="homing", ir_version=8)
        serialised: bytes = model.SerializeToString()
        return serialised

    def _embeddings(self) -> str:
        prefix = "embeddings."
        table = self._w[prefix + "word_embeddings.weight"]
        if self._ranges is None:
            words = self._node("Gather", [self._constant("words", table), "ids"])
        else:
            quantised, scale = quantise_rows(table)
            rows = self._node("Gather", [self._constant("words", quantised), "ids"])
            scales = self._node("Gather", [self._constant("words.scale", scale[:, None]), "ids"])
            words = self._node("Mul", [self._node("Cast", [rows], to=self._onnx.TensorProto.FLOAT), scales])
        # Every text is a single segment, so the segment's row is part of each position's.
        places = self._w[prefix + "position_embeddings.weight"] + self._w[prefix + "token_type_embeddings.weight"][0]
        shape = self._node("Shape", ["ids"], out="shape")
        tokens = self._node("Slice", [shape, self._ints("one", [1]), self._ints("two", [2])])
        here = self._node("Slice", [self._constant("places", places), self._ints("zero", [0]), tokens])
        self._node("Concat", [shape, self._ints("hidden", [self._config.hidden])], axis=0, out="batch_shape")
        flat = self._node("Reshape", [self._node("Add", [words, here]), self._ints("flat", [-1, self._config.hidden])])
        norm = prefix + "LayerNorm."
        return self._node(
            "LayerNormalization",
            [flat, self._constant(norm + "weight"), self._constant(norm + "bias")],
            epsilon=self._config.layer_norm_eps,
        )

    def _layer(self, layer: int, hidden: str) -> str:
        prefix = f"encoder.layer.{layer}."
        attention = prefix + "attention."
        hidden = self._tap(f"{layer}.input", hidden)
        heads = [
            self._as_batch(self._linear(hidden, f"{layer}.input", f"{attention}self.{part}"))
            for part in ("query", "key", "value")
        ]
        context = self._node(
            "MultiHeadAttention", heads, domain=CONTRIB, num_heads=self._config.heads,
            scale=1 / math.sqrt(self._config.hidden / self._config.heads),
        )  # fmt: skip
        context = self._tap(f"{layer}.context", self._node("Reshape", [context, "flat"]))
        attended = self._linear(context, f"{layer}.context", attention + "output.dense")
        middle = self._add_and_norm(attended, hidden, attention + "output.LayerNorm.")
        middle = self._tap(f"{layer}.middle", middle)
        wide = self._linear(middle, f"{layer}.middle", prefix + "intermediate.dense")
        wide = self._tap(f"{layer}.gelu", self._node("Gelu", [wide], domain=CONTRIB))
        narrow = self._linear(wide, f"{layer}.gelu", prefix + "output.dense")
        return self._add_and_norm(narrow, middle, prefix + "output.LayerNorm.")

    def _linear(self, rows: str, tap: str, name: str) -> str:
        weight, bias = self._w[name + ".weight"].T, self._w[name + ".bias"]
        if self._ranges is None:
            return self._node("Gemm", [rows, self._constant(name + ".weight", weight), self._constant(name + ".bias")])
        scale, zero = activation_grid(self._ranges[tap])
        quantised, weight_scale = quantise_columns(weight)
        steps = weight_scale * scale
        scale_name, zero_name = self._constant(tap + ".scale", scale), self._constant(tap + ".zero", zero)
        return self._node(
            "QGemm",
            [
                self._quantised(rows, tap, scale_name, zero_name), scale_name, zero_name,
                self._constant(name + ".weight", quantised),
                self._constant(name + ".scale", weight_scale),
                self._constant(name + ".zero", np.zeros_like(weight_scale, dtype=np.int8)),
                self._constant(name + ".bias", np.rint(bias / steps).astype(np.int32)),
            ],
            domain=CONTRIB,
        )  # fmt: skip

    def _quantised(self, rows: str, tap: str, scale: str, zero: str) -> str:
        out = tap + ".u8"
        if not any(out in node.output for node in self._nodes):
            self._node("QuantizeLinear", [rows, scale, zero], out=out)
        return out

    def _add_and_norm(self, rows: str, residual: str, norm: str) -> str:
        return self._node(
            "SkipLayerNormalization",
            [rows, residual, self._constant(norm + "weight"), self._constant(norm + "bias")],
            domain=CONTRIB, epsilon=self._config.layer_norm_eps,
        )  # fmt: skip

    def _as_batch(self, rows: str) -> str:
        return self._node("Reshape", [rows, "batch_shape"])

    def _tap(self, name: str, value: str) -> str:
        for node in self._nodes:
            if value in node.output:
                node.output[list(node.output).index(value)] = name
        return name

    def _node(self, op: str, inputs: list[str], *, domain: str = "", out: str = "", **attributes: Any) -> str:
        out = out or f"{op}.{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(op, inputs, [out], domain=domain, **attributes))
        return out

    def _constant(self, name: str, value: npt.NDArray[Any] | None = None) -> str:
        if not any(constant.name == name for constant in self._constants):
            array = np.ascontiguousarray(self._w[name] if value is None else value)
            self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _ints(self, name: str, values: list[int]) -> str:
        return self._constant(name, np.array(values, dtype=np.int64))


def quantise_columns(weight: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Symmetric int8 with one scale for each output column: `weight ≈ quantised * scale`."""
    quantised, scale = quantise_rows(np.ascontiguousarray(weight.T))
    return np.ascontiguousarray(quantised.T), scale


def quantise_rows(table: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Symmetric int8 with one scale for each row: `table ≈ quantised * scale[:, None]`."""
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12).astype(np.float32) / np.float32(127)
    return np.rint(table / scale[:, None]).astype(np.int8), scale


def activation_grid(seen: Range) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Scale and zero point of the uint8 grid that spans everything seen, and zero exactly."""
    low, high = min(float(seen.low.min()), 0.0), max(float(seen.high.max()), 0.0)
    scale = max((high - low) / 255, 1e-12)
    return np.float32(scale).reshape(()), np.uint8(round(-low / scale)).reshape(())


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra("building a model needs the onnx library: pip install 'homing[models]'") from error
    return onnx
