"""Embeds texts with sentence-transformers and adds them to Chroma; prints how long that took."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import chromadb
from sentence_transformers import SentenceTransformer

texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
model = SentenceTransformer(sys.argv[2], device="cpu")
model.encode(["warm"])
collection = chromadb.PersistentClient(sys.argv[3]).create_collection("skills", metadata={"hnsw:space": "cosine"})
wall, cpu = time.perf_counter(), time.process_time()
for start in range(0, len(texts), 1_000):
    part = texts[start : start + 1_000]
    vectors = model.encode(part, batch_size=64, normalize_embeddings=True)
    collection.add(ids=[str(start + at) for at in range(len(part))], embeddings=vectors, documents=part)
print(json.dumps({"seconds": time.perf_counter() - wall, "processor": time.process_time() - cpu}))
