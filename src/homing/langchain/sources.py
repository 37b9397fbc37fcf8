"""Which database a vector store stands for."""

from __future__ import annotations

from typing import Any

from homing.errors import InvalidArgument
from homing.langchain.embeddings import checked_embeddings
from homing.langchain.source import Source
from homing.langchain.store_source import StoreSource
from homing.langchain.table import table_of
from homing.langchain.table_source import TableSource
from homing.langchain.users import checked_user
from homing.stores.users import KeepsUsersApart


def source_of(vector_store: Any, user_id: Any, *, embeddings: Any, collection: str, user_key: str) -> Source:
    """The rows of one user behind a vector store. Raises InvalidArgument for a store that cannot keep users apart."""
    user = checked_user(user_id)
    if isinstance(vector_store, KeepsUsersApart):
        return StoreSource(vector_store, user, collection, checked_embeddings(embeddings))
    table = table_of(vector_store)
    if table is not None:
        own = checked_embeddings(table.embeddings if embeddings is None else embeddings)
        return TableSource(table, user, user_key, own)
    raise InvalidArgument(
        "a HybridRetriever searches homing's PostgresStore or langchain-postgres' PGVectorStore: both legs are SQL "
        f"that names the user, which a {type(vector_store).__name__} cannot be asked for"
    )
