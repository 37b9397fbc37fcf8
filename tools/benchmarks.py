"""Writes `docs/benchmarks.md` from what the measurements in `bench/` left in `bench/results/`.

`make docs` writes it; a test fails when the page and the results differ, so no figure is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class Measurement:
    """A result file, what it is about, and the command that makes it again."""

    file: str
    title: str
    command: str
    about: str


MEASUREMENTS = (
    Measurement(
        "end_to_end.json",
        "End to end",
        "bench/end_to_end.py --peers PEERS_PYTHON --model MINILM_FOLDER --texts TEXTS.jsonl",
        "What a user waits for, beside sentence-transformers + Chroma and LangChain's EnsembleRetriever.",
    ),
    Measurement(
        "embedding.json",
        "The bundled model",
        "bench/embedding.py WEIGHTS_FOLDER TEXTS.jsonl --clock cpu --threads 1",
        "Texts a second of processor time by length, and that of one question, beside onnxruntime fp32 and "
        "sentence-transformers.",
    ),
    Measurement(
        "kernels.json",
        "The bundled model and the processor",
        "bench/kernels.py",
        "Operations a second on one core, by instruction set and kernel, beside a bare product of bytes. The rows of "
        "AVX2 are of the same processor, with AVX-512 hidden from onnxruntime.",
    ),
    Measurement(
        "cores.json",
        "The bundled model by threads",
        "bench/cores.py TEXTS.jsonl",
        "Texts a second by the number of threads, and what more cores could give at the most.",
    ),
    Measurement(
        "vectors.json",
        "Nearest neighbours in SQLite",
        "bench/vectors.py",
        "Exact search over int8 codes in memory, beside plain sqlite-vec and libraries that keep everything in memory.",
    ),
    Measurement(
        "keywords.json",
        "Keywords",
        "bench/keywords.py TEXTS.jsonl --queries 100 --postgres",
        "Real bilingual texts and questions, the same tokens for everybody, CPU and clock; Homing's figures include "
        "cutting the question, the transaction and the ids, of which tantivy knows none.",
    ),
    Measurement(
        "keywords_1m.json",
        "Keywords of a million texts",
        "bench/keywords.py TEXTS.jsonl --rows 1000000",
        "The same at ten times the size; nine in ten texts are recombined from sentences of the real ones.",
    ),
    Measurement("stores.json", "Stores", "bench/stores.py", "The three stores beside the bare engines they stand on."),
    Measurement(
        "memory.json",
        "Memory",
        "bench/memory.py",
        "Four collections at once, and embedding in the background.",
    ),
    Measurement(
        "documents.json",
        "Documents",
        "bench/documents.py all --peers PEERS_PYTHON",
        "Texts that reach the model for an edit of a novel of 1,000 paragraphs, beside LangChain's indexing API and "
        "LlamaIndex's ingestion; save() by the size of the document; chunks a second; answers while somebody types; "
        "projects apart by collection or by filter.",
    ),
    Measurement(
        "recall_order.json",
        "What recall brings back",
        "bench/recall_order.py PASSAGES",
        "The nearest only, or words with a say: the shares of questions whose passage came first, or among five.",
    ),
    Measurement(
        "langchain_retriever.json",
        "HybridRetriever",
        "bench/langchain_retriever.py --passages PASSAGES",
        "A LangChain retriever on PostgreSQL: what it finds beside its own legs, and how fast among many users beside "
        "langchain-postgres' hybrid mode and the EnsembleRetriever.",
    ),
    Measurement("skills.json", "Skills", "bench/skills.py", "Scanning folders and finding the skill for a request."),
    Measurement(
        "load.json",
        "The server under load",
        "bench/load.py",
        "`homing serve` asked by many clients without pause, with the bundled model and with one behind a dead API.",
    ),
    Measurement(
        "server.json",
        "An answer of the server",
        "bench/server.py DATA --peers PEERS_PYTHON",
        "Processor time of a request beside the least that a server with the same model could do: FastAPI, the bundled "
        "model, FTS5 and a matrix of vectors, fused; and beside Chroma in the place of these two, by meaning alone.",
    ),
    Measurement(
        "workers.json",
        "The server by workers",
        "bench/server.py DATA --workers 1 2",
        "Document searches a second by the number of workers, each held to one core, and what a search then costs.",
    ),
    Measurement(
        "start.json",
        "Starts and memory",
        "bench/start.py DATA",
        "Commands of the shell from nothing to the answer, modules with their bytecode as where they were installed, "
        "and what a server with much in it holds.",
    ),
    Measurement(
        "devices.json", "Devices", "bench/devices.py", "From a sentence to devices and a command, without a model."
    ),
)


def page() -> str:
    """The whole page."""
    lines = [
        "# Benchmarks",
        "",
        "Generated by `make docs` from `bench/results/`. Each table is one run on one machine, every contender in a",
        "process of its own; the ratios travel, the times do not. How to run them:",
        "[bench/README.md](../bench/README.md).",
        "",
    ]
    for one in MEASUREMENTS:
        file = RESULTS / one.file
        if file.exists():
            lines += section(one, json.loads(file.read_text(encoding="utf-8")))
    return "\n".join(lines).rstrip() + "\n"


def section(one: Measurement, result: dict[str, Any]) -> list[str]:
    """One measurement: what it is, where it ran, and its tables."""
    machine = result.get("machine", {})
    told = ", ".join(f"{key} {value}" for key, value in machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in result.get("versions", {}).items())
    lines = [
        f"## {one.title}",
        "",
        one.about,
        "",
        f"`python {one.command}` on {told}{'; ' + versions if versions else ''}.",
    ]
    for rows in tables(result):
        lines += ["", *table(rows)]
    return [*lines, ""]


def tables(result: dict[str, Any]) -> Iterator[Sequence[dict[str, Any]]]:
    """Every list of rows in a result, and every mapping from a label to a row."""
    for key, value in result.items():
        if key in ("machine", "versions"):
            continue
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield value
        elif isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
            yield [{key: label, **row} for label, row in value.items()]


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows as Markdown; nested values are left to the JSON file."""
    columns = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, dict | list))
    )
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(str(row.get(column, "")) for column in columns) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote docs/{PAGE.name}")
