"""The database server: pgvector, indexes that are whole, our time, and a replica that keeps up."""

from __future__ import annotations

import time
from collections.abc import Iterator

from homing.config import Settings
from homing.database import Transaction
from homing.database.lazy import LazyDatabase, postgres_options
from homing.doctor.finding import Finding
from homing.errors import HomingError

CLOCK = 5.0
"""Seconds that the clock of a server may differ from ours: leases and tokens go by it."""
BEHIND = 60.0
"""Seconds that a replica may be behind."""


def served(settings: Settings) -> list[Finding]:
    """Findings about the server, and the replica, that the settings name; none where there is no server."""
    if not isinstance(settings.database, str):
        return []
    database = LazyDatabase(settings.database)
    try:
        # A write, though it changes nothing: it is the primary's clock that counts, and reads may go to a replica.
        version, broken, now = database.open().write(_primary)
    finally:
        database.close()
    found = [*_wrong(version, broken, now - time.time())]
    if not found:
        message = f"pgvector {version}, indexes valid, clocks agree"
        found.append(Finding("server", "ok", message, detail_zh="数据库服务器正常"))
    return [*found, *_replica(settings.database)]


def _primary(transaction: Transaction) -> tuple[str, list[str], float]:
    extension = transaction.rows("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    broken = transaction.rows(
        "SELECT n.nspname || '.' || c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT i.indisvalid AND n.nspname = current_schema()"
    )
    [(now,)] = transaction.rows("SELECT extract(epoch FROM clock_timestamp())::float8")
    return (str(extension[0][0]) if extension else ""), [str(name) for (name,) in broken], float(now)


def _wrong(version: str, broken: list[str], off: float) -> Iterator[Finding]:
    if not version:
        message = "the extension vector is not installed"
        yield Finding("pgvector", "fail", message, "psql -c 'CREATE EXTENSION vector'", "没有安装 vector 扩展")
    for name in broken:
        message = f"index {name} is not valid"
        yield Finding("index", "fail", message, f"psql -c 'REINDEX INDEX {name}'", f"索引 {name} 无效")
    if abs(off) > CLOCK:
        message, zh = f"the clock of the server differs by {off:.0f} s", f"服务器的时钟相差 {off:.0f} 秒"
        yield Finding("clock", "warn", message, "set both clocks by NTP (timedatectl set-ntp true)", zh)


def _replica(place: str) -> Iterator[Finding]:
    _, options = postgres_options(place)
    address = options.pop("read_url", None)
    if address is None:
        return
    schema = f"{'&' if '?' in address else '?'}schema={options['schema']}" if "schema" in options else ""
    database = LazyDatabase(f"{address}{schema}")
    try:
        standby, paused, behind = database.open().read(_standby)
    except HomingError as error:
        message, zh = f"{error.message}; the primary answers alone", "副本连不上，由主库回答"
        yield Finding("replica", "warn", message, "start the replica, or leave read_url out of the store's address", zh)
        return
    finally:
        database.close()
    if not standby:
        message, zh = "read_url is the address of a primary, not of a replica", "read_url 指向主库而不是副本"
        yield Finding("replica", "fail", message, "name the replica in read_url of the store's address", zh)
    elif paused:
        message, zh = "the replica does not follow: replay is paused", "副本暂停了回放"
        yield Finding("replica", "warn", message, "psql -c 'SELECT pg_wal_replay_resume()' (on the replica)", zh)
    elif behind > BEHIND:
        message, zh = f"the replica is {behind:.0f} s behind", f"副本落后 {behind:.0f} 秒"
        mend = "psql -c 'SELECT * FROM pg_stat_replication' (on the primary) says why"
        yield Finding("replica", "warn", message, mend, zh)
    else:
        yield Finding("replica", "ok", "it follows the primary", detail_zh="副本跟得上主库")


def _standby(transaction: Transaction) -> tuple[bool, bool, float]:
    [(standby,)] = transaction.rows("SELECT pg_is_in_recovery()")
    if not standby:
        return False, False, 0.0
    [(paused, behind)] = transaction.rows(
        "SELECT pg_is_wal_replay_paused(), CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0 "
        "ELSE coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) END::float8"
    )
    return True, bool(paused), float(behind)
