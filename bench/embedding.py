"""Texts per second, latency, load time and memory of the bundled model beside the same weights in other runtimes.

    python bench/embedding.py WEIGHTS_FOLDER TEXTS.jsonl [--model MODEL_FOLDER] [--rounds 5] [--threads 2]

WEIGHTS_FOLDER holds config.json, tokenizer.json and weights (or model) .safetensors; TEXTS.jsonl has one object a line
whose longest string is a text. Run it from an environment with homing[models], torch and sentence-transformers.
Every contender lives in a process of its own with the same cores. They take turns, one job each a round, so that
whatever else the machine does meets all of them; the medians of all rounds are compared. On a machine that is busy
with other work use `--clock cpu --threads 1`: it counts processor time, which waiting for a core does not change.
Loading is timed apart, LOADS times: cold is a new process from its first import to its first vector, warm is the model
once more in a process that has it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from report import machine, show, write

RESULTS = Path(__file__).parent / "results" / "embedding.json"
WORKER = Path(__file__).parent / "workers" / "embedding_worker.py"
CONTENDERS = ("homing int8", "onnxruntime fp32", "sentence-transformers")
PEER = "sentence-transformers"
# name: shortest, longest in tokens, how many texts
LOADS = 5
LOADER = """
import json, sys, time
clock = time.process_time if sys.argv[1] == "cpu" else time.perf_counter
started = clock()
from homing.embedders.local import LocalProvider
from pathlib import Path
path = Path(sys.argv[2]) if sys.argv[2:] else None
LocalProvider(path).embed(["帮我提交代码"])
cold = clock() - started
started = clock()
LocalProvider(path).embed(["帮我提交代码"])
print(json.dumps({"cold": cold, "warm": clock() - started}))
"""
JOBS = {"10 tokens": (8, 12, 128), "60 tokens": (54, 66, 48), "250 tokens": (230, 270, 16), "mixed": (3, 400, 48)}


def pick_texts(path: Path, tokenizer: Tokenizer, *, seed: int = 0) -> dict[str, list[str]]:
    """Texts for each job, by length, drawn at random; the same every time."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = sorted({max((v for v in row.values() if isinstance(v, str)), key=len, default="") for row in rows} - {""})
    random.Random(seed).shuffle(texts)
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts)]
    picked = {}
    for job, (shortest, longest, count) in JOBS.items():
        picked[job] = [text for text, n in zip(texts, lengths, strict=True) if shortest <= n <= longest][:count]
        if len(picked[job]) < count:
            raise SystemExit(f"{path} has only {len(picked[job])} of {count} texts with {shortest} to {longest} tokens")
    return picked


class Contender:
    """A worker process that answers one JSON line for each line it gets."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        command = [sys.executable, str(WORKER), name, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started = self._read()

    def ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended early")
        answer: dict[str, Any] = json.loads(line)
        return answer


def loading(model: Path | None, clock: str) -> dict[str, float]:
    """Median seconds from nothing to a first vector: in a new process, and for a second provider in the same one."""
    command = [sys.executable, "-c", LOADER, clock, *([str(model)] if model else [])]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(LOADS)]
    return {kind: round(statistics.median(run[kind] for run in runs), 3) for kind in ("cold", "warm")}


def measure(
    contenders: list[Contender], texts: dict[str, list[str]], rounds: int, clock: str
) -> dict[str, dict[str, float]]:
    """Median texts per second for each job, and median milliseconds for one query, by contender."""
    for contender in contenders:
        for job in texts:
            contender.ask(do="batch", texts=texts[job][:8], clock=clock)
    seconds: dict[str, dict[str, list[float]]] = {c.name: {job: [] for job in (*texts, "query")} for c in contenders}
    for number in range(rounds):
        for job in texts:
            for contender in contenders:
                seconds[contender.name][job].append(contender.ask(do="batch", texts=texts[job], clock=clock)["seconds"])
        for contender in contenders:
            queries = texts["10 tokens"][number * 8 :][:40]
            seconds[contender.name]["query"].extend(contender.ask(do="queries", texts=queries, clock=clock)["seconds"])
    return {
        name: {
            **{f"{job} /s": len(texts[job]) / statistics.median(times[job]) for job in texts},
            "query p50 ms": statistics.median(times["query"]) * 1e3,
        }
        for name, times in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--model", type=Path, help="an exported model folder; without it, the bundled one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    args = parser.parse_args()
    texts = pick_texts(args.texts, Tokenizer.from_file(str(args.weights / "tokenizer.json")))
    with tempfile.TemporaryDirectory() as work:
        shared = [f"--weights={args.weights}", f"--threads={args.threads}", f"--work={work}"]
        if args.model:
            shared.append(f"--model={args.model}")
        contenders = [Contender(name, shared) for name in CONTENDERS]
        figures = measure(contenders, texts, args.rounds, args.clock)
        for contender in contenders:
            figures[contender.name]["load s"] = contender.started["load_s"]
            figures[contender.name]["peak MB"] = contender.ask(do="memory")["peak_mb"]
            contender.close()
    rows = [{"": name, **{key: round(value, 2) for key, value in figures[name].items()}} for name in CONTENDERS]
    peer, ours = figures[PEER], figures[CONTENDERS[0]]
    speedups = {
        key: round(value / ours[key] if "ms" in key or key == "load s" else ours[key] / value, 2)
        for key, value in peer.items()
        if key != "peak MB"
    }
    rows.append({"": f"{CONTENDERS[0]} is faster by", **speedups, "peak MB": ""})
    loads = loading(args.model, args.clock)
    show(f"{args.threads} threads, {args.rounds} rounds, {args.clock} clock", rows)
    print(f"load and first text: {loads['cold']} s in a new process, {loads['warm']} s once more in the same one")
    packages = ("onnxruntime", "tokenizers", "torch", "sentence-transformers")
    versions = {name: version(name) for name in packages}
    write(
        RESULTS,
        {
            "machine": {**machine(), "threads": args.threads, "rounds": args.rounds, "clock": args.clock},
            "versions": versions,
            "load_s": loads,
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
