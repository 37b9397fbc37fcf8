"""The store in a folder of LanceDB tables, or under a prefix in object storage."""

from homing.stores.lance.database import Database
from homing.stores.lance.engine import Address, preload
from homing.stores.lance.store import LanceStore

__all__ = ["Address", "Database", "LanceStore", "preload"]
