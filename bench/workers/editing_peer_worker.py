"""The peers' side of `documents.py`: what LangChain's indexing API and LlamaIndex's ingestion embed for each edit.

Reads a JSON file with steps (a name, the text before, the text after) and prints, for each peer and way of cutting, how
many texts were embedded for the first text and for each step.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

WIDTH = 16
BLANK_LINE = r"(?:\r?\n){2,}"


def vector(text: str) -> list[float]:
    """Any vector: only the number of calls is looked at."""
    digest = hashlib.blake2b(text.encode(), digest_size=WIDTH).digest()
    return [byte / 255 for byte in digest]


def main() -> None:
    """Run every step with every peer."""
    steps = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    peers: dict[str, Callable[[], Any]] = {
        "LangChain index(), incremental, 1000/200": lambda: LangChain("incremental", by_paragraph=False),
        "LangChain index(), incremental, by paragraph": lambda: LangChain("incremental", by_paragraph=True),
        "LangChain index(), scoped_full, by paragraph": lambda: LangChain("scoped_full", by_paragraph=True),
        "LlamaIndex ingestion, SentenceSplitter": lambda: LlamaIndex(by_paragraph=False),
        "LlamaIndex ingestion, by paragraph": lambda: LlamaIndex(by_paragraph=True),
    }
    found = {name: [count(make, step) for step in steps] for name, make in peers.items()}
    names = ("langchain-core", "langchain-text-splitters", "llama-index-core")
    print(json.dumps({"embedded": found, "versions": {name: version(name) for name in names}}))


def count(make: Callable[[], Any], step: dict[str, Any]) -> dict[str, int]:
    """How many texts are embedded for the text before, and for the one after it."""
    peer = make()
    for text in step["before"]:
        peer.put(text)
    first = peer.embedded
    peer.put(step["after"])
    return {"first": first, "edit": peer.embedded - first}


class LangChain:
    """`index` into a store in memory, cut as its documentation shows, or with a paragraph to each chunk."""

    def __init__(self, cleanup: Any, *, by_paragraph: bool) -> None:
        from langchain_core.embeddings import Embeddings
        from langchain_core.indexing import InMemoryRecordManager
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter

        peer = self

        class Counting(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                peer.embedded += len(texts)
                return [vector(text) for text in texts]

            def embed_query(self, text: str) -> list[float]:
                return vector(text)

        self.embedded = 0
        self._cleanup = cleanup
        self._store = InMemoryVectorStore(Counting())
        self._records = InMemoryRecordManager("bench")
        self._records.create_schema()
        if by_paragraph:
            self._splitter: Any = CharacterTextSplitter(
                separator=BLANK_LINE, is_separator_regex=True, chunk_size=1, chunk_overlap=0
            )
        else:
            self._splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)

    def put(self, text: str) -> None:
        """Bring the store to a text."""
        from langchain_core.documents import Document
        from langchain_core.indexing import index

        chunks = self._splitter.split_documents([Document(text, metadata={"source": "novel"})])
        index(chunks, self._records, self._store, cleanup=self._cleanup, source_id_key="source", key_encoder="sha256")


class LlamaIndex:
    """An ingestion pipeline with a document store and upserts, as its documentation shows."""

    def __init__(self, *, by_paragraph: bool) -> None:
        from llama_index.core.base.embeddings.base import BaseEmbedding
        from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
        from llama_index.core.node_parser import SentenceSplitter
        from llama_index.core.schema import TextNode, TransformComponent
        from llama_index.core.storage.docstore import SimpleDocumentStore
        from llama_index.core.vector_stores import SimpleVectorStore

        peer = self

        class Counting(BaseEmbedding):
            def _get_text_embedding(self, text: str) -> list[float]:
                peer.embedded += 1
                return vector(text)

            def _get_query_embedding(self, query: str) -> list[float]:
                return vector(query)

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return vector(query)

        class Paragraphs(TransformComponent):
            def __call__(self, nodes: Any, **options: Any) -> Any:
                return [
                    TextNode(text=part, relationships={"1": node.as_related_node_info()})
                    for node in nodes
                    for part in re.split(BLANK_LINE, node.text)
                ]

        self.embedded = 0
        self._pipeline = IngestionPipeline(
            transformations=[Paragraphs() if by_paragraph else SentenceSplitter(), Counting()],
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.UPSERTS,
            vector_store=SimpleVectorStore(),
        )

    def put(self, text: str) -> None:
        """Bring the store to a text."""
        from llama_index.core import Document

        self._pipeline.run(documents=[Document(text=text, id_="novel")])


if __name__ == "__main__":
    main()
