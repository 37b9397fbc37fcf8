"""Keyword search over real bilingual text: Homing's index beside tantivy, bm25s, FTS5 and LanceDB, the same tokens.

Every query is put to every contender in turn, so that whatever else the machine does falls on all alike. Times are
milliseconds of CPU, of all threads of the process, and of a clock; Homing's include cutting the query into tokens, the
transaction and looking up the ids, and those of PostgreSQL the mean CPU of its server. `same top 10` is the share of
queries whose ten best score as those of going through all postings with BM25. Memory is that of a process that opens
the index and asks the queries.

    python bench/keywords.py TEXTS.jsonl [--rows 100000] [--queries 300] [--postgres] [--keep FOLDER]

TEXTS.jsonl has objects with `query` and `text`. Rows beyond those are recombined from sentences of them. The peers take
part where they are installed, up to 200,000 rows; `--keep` is where indexes are kept and found again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from homing.records import VectorRecord
from homing.stores.sqlite import SqliteStore
from homing.stores.store import SearchOptions, Store
from homing.text.tokens import query_terms, tokens
from report import machine, show, write

RESULTS = Path(__file__).parent / "results"
LIMIT, BATCH, PEERS_UP_TO = 10, 1_000, 200_000
FTS5 = "ascii tokenchars '+#.'"
SENTENCE = re.compile(r"[^。！？.!?\n]+[。！？.!?\n]*")

Texts = Callable[[], Iterator[str]]
Find = Callable[[str], list[tuple[str, float]]]
"""The best texts for a query, by number, and what they score."""


def homing(place: Path, texts: Texts) -> Find:
    new = not place.exists()
    store = SqliteStore(place)
    if new:
        fill(store, texts)
        store.close()
        store = SqliteStore(place)
    return lambda query: [(one.id, one.bm25) for one in store.search_words("c", query, LIMIT).found]


def homing_filtered(place: Path, texts: Texts) -> Find:
    store, options = SqliteStore(place), SearchOptions({"group": 7})
    return lambda query: [(one.id, one.bm25) for one in store.search_words("c", query, LIMIT, options).found]


def fill(store: Store, texts: Texts) -> None:
    batch: list[VectorRecord] = []
    for number, text in enumerate(texts()):
        batch.append(VectorRecord(str(number), "c", None, {"group": number % 100}, text))
        if len(batch) == BATCH:
            store.write(batch)
            batch = []
    store.write(batch)


def fts5(place: Path, texts: Texts) -> Find:
    new = not place.exists()
    file = apsw.Connection(str(place))
    if new:
        file.execute(f"CREATE VIRTUAL TABLE t USING fts5(body, tokenize=\"{FTS5}\", content='', detail=none)")
        with file:
            rows = ((number, " ".join(tokens(text))) for number, text in enumerate(texts()))
            file.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", rows)

    def find(query: str) -> list[tuple[str, float]]:
        asked = " OR ".join(f'"{term}"' for term in query_terms(query))
        found = file.execute("SELECT rowid, rank FROM t(?) ORDER BY rank LIMIT ?", (asked, LIMIT)) if asked else ()
        return [(str(number), -rank) for number, rank in found]

    return find


def tantivy(place: Path, texts: Texts) -> Find:
    import tantivy as library

    new = not place.exists()
    place.mkdir(exist_ok=True)
    schema = library.SchemaBuilder()
    schema.add_integer_field("number", stored=True)
    schema.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    built = schema.build()
    index = library.Index(built, path=str(place))
    if new:
        writer = index.writer(num_threads=1)
        for number, text in enumerate(texts()):
            writer.add_document(library.Document(number=number, body=" ".join(tokens(text))))
        writer.commit()
        writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def find(query: str) -> list[tuple[str, float]]:
        terms = [library.Query.term_query(built, "body", term) for term in query_terms(query)]
        asked = library.Query.boolean_query([(library.Occur.Should, term) for term in terms])
        found = searcher.search(asked, LIMIT, count=False).hits
        return [(str(searcher.doc(at)["number"][0]), score) for score, at in found]

    return find


def bm25s(place: Path, texts: Texts) -> Find:
    import bm25s as library

    if not place.exists():
        retriever = library.BM25(k1=1.2, b=0.75)
        retriever.index([tokens(text) for text in texts()], show_progress=False)
        retriever.save(str(place))
    retriever = library.BM25.load(str(place))

    def find(query: str) -> list[tuple[str, float]]:
        terms = [term for term in query_terms(query) if term in retriever.vocab_dict]
        if not terms:
            return []
        found, scores = retriever.retrieve([terms], k=LIMIT, show_progress=False)
        return [(str(number), float(score)) for number, score in zip(found[0], scores[0], strict=True)]

    return find


def lancedb(place: Path, texts: Texts) -> Find:
    import lancedb as library
    from lancedb.query import MatchQuery

    new = not place.exists()
    database = library.connect(str(place))
    if new:
        rows = [{"number": number, "body": " ".join(tokens(text))} for number, text in enumerate(texts())]
        table = database.create_table("t", rows)
        plain = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "lower_case": False}
        table.create_fts_index("body", base_tokenizer="whitespace", with_position=False, use_tantivy=False, **plain)
    table = database.open_table("t")

    def find(query: str) -> list[tuple[str, float]]:
        asked = MatchQuery(" ".join(query_terms(query)), "body")
        found = table.search(asked, query_type="fts").select(["number"]).limit(LIMIT).to_list()
        return [(str(row["number"]), row["_score"]) for row in found]

    return find


CONTENDERS: dict[str, Callable[[Path, Texts], Find]] = {
    "homing": homing,
    "homing, 1 % filter": homing_filtered,
    "tantivy": tantivy,
    "bm25s": bm25s,
    "FTS5": fts5,
    "lancedb": lancedb,
}


class Exhaustive:
    """Scores every text that shares a term with a query."""

    def __init__(self, texts: Texts, terms: set[str]) -> None:
        lengths, held = list[int](), dict[str, list[tuple[int, int]]]({term: [] for term in terms})
        for number, text in enumerate(texts()):
            found = tokens(text)
            lengths.append(len(found))
            for term, count in Counter(found).items():
                if term in held:
                    held[term].append((number, count))
        self._postings = {term: np.array(pairs, np.int64).reshape(-1, 2) for term, pairs in held.items()}
        self._norms = 1.2 * (0.25 + 0.75 * np.array(lengths) / np.mean(lengths))

    def knows(self, query: str) -> bool:
        return all(len(self._postings[term]) for term in query_terms(query))

    def best(self, query: str) -> list[float]:
        scores = np.zeros(len(self._norms))
        for term in query_terms(query):
            numbers, counts = self._postings[term].T
            idf = max(1e-6, math.log((len(scores) - len(numbers) + 0.5) / (len(numbers) + 0.5)))
            scores[numbers] += idf * counts / (counts + self._norms[numbers])
        return sorted(scores[scores > 0].tolist(), reverse=True)[:LIMIT]


def made(given: Sequence[str], rows: int) -> Texts:
    """Texts: those that were given, and beyond them some recombined from their sentences."""
    cut = [SENTENCE.findall(text) for text in given]
    sentences = [one for text in cut for one in text]

    def texts() -> Iterator[str]:
        chance = random.Random(5)
        for number in range(rows):
            if number < len(given):
                yield given[number]
            else:
                yield " ".join(chance.choice(sentences) for _ in cut[number % len(cut)])

    return texts


def sameness(find: Find, texts: Texts, queries: Sequence[str]) -> str:
    """The share of queries whose best texts score as those of an exhaustive scorer.

    A word that no text holds is read as another one by Homing, so those queries are left out.
    """
    exact = Exhaustive(texts, {term for query in queries for term in query_terms(query)})
    same = []
    for query in queries:
        if exact.knows(query):
            scores, expected = [score for _, score in find(query)], exact.best(query)
            same.append(len(scores) == len(expected) and np.allclose(scores, expected))
    return f"{np.mean(same):.1%} of {len(same)}"


def measure(
    names: Sequence[str], texts: Texts, rows: int, queries: Sequence[str], folder: Path
) -> list[dict[str, Any]]:
    finds, building = dict[str, Find](), dict[str, float]()
    for name in names:
        new, started = not place_of(folder, name, rows).exists(), time.process_time()
        finds[name] = CONTENDERS[name](place_of(folder, name, rows), texts)
        building[name] = (time.process_time() - started) * 1e6 / rows if new else 0.0
        print(f"{name}: {building[name]:.0f} µs of CPU a text", flush=True)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for turn in range(2):
        for query in queries:
            for name, find in finds.items():
                cpu, wall = time.process_time(), time.perf_counter()
                find(query)
                if turn:
                    times[name].append(((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3))
    same = sameness(finds["homing"], texts, queries) if rows <= PEERS_UP_TO else ""
    found = []
    for name in names:
        cpu, wall = (np.percentile(column, [50, 95]) for column in zip(*times[name], strict=True))
        found.append(
            {
                "contender": name, "rows": rows,
                "cpu p50 ms": round(cpu[0], 2), "cpu p95 ms": round(cpu[1], 2),
                "wall p50 ms": round(wall[0], 2), "wall p95 ms": round(wall[1], 2),
                "build µs/text": round(building[name]) if building[name] > 1 else "",
                "disk MB": round(size(folder, name, rows) / 1e6), "memory MB": memory(folder, name, rows, queries),
                "same top 10": same if name == "homing" else "",
            }
        )  # fmt: skip
    return found


def place_of(folder: Path, name: str, rows: int) -> Path:
    kind = name.split(",")[0]
    return folder / f"{kind}-{rows}{'.db' if kind in ('homing', 'FTS5') else ''}"


def size(folder: Path, name: str, rows: int) -> int:
    """Bytes of the index alone: of Homing's file the pages of the keyword index, without texts."""
    place = place_of(folder, name, rows)
    if name.startswith("homing"):
        store = SqliteStore(place)
        found = store.sizes()["keywords"]
        store.close()
        return found
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(one.stat().st_size for one in files if one.is_file())


def memory(folder: Path, name: str, rows: int, queries: Sequence[str]) -> int:
    command = [sys.executable, __file__, "-", "--asked", name, "--rows", str(rows), "--keep", str(folder)]
    done = subprocess.run(command, input="\n".join(queries), capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def ask_alone(name: str, rows: int, folder: Path) -> None:
    find = CONTENDERS[name](place_of(folder, name, rows), lambda: iter(()))
    for query in sys.stdin.read().splitlines():
        find(query)
    # What getrusage says includes the process that this one was forked from.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) // 1024)


def on_postgres(texts: Texts, rows: int, queries: Sequence[str]) -> dict[str, Any]:
    from homing.database.postgres.server import LocalServer
    from homing.stores.postgres.store import PostgresStore

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        server = LocalServer(Path(folder) / "server")
        server.start()
        try:
            postmaster = int(next(Path(folder).rglob("postmaster.pid")).read_text().split()[0])
            started, before = time.process_time(), server_cpu(postmaster)
            store = PostgresStore(server.admin_url)
            fill(store, texts)
            store.close()
            building = time.process_time() - started + server_cpu(postmaster) - before
            store = PostgresStore(server.admin_url)
            for query in queries:
                store.search_words("c", query, LIMIT)
            before, times = server_cpu(postmaster), list[tuple[float, float]]()
            for query in queries:
                cpu, wall = time.process_time(), time.perf_counter()
                store.search_words("c", query, LIMIT)
                times.append(((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3))
            serving = (server_cpu(postmaster) - before) * 1e3 / len(queries)
            store.close()
        finally:
            server.remove()
    cpu, wall = (np.percentile(column, [50, 95]) for column in zip(*times, strict=True))
    return {
        "contender": "homing on PostgreSQL, with its server", "rows": rows,
        "cpu p50 ms": round(cpu[0] + serving, 2), "cpu p95 ms": round(cpu[1] + serving, 2),
        "wall p50 ms": round(wall[0], 2), "wall p95 ms": round(wall[1], 2),
        "build µs/text": round(building * 1e6 / rows),
    }  # fmt: skip


def server_cpu(postmaster: int) -> float:
    """Seconds of CPU of a server's processes that are running."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == postmaster:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--asked", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.asked:
        ask_alone(options.asked, options.rows, options.keep)
        return
    given = [json.loads(line) for line in Path(options.texts).read_text(encoding="utf-8").splitlines()][: options.rows]
    texts = made([one["text"] for one in given], options.rows)
    queries = [one["query"] for one in random.Random(2).sample(given, options.queries)]
    queries = [query for query in queries if query_terms(query)]
    names = [name for name in CONTENDERS if name.startswith("homing")]
    if options.rows <= PEERS_UP_TO:
        names += [name for name in CONTENDERS if name == "FTS5" or (name not in names and find_spec(name))]
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(names, texts, options.rows, queries, options.keep or Path(temporary))
    if options.postgres:
        rows.append(on_postgres(texts, options.rows, queries))
    versions = {name: version(name) for name in names if name in ("tantivy", "bm25s", "lancedb")}
    show(
        f"{options.rows} texts, {len(queries)} queries", [{name: row.get(name, "") for name in rows[0]} for row in rows]
    )
    file = "keywords.json" if options.rows <= PEERS_UP_TO else "keywords_1m.json"
    write(RESULTS / file, {"machine": machine(), "versions": versions, "contenders": rows})


if __name__ == "__main__":
    main()
