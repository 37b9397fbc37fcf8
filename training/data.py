"""Token arrays on disk and in memory: many texts in one flat array, each a (start, length) slice of it."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

CLS, SEP, UNKNOWN = 101, 102, 100
LONGEST = 254  # tokens between [CLS] and [SEP]: 256 in all, the teacher's own limit


@dataclass(frozen=True)
class Texts:
    """Token ids without [CLS] and [SEP]; neighbours in the list are neighbours in `flat`."""

    flat: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


def read_jsonl(path: Path) -> Iterator[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def tokenise(tokenizer: Tokenizer, texts: list[str], *, step: int = 50_000) -> Texts:
    parts: list[np.ndarray] = []
    lengths: list[int] = []
    for start in range(0, len(texts), step):
        for encoding in tokenizer.encode_batch_fast(texts[start : start + step], add_special_tokens=False):
            parts.append(np.array(encoding.ids, dtype=np.uint16))
            lengths.append(len(encoding))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Texts(np.concatenate(parts) if parts else np.zeros(0, np.uint16), offsets)


def save_texts(path: Path, groups: dict[str, Texts], **arrays: np.ndarray) -> None:
    for name, texts in groups.items():
        arrays[f"{name}.flat"], arrays[f"{name}.offsets"] = texts.flat, texts.offsets
    np.savez(path, **arrays)


def load_texts(file: np.lib.npyio.NpzFile, name: str) -> Texts:
    return Texts(file[f"{name}.flat"], file[f"{name}.offsets"])
