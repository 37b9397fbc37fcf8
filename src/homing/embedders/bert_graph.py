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
