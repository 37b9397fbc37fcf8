"""Cold start, warm query and bulk indexing, beside sentence-transformers + Chroma and LangChain's EnsembleRetriever."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import machine, show, write

HERE = Path(__file__).parent
WORKERS = HERE / "workers"
QUERIES = (
    "怎样配置代理服务器",
    "how to roll back a deployment",
    "数据库 migration 失败怎么办",
    "读取文件内容",
    "keyboard shortcuts",
    "如何修改 commit 信息",
    "memory usage of a container",
    "创建新的虚拟环境",
)


@dataclass(frozen=True)
class Contender:
    """A worker script and the interpreter that runs it."""

    name: str
    python: str
    script: Path

    def run(self, job: str, work: Path, **options: object) -> dict[str, Any]:
        """One job in a fresh process: what it printed, with its wall time and peak memory."""
        arguments = [f"--{key}={value}" for key, value in options.items()]
        started = time.perf_counter()
        process = subprocess.Popen(
            [self.python, str(self.script), job, f"--work={work}", *arguments], stdout=subprocess.PIPE, text=True
        )
        printed = process.communicate()[0]
        seconds = time.perf_counter() - started
        if process.returncode:
            raise SystemExit(f"{self.name} failed at {job}")
        return {"wall_s": seconds, **json.loads(printed.splitlines()[-1])}


def texts(path: Path, count: int) -> list[str]:
    """The first texts of a JSONL file: of each object its longest string, paragraphs of 40 to 400 characters."""
    found: list[str] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            longest = max((value for value in json.loads(line).values() if isinstance(value, str)), key=len, default="")
            if 40 <= len(longest) <= 400:
                found.append(longest)
            if len(found) == count:
                return found
    raise SystemExit(f"{path} holds only {len(found)} usable texts; {count} are needed")


def prepare(work: Path, source: Path) -> None:
    """The corpora of the three jobs, as every contender reads them."""
    for name, count in (("cold", 1_000), ("warm", 10_000), ("bulk", 5_000)):
        (work / f"{name}.json").write_text(json.dumps(texts(source, count), ensure_ascii=False), encoding="utf-8")
    (work / "queries.json").write_text(json.dumps(QUERIES, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    """Run every job for every contender and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, help="interpreter that has the peers' packages")
    parser.add_argument("--model", required=True, type=Path, help="sentence-transformers folder for the peers")
    parser.add_argument("--texts", required=True, type=Path, help="JSONL file with texts")
    parser.add_argument("--rounds", type=int, default=5, help="cold starts per contender")
    chosen = parser.parse_args()
    ours = Contender("homing", sys.executable, WORKERS / "homing_worker.py")
    peer = Contender("peer", chosen.peers, WORKERS / "peer_worker.py")
    model = chosen.model.resolve()
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        work = Path(folder)
        prepare(work, chosen.texts)

        def measure(job: str, corpus: str, rounds: int) -> dict[str, list[dict[str, Any]]]:
            runs: dict[str, list[dict[str, Any]]] = {"homing": [], "peer": []}
            for _ in range(rounds):
                for one in (ours, peer):
                    runs[one.name].append(one.run(job, work, corpus=corpus, model=model))
            return runs

        measure("index", "cold", 1)
        rows = [
            compare(
                "cold start to printed result, 1,000 documents",
                measure("ask", "cold", chosen.rounds),
                "sentence-transformers + Chroma",
            ),
            compare(
                "a question never asked before, 10,000 records, both legs",
                measure("warm", "warm", 1),
                "LangChain Ensemble(Chroma, BM25)",
            ),
            compare("bulk indexing of 5,000 paragraphs", measure("index", "bulk", 1), "sentence-transformers + Chroma"),
        ]
    show("End to end", rows)
    write(HERE / "results" / "end_to_end.json", {"machine": machine(), "rows": rows})


def compare(job: str, runs: dict[str, list[dict[str, Any]]], peer: str) -> dict[str, Any]:
    """One row: medians of processor time, their ratio, the clock, and the memory beside it."""

    def median(name: str, key: str) -> float:
        return statistics.median(run[key] for run in runs[name])

    return {
        "job": job,
        **{f"{name} CPU s": round(median(name, "cpu_s"), 4) for name in runs},
        "times less": round(median("peer", "cpu_s") / median("homing", "cpu_s"), 1),
        **{f"{name} clock s": round(median(name, "wall_s"), 4) for name in runs},
        **{f"{name} MB": round(max(run["rss_mb"] for run in runs[name])) for name in runs},
        "peer": peer,
    }


if __name__ == "__main__":
    main()
