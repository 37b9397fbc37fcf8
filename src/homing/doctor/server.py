"""The database server: pgvector, indexes that are whole, our time, and a replica that keeps up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote, urlsplit

from homing.config import Settings
from homing.database import Transaction
from homing.database.lazy import LazyDatabase, postgres_options
from homing.doctor.finding import Finding, failed, fine, quoted, wrong
from homing.errors import HomingError

CLOCK = 5.0
"""Seconds that the clock of a server may differ from ours: leases and tokens go by it."""
BEHIND = 60.0
"""Seconds that a replica may be behind."""
ASKED, BETWEEN = 10, 0.1
"""How often a replica is asked again that has not caught up, and the seconds between."""


@dataclass(frozen=True, slots=True)
class _Lag:
    """How far a replica is behind the primary: bytes of its log, and seconds since the last commit that it has seen."""

    paused: bool
    bytes: int
    seconds: float


def served(settings: Settings) -> list[Finding]:
    """Findings about the server, and the replica, that the settings name; none where there is no server."""
    if not isinstance(settings.database, str):
        return []
    database = LazyDatabase(settings.database)
    try:
        # A write, though it changes nothing: it is the primary's clock that counts, and reads may go to a replica.
        version, broken, now, written = database.open().write(_primary)
    finally:
        database.close()
    found = [*_wrong(settings.database, broken, now - time.time())]
    if not found:
        found.append(fine("server", f"pgvector {version}, indexes valid, clocks agree", "数据库服务器正常"))
    return [*found, *_replica(settings.database, written)]


def psql(address: str) -> str:
    """How an administrator of that server speaks to that database."""
    parts = urlsplit(address)
    port = f" -p {parts.port}" if parts.port else ""
    return (
        f"psql -U postgres -h {parts.hostname or 'localhost'}{port} -d {quoted(unquote(parts.path[1:]) or 'postgres')}"
    )


def _primary(transaction: Transaction) -> tuple[str, list[str], float, str]:
    # There is one: without it the database was not opened.
    [(version,)] = transaction.rows("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    broken = transaction.rows(
        "SELECT n.nspname || '.' || c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT i.indisvalid AND n.nspname = current_schema() "
        # One that is being built is not valid yet, for as long as that takes.
        "AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid)"
    )
    [(now, written)] = transaction.rows(
        "SELECT extract(epoch FROM clock_timestamp())::float8, pg_current_wal_lsn()::text"
    )
    return str(version), [str(name) for (name,) in broken], float(now), str(written)


def _wrong(address: str, broken: list[str], off: float) -> Iterator[Finding]:
    for name in broken:
        message, zh = f"index {name} is not valid", f"索引 {name} 无效"
        yield failed("index invalid", "index", message, f"{psql(address)} -c 'REINDEX INDEX {name}'", zh)
    if abs(off) > CLOCK:
        message, zh = f"the clock of the server differs by {off:.0f} s", f"服务器的时钟相差 {off:.0f} 秒"
        yield wrong("clocks differ", "clock", "warn", message, "set both clocks by NTP (timedatectl set-ntp true)", zh)


def _replica(place: str, written: str) -> Iterator[Finding]:
    """The replica by its address, and how far it is behind what the primary had `written`."""
    _, options = postgres_options(place)
    address = options.pop("read_url", None)
    if address is None:
        return
    from homing.database.postgres.driver import Address

    name = str(Address(address))
    schema = f"{'&' if '?' in address else '?'}schema={options['schema']}" if "schema" in options else ""
    database = LazyDatabase(f"{address}{schema}")
    try:
        found = database.open().read(partial(_standby, written=written))
        for _ in range(ASKED):
            # What was written a moment ago is on its way.
            if found is None or found.paused or not found.bytes:
                break
            time.sleep(BETWEEN)
            found = database.open().read(partial(_standby, written=written))
    except HomingError as error:
        message, zh = f"{name}: {error.message}; the primary answers alone", f"副本 {name} 连不上，由主库回答"
        mend = "start the replica, or leave read_url out of the store's address"
        yield wrong("replica down", "replica", "warn", message, mend, zh)
        return
    finally:
        database.close()
    if found is None:
        message, zh = f"read_url ({name}) is the address of a primary, not of a replica", f"{name} 是主库而不是副本"
        mend = "name the replica in read_url of the store's address"
        yield failed("replica is primary", "replica", message, mend, zh)
        return
    lag, lag_zh = (
        f"{found.bytes} bytes ({found.seconds:.0f} s) behind",
        f"落后 {found.bytes} 字节（{found.seconds:.0f} 秒）",
    )
    if found.paused:
        message, zh = f"{name} does not follow, its replay is paused; it is {lag}", f"副本 {name} 暂停了回放，{lag_zh}"
        mend = f"{psql(address)} -c 'SELECT pg_wal_replay_resume()'"
        yield wrong("replica paused", "replica", "warn", message, mend, zh)
    elif found.seconds > BEHIND:
        mend = f"{psql(place)} -c 'SELECT * FROM pg_stat_replication' says what keeps the replica"
        yield wrong("replica behind", "replica", "warn", f"{name} is {lag}", mend, f"副本 {name} {lag_zh}")
    else:
        yield fine("replica", f"{name} follows, {lag}", f"副本 {name} 跟得上，{lag_zh}")


def _standby(transaction: Transaction, written: str) -> _Lag | None:
    """How far a replica is behind; None of a server that is none."""
    [(standby,)] = transaction.rows("SELECT pg_is_in_recovery()")
    if not standby:
        return None
    [(paused, behind, since)] = transaction.rows(
        "SELECT pg_is_wal_replay_paused(), "
        "greatest(0, pg_wal_lsn_diff($1::text::pg_lsn, pg_last_wal_replay_lsn()))::int8, "
        "coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8",
        written,
    )
    return _Lag(bool(paused), int(behind), float(since) if behind else 0.0)
