"""One SQLite file that every part keeps its tables in: connections, transactions, migrations, errors."""

from homing.database.sqlite.database import SqliteDatabase

__all__ = ["SqliteDatabase"]
