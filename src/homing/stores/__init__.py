"""Records are kept and found again: the store protocol and one file per engine."""

from homing.stores.registry import open_store
from homing.stores.store import MAX_LIMIT, CollectionInfo, SearchOptions, Store, VectorStore

__all__ = ["MAX_LIMIT", "CollectionInfo", "SearchOptions", "Store", "VectorStore", "open_store"]
