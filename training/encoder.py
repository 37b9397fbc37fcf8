"""The sentence encoder in torch: a six-layer BERT with mean pooling and unit-length output.

Parameter names are those of Hugging Face's BertModel, so weights travel both ways without renaming. Rows of one
batch may be of equal length (no mask: the fast attention kernel) or padded (a mask is derived from id 0).
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

HIDDEN, HEADS, LAYERS, INNER, POSITIONS = 384, 12, 6, 1536, 512
EPSILON = 1e-12

# cuDNN's attention plans anew for every shape it meets, and batches here have hundreds of shapes.
torch.backends.cuda.enable_cudnn_sdp(False)


class _Linear(nn.Linear):
    """A linear layer that computes in the dtype of its input; the parameters stay float32 for the optimiser."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class _Norm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, (HIDDEN,), self.weight.to(x.dtype), self.bias.to(x.dtype), EPSILON)


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Module()
        self.attention.self = nn.Module()
        for name in ("query", "key", "value"):
            setattr(self.attention.self, name, _Linear(HIDDEN, HIDDEN))
        self.attention.output = nn.Module()
        self.attention.output.dense = _Linear(HIDDEN, HIDDEN)
        self.attention.output.LayerNorm = _Norm(HIDDEN)
        self.intermediate = nn.Module()
        self.intermediate.dense = _Linear(HIDDEN, INNER)
        self.output = nn.Module()
        self.output.dense = _Linear(INNER, HIDDEN)
        self.output.LayerNorm = _Norm(HIDDEN)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rows, length, _ = x.shape
        heads = self.attention.self
        # One product for query, key and value: a third of the launches, and larger matrices.
        weight = torch.cat([heads.query.weight, heads.key.weight, heads.value.weight]).to(x.dtype)
        bias = torch.cat([heads.query.bias, heads.key.bias, heads.value.bias]).to(x.dtype)
        qkv = functional.linear(x, weight, bias).view(rows, length, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attn_mask=mask)
        seen = seen.transpose(1, 2).reshape(rows, length, HIDDEN)
        x = self.attention.output.LayerNorm(x + self.attention.output.dense(seen))
        return self.output.LayerNorm(x + self.output.dense(functional.gelu(self.intermediate.dense(x))))


class Encoder(nn.Module):
    """Token ids (rows × length, 0 = padding) to unit vectors (rows × 384, float32)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embeddings = nn.Module()
        self.embeddings.word_embeddings = nn.Embedding(vocabulary, HIDDEN)
        self.embeddings.position_embeddings = nn.Embedding(POSITIONS, HIDDEN)
        self.embeddings.token_type_embeddings = nn.Embedding(2, HIDDEN)
        self.embeddings.LayerNorm = _Norm(HIDDEN)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer() for _ in range(LAYERS))

    @property
    def vocabulary(self) -> int:
        return self.embeddings.word_embeddings.num_embeddings

    def forward(self, ids: Tensor, *, padded: bool = False, dtype: torch.dtype | None = None) -> Tensor:
        dtype = dtype or (torch.bfloat16 if ids.is_cuda else torch.float32)
        part = self.embeddings
        x = part.word_embeddings(ids) + part.position_embeddings.weight[: ids.shape[1]]
        x = part.LayerNorm((x + part.token_type_embeddings.weight[0]).to(dtype))
        real = ids != 0
        mask = real[:, None, None, :] if padded else None
        for layer in self.encoder.layer:
            x = layer(x, mask)
        x = x.float()
        if padded:
            x = x * real[:, :, None]
            return functional.normalize(x.sum(1) / real.sum(1, keepdim=True), dim=-1)
        return functional.normalize(x.mean(1), dim=-1)


def load(path: Path, vocabulary: int | None = None) -> Encoder:
    """An encoder with the weights of a safetensors file; `vocabulary` may ask for more rows than the file holds."""
    tensors = {name: value.float() for name, value in load_file(path).items() if "pooler" not in name}
    tensors.pop("embeddings.position_ids", None)
    words = tensors["embeddings.word_embeddings.weight"]
    if vocabulary is not None and vocabulary > len(words):
        extra = torch.zeros(vocabulary - len(words), HIDDEN)
        tensors["embeddings.word_embeddings.weight"] = torch.cat([words, extra])
    model = Encoder(len(tensors["embeddings.word_embeddings.weight"]))
    model.load_state_dict(tensors)
    return model


def save(model: Encoder, folder: Path) -> None:
    """Writes `weights.safetensors` (float16) and `config.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.detach().half().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, folder / "weights.safetensors")
    config = {
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "layer_norm_eps": EPSILON,
        "max_position_embeddings": POSITIONS,
        "model_type": "bert",
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": model.vocabulary,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
