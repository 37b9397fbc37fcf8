"""The store in one SQLite file."""

from homing.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
