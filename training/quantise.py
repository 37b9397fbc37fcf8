"""What the activations of the encoder do on real text: the static ranges that its int8 form is built on."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from homing.embedders.bert_graph import BertConfig, Weights, build_fp32, tap_names
from int8_graph import Range, Ranges

# Odd input, too, must stay inside the ranges: it is what reaches their ends.
ODD = (
    "", "?", "。", "🙂🚀", "0" * 90, "1 2 3 4 5 6 7 8 9", "!!!!!!!!!!", "……", "{}[]()<>",
    "https://example.org/a?b=c&d=e#f", "SELECT * FROM t WHERE a = 'b';", "def f(x): return x ** 2", "x", "的",
    "的的的的的的的的",
    "yes yes yes yes yes yes",
)  # fmt: skip


def sample_texts(folder: Path, count: int, *, seed: int = 0) -> list[str]:
    """`count` texts of both languages, from words to passages, drawn from the training files; the same every time."""
    draw = random.Random(seed)
    parts = [
        _draw(draw, (text for row in _rows(folder / "pairs.jsonl.xz") for text in (row["en"], row["zh"])), count // 2),
        _draw(draw, (row["body"] for row in _rows(folder / "sections.jsonl.xz")), count // 4),
        _draw(draw, (row["heading"] for row in _rows(folder / "sections.jsonl.xz")), count // 8),
        _draw(draw, (row["zh"] for row in _rows(folder / "glossary.jsonl.xz")), count // 8),
    ]
    return [*ODD, *(text for part in parts for text in part)]


def observe(weights: Weights, config: BertConfig, tokenizer: Tokenizer, texts: Iterable[str], *, window: int) -> Ranges:
    """The smallest and largest value of every channel of every tap over all texts, to `window` tokens."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    graph = build_fp32(weights, config, taps=True)
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    taps = tap_names(config)
    low: dict[str, np.ndarray] = {}
    high: dict[str, np.ndarray] = {}
    for text in texts:
        ids = tokenizer.encode(text).ids[:window]
        for tap, rows in zip(taps, session.run(taps, {"ids": np.array([ids], dtype=np.int64)}), strict=True):
            low[tap] = np.minimum(low.get(tap, np.inf), rows.min(axis=0))
            high[tap] = np.maximum(high.get(tap, -np.inf), rows.max(axis=0))
    return {tap: Range(low[tap].astype(np.float32), high[tap].astype(np.float32)) for tap in taps}


def _rows(path: Path) -> Iterator[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _draw(draw: random.Random, texts: Iterable[str], count: int) -> list[str]:
    """A uniform sample of a stream in one pass."""
    kept: list[str] = []
    for seen, text in enumerate(texts):
        if seen < count:
            kept.append(text)
        elif (place := draw.randrange(seen + 1)) < count:
            kept[place] = text
    return kept
