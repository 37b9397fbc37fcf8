"""Chroma behind the door of the floor: FastAPI, the bundled model, and a collection of Chroma, asked by meaning alone.

    python chroma_server.py TEXTS.jsonl VECTORS.npy FOLDER

TEXTS.jsonl has `{"id", "text"}` a line, VECTORS.npy their rows. Prints the port.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import chromadb
import numpy as np
import uvicorn
from chromadb.config import Settings
from fastapi import FastAPI
from pydantic import BaseModel

from homing.embedders.local import LocalProvider

AT_ONCE = 1_000


class Asked(BaseModel):
    query: str
    limit: int = 5


class Found(BaseModel):
    id: str
    text: str
    score: float


class Answer(BaseModel):
    hits: list[Found]


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
    app = built(*map(Path, sys.argv[1:4]))
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="error")).run([listener])


if __name__ == "__main__":
    main()
