"""What int8 costs: recall@1 of an exported model folder against the same weights in float32.

    python fidelity.py MODEL_FOLDER WEIGHTS_FOLDER --dev DEV_FOLDER [--out fidelity.json]

Both run through the product's own LocalProvider, on the same texts, cut at the same length.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from evaluate import SETS, RetrievalSet, read_set, weights_of
from homing.embedders.bert_graph import BertConfig, build_fp32
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import TOKENIZER, ModelFolder, write_model_folder


@dataclass(frozen=True)
class Fidelity:
    """Recall@1 of both, and how close the vectors are: mean and worst cosine over all texts of the set."""

    fp32: float
    int8: float
    cosine: float
    worst: float


def recall_at_1(data: RetrievalSet, queries: np.ndarray, documents: np.ndarray) -> float:
    best = (queries @ documents.T).argmax(axis=1)
    return float(np.mean([first in relevant for first, relevant in zip(best.tolist(), data.relevant, strict=True)]))


def compare(int8: LocalProvider, fp32: LocalProvider, data: RetrievalSet) -> Fidelity:
    small = [int8.embed(texts) for texts in (data.queries, data.documents)]
    full = [fp32.embed(texts) for texts in (data.queries, data.documents)]
    cosines = np.concatenate([(a * b).sum(axis=1) for a, b in zip(small, full, strict=True)])
    return Fidelity(
        round(recall_at_1(data, *full), 4), round(recall_at_1(data, *small), 4),
        round(float(cosines.mean()), 5), round(float(cosines.min()), 4),
    )  # fmt: skip


def fp32_provider(weights_folder: Path, like: Path, into: Path) -> LocalProvider:
    """The same weights without quantisation, as a model folder beside the int8 one."""
    folder = ModelFolder.read(like)
    config = BertConfig.from_json(json.loads((weights_folder / "config.json").read_text()))
    write_model_folder(
        into, graph=build_fp32(load_file(weights_of(weights_folder)), config),
        tokenizer=folder.file(TOKENIZER).read_bytes(),
        name=folder.name + "-fp32", version=folder.version, dimensions=folder.dimensions,
        max_tokens=folder.max_tokens, window=folder.window, scale=None,
    )  # fmt: skip
    return LocalProvider(into)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        int8, fp32 = LocalProvider(args.model), fp32_provider(args.weights, args.model, Path(folder))
        print(f"{'set':24} {'fp32':>6} {'int8':>6} {'change':>7} {'cosine':>8} {'worst':>7}")
        for name in SETS:
            found = compare(int8, fp32, read_set(args.dev / name))
            report[name] = asdict(found)
            recalls = f"{found.fp32:6.3f} {found.int8:6.3f} {found.int8 - found.fp32:+7.4f}"
            print(f"{name:24} {recalls} {found.cosine:8.5f} {found.worst:7.4f}", flush=True)
    if args.out:
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
