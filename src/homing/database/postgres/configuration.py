"""What every connection is told when it is made."""

from __future__ import annotations

from homing.database.postgres.driver import Connection
from homing.database.postgres.vector_type import register
from homing.errors import InvalidArgument

STATEMENT_TIMEOUT = 30.0
"""Seconds that the server works on one statement before it gives up."""
EF_SEARCH = 250
"""How many of the nearest vectors an index keeps in view while it looks.

Recall@10 of questions among 100,000 sentences of other subjects, embedded by the bundled model, in the graph that the
store builds: 0.92 at 60, 0.977 at 200, 0.985 at 300 (in pgvector's default graph: 0.87, 0.955, 0.97). Questions that
are like the sentences reach that at 40.
"""


def configure(connection: Connection, schema: str, timeout: int) -> None:
    """Settings of one session, and the type `vector`, whose number differs from database to database."""
    row = connection.execute(
        "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, false), "
        # Writers look again at what they waited for, which a stricter isolation would refuse.
        "set_config('default_transaction_isolation', 'read committed', false), "
        "set_config('hnsw.iterative_scan', 'relaxed_order', false), set_config('hnsw.ef_search', %s, false), "
        # The planner takes an index page for four times as dear as it is where it is in memory or on flash, and
        # would compare thousands of vectors, each cast to half precision, rather than look into the index.
        "set_config('random_page_cost', '1.1', false), set_config('jit', 'off', false), "
        "(SELECT t.oid FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace "
        "WHERE e.extname = 'vector' AND t.typname = 'vector')",
        (_search_path(connection, schema), str(timeout), str(EF_SEARCH)),
    ).fetchone()
    assert row is not None
    register(connection, row[-1])


def milliseconds(timeout: float | None) -> int:
    """A time limit as the server counts it; 0 is none."""
    if timeout is None:
        return 0
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 86_400:
        raise InvalidArgument(f"statement_timeout is seconds, up to a day, or None; got {timeout!r}")
    return max(1, round(timeout * 1000))


def _search_path(connection: Connection, schema: str) -> str:
    """Where names are looked up: our tables, then the types of pgvector, wherever they were installed."""
    row = connection.execute(
        "SELECT quote_ident(%s) || coalesce((SELECT ', ' || quote_ident(n.nspname) FROM pg_extension e "
        "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'), '')",
        (schema,),
    ).fetchone()
    assert row is not None
    return str(row[0])
