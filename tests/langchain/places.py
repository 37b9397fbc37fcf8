"""The places that a retriever searches, filled and asked alike: Homing's stores, and a table of langchain-postgres."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import psycopg
from langchain_postgres import PGEngine, PGVectorStore
from psycopg import sql

from homing.langchain import HomingEmbeddings, HybridRetriever
from homing.records import VectorRecord
from homing.stores.postgres.store import PostgresStore
from homing.stores.registry import open_store
from homing.stores.store import Store
from homing.testing.fake import FakeEmbedder
from tests.conftest import Database


@dataclass(frozen=True)
class Text:
    """A text with its file, and whatever else its metadata claims."""

    text: str
    file: str = "notes.md"
    metadata: Mapping[str, Any] | None = None

    @property
    def all_metadata(self) -> dict[str, Any]:
        return {"fileName": self.file, **(self.metadata or {})}


class TableName(NamedTuple):
    """A table and the schema it is in."""

    table: str
    schema: str


class Place(Protocol):
    """Somewhere to keep texts of users."""

    embedder: FakeEmbedder

    def add(self, user_id: int | str, texts: Sequence[Text]) -> list[str]:
        """Keep texts as a user's; their ids."""

    def retriever(self, user_id: int | str, options: Any = None, **more: Any) -> HybridRetriever:
        """The retriever of a user."""

    @property
    def kept_in(self) -> TableName:
        """The table that every search reads."""

    def close(self) -> None:
        """Let go."""


class StorePlace:
    """Homing's store."""

    def __init__(self, database: Database, *, row_security: bool = False) -> None:
        self.embedder = FakeEmbedder(128)
        self.store = PostgresStore(database.url, schema=f"l_{secrets.token_hex(5)}", row_security=row_security)
        self._database = database

    def add(self, user_id: int | str, texts: Sequence[Text]) -> list[str]:
        ids = [str(uuid.uuid4()) for _ in texts]
        if texts:
            rows = self.embedder.embed([one.text for one in texts])
            self.store.for_user(user_id).upsert(
                VectorRecord(name, "documents", row, one.all_metadata, one.text, self.embedder.id)
                for name, row, one in zip(ids, rows, texts, strict=True)
            )
        return ids

    def retriever(self, user_id: int | str, options: Any = None, **more: Any) -> HybridRetriever:
        return HybridRetriever(self.store, user_id, options, **{"embeddings": self.embedder, **more})

    @property
    def kept_in(self) -> TableName:
        return TableName("records", self.store.schema)

    def close(self) -> None:
        self.store.close()
        with psycopg.connect(self._database.admin_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self.store.schema)))


class SharedPlace:
    """A store that does not keep users apart by itself: whose a record is stands in its metadata."""

    def __init__(self, store: Store) -> None:
        self.embedder = FakeEmbedder(128)
        self.store = store

    def add(self, user_id: int | str, texts: Sequence[Text]) -> list[str]:
        return self.insert([(one.text, one.all_metadata | {"userId": user_id}) for one in texts])

    def insert(self, rows: Sequence[tuple[str, Any]], *, embedded: bool = True) -> list[str]:
        """Records exactly as given, forged ones too."""
        ids = [str(uuid.uuid4()) for _ in rows]
        if rows:
            vectors = self.embedder.embed([text for text, _ in rows])
            self.store.upsert(
                VectorRecord(name, "documents", vector if embedded else None, metadata, text, self.embedder.id)
                for name, vector, (text, metadata) in zip(ids, vectors, rows, strict=True)
            )
        return ids

    def retriever(self, user_id: int | str, options: Any = None, **more: Any) -> HybridRetriever:
        return HybridRetriever(self.store, user_id, options, **{"embeddings": self.embedder, **more})

    @property
    def kept_in(self) -> TableName:
        raise NotImplementedError("no server keeps this")

    def close(self) -> None:
        self.store.close()


def shared_place(kind: str, folder: Path) -> SharedPlace:
    """SQLite or LanceDB in a folder."""
    return SharedPlace(open_store(folder / "store.db" if kind == "sqlite" else f"lance://{folder / 'lance'}"))


class TablePlace:
    """A table of langchain-postgres, the user in its JSON metadata."""

    def __init__(self, database: Database) -> None:
        self.embedder = FakeEmbedder(128)
        self.name = f"t_{secrets.token_hex(5)}"
        self.url = database.url
        self.engine = PGEngine.from_connection_string(database.url.replace("postgresql://", "postgresql+asyncpg://"))
        self.engine.init_vectorstore_table(self.name, self.embedder.dimensions)
        self.vector_store = PGVectorStore.create_sync(self.engine, HomingEmbeddings(self.embedder), self.name)

    def add(self, user_id: int | str, texts: Sequence[Text]) -> list[str]:
        # `userId` last: what a document claims is not what the application writes.
        return self.insert([(one.text, one.all_metadata | {"userId": user_id}) for one in texts])

    def insert(self, rows: Sequence[tuple[str, Any]]) -> list[str]:
        """Rows exactly as given, forged ones too."""
        ids = [str(uuid.uuid4()) for _ in rows]
        if rows:
            vectors = self.embedder.embed([text for text, _ in rows])
            with psycopg.connect(self.url, autocommit=True) as connection, connection.cursor() as cursor:
                cursor.executemany(
                    sql.SQL("INSERT INTO {} VALUES (%s, %s, %s::vector, %s::json)").format(sql.Identifier(self.name)),
                    [
                        (name, text, str(vector.tolist()), json.dumps(metadata))
                        for name, (text, metadata), vector in zip(ids, rows, vectors, strict=True)
                    ],
                )
        return ids

    def retriever(self, user_id: int | str, options: Any = None, **more: Any) -> HybridRetriever:
        return HybridRetriever(self.vector_store, user_id, options, **more)

    @property
    def kept_in(self) -> TableName:
        return TableName(self.name, "public")

    def close(self) -> None:
        self.engine.drop_table(self.name)
        assert PGEngine._default_loop is not None
        asyncio.run_coroutine_threadsafe(self.engine._pool.dispose(), PGEngine._default_loop).result(120)
        # A connection that nobody closed says so here, and not in the middle of another test.
        gc.collect()
