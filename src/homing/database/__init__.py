"""One SQLite file that several parts keep their tables in: connections, transactions, migrations, errors."""

from homing.database.database import Database

__all__ = ["Database"]
