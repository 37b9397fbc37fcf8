"""Chroma behind the door of the floor: FastAPI, the bundled model, and a collection of Chroma, asked by meaning alone.

    python chroma_server.py TEXTS.jsonl VECTORS.npy FOLDER

TEXTS.jsonl has `{"id", "text"}` a line, VECTORS.npy their rows. Prints the port.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import chromadb
import numpy as np
from chromadb.config import Settings
from door import Answer, Asked, Found, serve
from fastapi import FastAPI

from homing.embedders.local import LocalProvider

AT_ONCE = 1_000


def built(texts: Path, vectors: Path, folder: Path) -> FastAPI:
    """The whole server."""
    app, model = FastAPI(), LocalProvider(threads=1)
    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    kept = client.get_or_create_collection("texts", metadata={"hnsw:space": "cosine"})
    if not kept.count():
        rows, matrix = [json.loads(line) for line in texts.read_text(encoding="utf-8").splitlines()], np.load(vectors)
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            kept.add(
                ids=[row["id"] for row in part],
                documents=[row["text"] for row in part],
                embeddings=matrix[start : start + AT_ONCE],
            )

    @app.post("/search")
    def search(asked: Asked) -> Answer:
        near = kept.query(
            query_embeddings=model.embed([asked.query]), n_results=asked.limit, include=["documents", "distances"]
        )
        found = zip(near["ids"][0], near["documents"][0], near["distances"][0], strict=True)
        return Answer(hits=[Found(id=name, text=text, score=1 - distance) for name, text, distance in found])

    return app


def main() -> None:
    serve(built(*map(Path, sys.argv[1:4])))


if __name__ == "__main__":
    main()
