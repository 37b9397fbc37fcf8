"""The peers' side of `end_to_end.py`: sentence-transformers, Chroma, and LangChain's EnsembleRetriever."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

BATCH = 5_000


def main() -> None:
    """Do the job named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=["index", "ask", "warm"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", required=True)
    chosen = parser.parse_args()
    texts = json.loads((chosen.work / f"{chosen.corpus}.json").read_text(encoding="utf-8"))
    folder = chosen.work / f"peer-{chosen.corpus}"
    result = {"index": index, "ask": ask, "warm": warm}[chosen.job](chosen, texts, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**result, "rss_mb": peak}))


def index(chosen: Any, texts: list[str], folder: Path) -> dict[str, float]:
    """Embed in batches with sentence-transformers and add to Chroma."""
    import shutil

    import chromadb
    from sentence_transformers import SentenceTransformer

    shutil.rmtree(folder, ignore_errors=True)
    started, used = time.perf_counter(), time.process_time()
    model = SentenceTransformer(chosen.model, device="cpu")
    client = chromadb.PersistentClient(str(folder))
    collection = client.create_collection("documents", metadata={"hnsw:space": "cosine"})
    rows = model.encode(texts, batch_size=32, normalize_embeddings=True)
    for start in range(0, len(texts), BATCH):
        part = slice(start, start + BATCH)
        ids = [str(number) for number in range(len(texts))][part]
        collection.add(ids=ids, embeddings=rows[part], documents=texts[part])
    return {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - used}


def ask(chosen: Any, texts: list[str], folder: Path) -> dict[str, float]:
    """Open, embed one question, query, print."""
    import chromadb
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(chosen.model, device="cpu")
    collection = chromadb.PersistentClient(str(folder)).get_collection("documents")
    row = model.encode(["怎样配置代理服务器"], normalize_embeddings=True)
    print(collection.query(query_embeddings=row, n_results=5)["ids"])
    return {"cpu_s": time.process_time()}


def warm(chosen: Any, texts: list[str], folder: Path) -> dict[str, float]:
    """Median time of a query through EnsembleRetriever over Chroma and BM25."""
    from langchain_chroma import Chroma
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_huggingface import HuggingFaceEmbeddings

    index(chosen, texts, folder)
    embeddings = HuggingFaceEmbeddings(
        model_name=chosen.model, model_kwargs={"device": "cpu"}, encode_kwargs={"normalize_embeddings": True}
    )
    vectors = Chroma("documents", embeddings, persist_directory=str(folder)).as_retriever(search_kwargs={"k": 10})
    keywords = BM25Retriever.from_texts(texts, k=10)
    ensemble = EnsembleRetriever(retrievers=[vectors, keywords], weights=[0.7, 0.3])
    queries = json.loads((chosen.work / "queries.json").read_text(encoding="utf-8"))
    walls, cpus = [], []
    for number in range(120):
        query = f"{queries[number % len(queries)]} {number}"
        started, used = time.perf_counter(), time.process_time()
        assert ensemble.invoke(query)
        walls.append(time.perf_counter() - started)
        cpus.append(time.process_time() - used)
    return {"wall_s": statistics.median(walls[20:]), "cpu_s": statistics.median(cpus[20:])}


if __name__ == "__main__":
    main()
