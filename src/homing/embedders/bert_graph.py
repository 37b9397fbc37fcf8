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

from homing.embedders.model_folder import WEIGHTS
from homing.errors import InvalidArgument, MissingExtra

Weights = Mapping[str, npt.NDArray[Any]]
"""Arrays by their BertModel name, e.g. `encoder.layer.0.attention.self.query.weight`."""
CONTRIB = "com.microsoft"
OPSET = 17
MIN_APART, ALIGNED = 1024, 64
"""Bytes of a constant that is kept apart from the graph, and what its place there is a multiple of."""


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


def split_weights(graph: bytes) -> tuple[bytes, bytes]:
    """A graph and, apart from it, its large constants: a file that is mapped into memory instead of read and copied."""
    onnx = _import_onnx()
    model, weights = onnx.load_from_string(graph), bytearray()
    for constant in model.graph.initializer:
        if (size := len(constant.raw_data)) >= MIN_APART:
            weights += bytes(-len(weights) % ALIGNED)
            onnx.external_data_helper.set_external_data(constant, WEIGHTS, len(weights), size)
            weights += constant.raw_data
            constant.ClearField("raw_data")
    return model.SerializeToString(), bytes(weights)


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
        scale = 1 / math.sqrt(self.config.hidden / self.config.heads)
        context = self._as_rows(self.attention(heads, scale), out=f"{layer}.context")
        [attended] = self.linear(context, [attention + "output.dense"])
        middle = self._norm(self.node("Add", [attended, hidden]), attention + "output.LayerNorm", f"{layer}.middle")
        [wide] = self.linear(middle, [prefix + "intermediate.dense"])
        wide = self.node("Gelu", [wide], domain=CONTRIB, out=f"{layer}.gelu")
        [narrow] = self.linear(wide, [prefix + "output.dense"])
        return self._norm(self.node("Add", [narrow, middle]), prefix + "output.LayerNorm")

    def attention(self, heads: list[str], scale: float) -> str:
        """What each token takes from the others, of queries, keys and values."""
        return self.node("MultiHeadAttention", heads, domain=CONTRIB, num_heads=self.config.heads, scale=scale)

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
        import onnx.external_data_helper
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingExtra("building a model needs the onnx library: pip install 'homing[models]'") from error
    return onnx
