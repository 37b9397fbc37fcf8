"""The floor under a search server: FastAPI, the bundled model, FTS5 and a matrix of vectors, fused; nothing else.

    python floor_server.py TEXTS.jsonl VECTORS.npy

TEXTS.jsonl has `{"id", "text"}` a line; VECTORS.npy their rows, made where it is missing. Prints the port.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import apsw
import numpy as np
from door import Answer, Asked, Found, serve
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from homing.embedders.local import LocalProvider
from homing.text.tokens import query_terms, tokens

K = 60
DEPTH = 30


def built(texts: Path, vectors: Path) -> FastAPI:
    """The whole server."""
    app, model = FastAPI(), LocalProvider(threads=1)
    rows = [json.loads(line) for line in texts.read_text(encoding="utf-8").splitlines()]
    if not vectors.exists():
        np.save(vectors, model.embed([row["text"] for row in rows]))
    matrix = np.load(vectors)
    file = apsw.Connection(":memory:")
    file.execute("create virtual table words using fts5(terms, content='')")
    file.execute("create table texts(id text, body text)")
    with file:
        for number, row in enumerate(rows, start=1):
            file.execute("insert into words(rowid, terms) values (?, ?)", (number, " ".join(tokens(row["text"]))))
            file.execute("insert into texts(rowid, id, body) values (?, ?, ?)", (number, row["id"], row["text"]))

    @app.post("/search")
    def search(asked: Asked) -> Answer:
        near = matrix @ model.embed([asked.query])[0]
        best = np.argpartition(-near, DEPTH)[:DEPTH]
        ranks = [[int(at) + 1 for at in best[np.argsort(-near[best])]]]
        wanted = " OR ".join(f'"{term}"' for term in query_terms(asked.query))
        found = file.execute(
            "select rowid from words where words match ? order by rank limit ?", (wanted, DEPTH)
        ).fetchall()
        ranks.append([number for (number,) in found])
        scores: dict[int, float] = {}
        for weight, ranking in zip((0.7, 0.3), ranks, strict=True):
            for place, number in enumerate(ranking, start=1):
                scores[number] = scores.get(number, 0.0) + weight / (K + place)
        hits = []
        for number in sorted(scores, key=lambda one: -scores[one])[: asked.limit]:
            [(name, body)] = file.execute("select id, body from texts where rowid = ?", (number,)).fetchall()
            hits.append(Found(id=name, text=body, score=scores[number]))
        return Answer(hits=hits)

    @app.get("/empty")
    def empty() -> dict[str, str]:
        return {}

    return app


def main() -> None:
    threadpool_limits(1, user_api="blas")
    serve(built(Path(sys.argv[1]), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
