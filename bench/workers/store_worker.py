"""One contender of `stores.py` in a process of its own: loads what it is told and answers one question at a time.

Reads a JSON command per line and writes a JSON answer per line. Homing's stores and the bare engines are driven alike;
every engine gives back the id, the text and the metadata of what it found.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 10
BATCH = 2_000
GROUPS = 100


class Contender:
    """What each engine does. A kind of search that it does not have is left out of `kinds`."""

    kinds: tuple[str, ...] = ("vector", "keyword", "filtered")

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        raise NotImplementedError

    def vector(self, query: Any, group: int | None) -> list[str]:
        raise NotImplementedError

    def keyword(self, query: str, words: list[str]) -> list[str]:
        raise NotImplementedError

    def disk(self) -> int:
        """Bytes on the disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def portions(count: int) -> list[range]:
    return [range(start, min(start + BATCH, count)) for start in range(0, count, BATCH)]


class Homing(Contender):
    """Any of Homing's stores, by its address."""

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        from homing.records import VectorRecord
        from homing.stores import open_store

        self.store = open_store(self.address)
        for rows in portions(len(texts)):
            self.store.upsert(
                VectorRecord(str(n), "bench", vectors[n], {"group": n % GROUPS}, texts[n], "bench") for n in rows
            )
        # Opened anew, as a program does that searches: closing also finishes what the store does in the background.
        self.store.close()
        self.store = open_store(self.address)

    def vector(self, query: Any, group: int | None) -> list[str]:
        from homing.stores.store import SearchOptions

        options = SearchOptions({} if group is None else {"group": group})
        return [match.id for match in self.store.search("bench", query, LIMIT, options)]

    def keyword(self, query: str, words: list[str]) -> list[str]:
        return [match.id for match in self.store.search_text("bench", query, LIMIT)]

    def disk(self) -> int:
        return postgres_size(self.address, "homing") if self.address.startswith("postgres") else super().disk()


class BareLance(Contender):
    """LanceDB as its documents have it, with the kind of index that Homing uses, so that recall is alike."""

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        import lancedb
        import pyarrow as pa
        from lancedb.index import FTS, Bitmap, IvfSq

        width = vectors.shape[1]
        schema = pa.schema(
            [
                ("id", pa.string()),
                ("text", pa.string()),
                ("metadata", pa.string()),
                ("grp", pa.int32()),
                ("words", pa.string()),
                ("vector", pa.list_(pa.float32(), width)),
            ]
        )
        self.table = lancedb.connect(self.folder / "lance").create_table("bench", schema=schema)
        for rows in portions(len(texts)):
            part = slice(rows.start, rows.stop)
            columns = {
                "id": [str(n) for n in rows],
                "text": texts[part],
                "metadata": [json.dumps({"group": n % GROUPS}) for n in rows],
                "grp": [n % GROUPS for n in rows],
                "words": words[part],
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors[part].reshape(-1)), width),
            }
            self.table.add(pa.table(columns, schema=schema))
        self.table.create_index(
            "words", config=FTS(base_tokenizer="whitespace", stem=False, remove_stop_words=False, with_position=False)
        )
        self.indexed = len(texts) >= 20_000
        if self.indexed:
            self.table.create_index("grp", config=Bitmap())
            self.table.create_index("vector", config=IvfSq(distance_type="cosine"))
        self.table.optimize()

    def vector(self, query: Any, group: int | None) -> list[str]:
        asked = self.table.search(query, vector_column_name="vector").distance_type("cosine").limit(LIMIT)
        if self.indexed:
            asked = asked.nprobes(20).refine_factor(4)
        if group is not None:
            asked = asked.where(f"grp = {group}", prefilter=True)
        return [row["id"] for row in asked.select(["id", "text", "metadata", "_distance"]).to_list()]

    def keyword(self, query: str, words: list[str]) -> list[str]:
        from lancedb.query import MatchQuery

        asked = self.table.search(MatchQuery(" ".join(words), "words"), query_type="fts").limit(LIMIT)
        return [row["id"] for row in asked.select(["id", "text", "metadata", "_score"]).to_list()]


class BareVec(Contender):
    """sqlite-vec and FTS5 in one file."""

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        import apsw
        import sqlite_vec

        self.db = apsw.Connection(str(self.folder / "vec.db"))
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        self.db.execute(
            "PRAGMA journal_mode = WAL; CREATE TABLE r(id INTEGER PRIMARY KEY, text TEXT, metadata TEXT);"
            f"CREATE VIRTUAL TABLE v USING vec0(id INTEGER PRIMARY KEY, embedding float[{vectors.shape[1]}] "
            "distance_metric=cosine, grp INTEGER);"
            "CREATE VIRTUAL TABLE k USING fts5(words, content='', tokenize='ascii')"
        ).fetchall()
        for rows in portions(len(texts)):
            with self.db:
                self.db.executemany("INSERT INTO r VALUES (?, ?, ?)", ((n, texts[n], "{}") for n in rows))
                self.db.executemany("INSERT INTO k(rowid, words) VALUES (?, ?)", ((n, words[n]) for n in rows))
                self.db.executemany(
                    "INSERT INTO v VALUES (?, ?, ?)", ((n, vectors[n].tobytes(), n % GROUPS) for n in rows)
                )

    def vector(self, query: Any, group: int | None) -> list[str]:
        narrowed, bound = ("", ()) if group is None else (" AND grp = ?", (group,))
        found = self.db.execute(
            f"SELECT v.id, r.text, r.metadata, distance FROM v JOIN r ON r.id = v.id "
            f"WHERE embedding MATCH ? AND k = {LIMIT}{narrowed}",
            (query.tobytes(), *bound),
        ).fetchall()
        return [str(row[0]) for row in found]

    def keyword(self, query: str, words: list[str]) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in words)
        found = self.db.execute(
            "SELECT k.rowid, r.text, r.metadata FROM k JOIN r ON r.id = k.rowid "
            f"WHERE k MATCH ? ORDER BY bm25(k) LIMIT {LIMIT}",
            (asked,),
        ).fetchall()
        return [str(row[0]) for row in found]


class BarePgvector(Contender):
    """pgvector's HNSW and PostgreSQL's own text search, in plain SQL, with Homing's graph, so that recall is alike."""

    schema = "bare"
    graph = "m = 24, ef_construction = 100"
    ef_search = 250

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        import psycopg

        self.db = psycopg.connect(self.address, autocommit=True)
        self.db.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE; CREATE SCHEMA {self.schema}")
        self.db.execute(f"SET search_path = {self.schema}, public")
        self.db.execute(
            f"CREATE TABLE r(id text PRIMARY KEY, text text, metadata json, grp int, words tsvector, "
            f"embedding vector({vectors.shape[1]}))"
        )
        for rows in portions(len(texts)):
            with self.db.cursor().copy("COPY r FROM STDIN") as copy:
                for n in rows:
                    shown = "[" + ",".join(map(str, vectors[n].tolist())) + "]"
                    lexemes = " ".join(f"'{word}'" for word in sorted(set(words[n].split())))
                    copy.write_row((str(n), texts[n], json.dumps({"group": n % GROUPS}), n % GROUPS, lexemes, shown))
        self.db.execute("SET maintenance_work_mem = '1GB'")
        self.db.execute(f"CREATE INDEX ON r USING hnsw (embedding vector_cosine_ops) WITH ({self.graph})")
        self.db.execute("CREATE INDEX ON r USING gin (words)")
        self.db.execute("CREATE INDEX ON r (grp)")
        self.db.execute("ANALYZE r")
        self.db.execute("SET hnsw.iterative_scan = 'strict_order'")
        self.db.execute(f"SET hnsw.ef_search = {self.ef_search}")

    def vector(self, query: Any, group: int | None) -> list[str]:
        shown = "[" + ",".join(map(str, query.tolist())) + "]"
        narrowed, bound = ("", ()) if group is None else ("WHERE grp = %s ", (group,))
        sql = f"SELECT id, text, metadata, embedding <=> %s::vector AS d FROM r {narrowed}ORDER BY d LIMIT {LIMIT}"
        return [row[0] for row in self.db.execute(sql, (shown, *bound))]

    def keyword(self, query: str, words: list[str]) -> list[str]:
        asked = " | ".join(f"'{word}'" for word in words)
        sql = (
            "SELECT id, text, metadata FROM r, cast(%s AS tsquery) q WHERE words @@ q "
            f"ORDER BY ts_rank(words, q) DESC LIMIT {LIMIT}"
        )
        return [row[0] for row in self.db.execute(sql, (asked,))]

    def disk(self) -> int:
        return postgres_size(self.address, self.schema)


class DefaultPgvector(BarePgvector):
    """As pgvector comes: its sparser graph, looked into with its narrower view. Faster, and misses more."""

    schema = "bare_default"
    graph = "m = 16, ef_construction = 64"
    ef_search = 40


class Chroma(Contender):
    """Chroma in a folder. It has no ranked keyword search."""

    kinds = ("vector", "filtered")

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        import chromadb

        client = chromadb.PersistentClient(str(self.folder))
        self.found = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
        for rows in portions(len(texts)):
            part = slice(rows.start, rows.stop)
            self.found.add(
                ids=[str(n) for n in rows],
                embeddings=vectors[part],
                documents=texts[part],
                metadatas=[{"group": n % GROUPS} for n in rows],
            )

    def vector(self, query: Any, group: int | None) -> list[str]:
        narrowed = {} if group is None else {"where": {"group": group}}
        return list(self.found.query(query_embeddings=query[np.newaxis, :], n_results=LIMIT, **narrowed)["ids"][0])


class Faiss(Contender):
    """Every vector in memory, compared with every query. Keeps nothing else."""

    kinds = ("vector", "filtered")

    def load(self, vectors: Any, texts: list[str], words: list[str]) -> None:
        import faiss

        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(np.ascontiguousarray(vectors))
        self.groups = [np.arange(group, len(texts), GROUPS) for group in range(GROUPS)]

    def vector(self, query: Any, group: int | None) -> list[str]:
        import faiss

        chosen = None
        if group is not None:
            chosen = faiss.SearchParameters(sel=faiss.IDSelectorBatch(self.groups[group]))
        return [str(key) for key in self.index.search(query[np.newaxis, :], LIMIT, params=chosen)[1][0]]


def postgres_size(address: str, schema: str) -> int:
    import psycopg

    sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE relkind = 'r' AND "
    with psycopg.connect(address) as db:
        [(size,)] = db.execute(sql + "relnamespace::regnamespace::text = %s", (schema,)).fetchall()
        return int(size)


CONTENDERS = {
    "homing": Homing,
    "lancedb": BareLance,
    "sqlite-vec": BareVec,
    "pgvector": BarePgvector,
    "pgvector default": DefaultPgvector,
    "chroma": Chroma,
    "faiss": Faiss,
}


def main() -> None:
    """Obey the lines on standard input."""
    kind, folder, address, data = sys.argv[1:]
    vectors = np.load(Path(data) / "vectors.npy", mmap_mode="r")
    queries = np.load(Path(data) / "queries.npy")
    texts, words = json.loads((Path(data) / "texts.json").read_text(encoding="utf-8"))
    asked, asked_words = json.loads((Path(data) / "asked.json").read_text(encoding="utf-8"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    contender = CONTENDERS[kind](Path(folder), address)
    answers = sys.stdout
    # Libraries that print to standard output must not disturb the answers.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        do, number = json.loads(line)
        started = time.perf_counter()
        found: list[str] = []
        if do == "load":
            contender.load(vectors, texts, words)
            answer: dict[str, Any] = {"kinds": contender.kinds}
        elif do == "vector":
            found = contender.vector(queries[number], None)
        elif do == "filtered":
            found = contender.vector(queries[number], number % GROUPS)
        elif do == "keyword":
            found = contender.keyword(asked[number], asked_words[number])
        seconds = time.perf_counter() - started
        if do == "stats":
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            answer = {"disk_mb": contender.disk() / 1e6, "rss_mb": pages * resource.getpagesize() / 1e6}
        elif do != "load":
            answer = {"ids": found}
        print(json.dumps(answer | {"seconds": seconds}), file=answers, flush=True)
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
