from __future__ import annotations

from tests.databases import database, open_database

__all__ = ["database", "open_database"]
