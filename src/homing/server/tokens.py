"""Tokens: who may use the server, as whom, and for what. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from homing.database import Database, Row, Step, Transaction
from homing.errors import InvalidArgument, NotFound, Unauthorized
from homing.operations.operation import SCOPES, Scope

PREFIX = "hmg"
COMPONENT = "tokens"
STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE tokens(
        id TEXT NOT NULL PRIMARY KEY, hash BYTES NOT NULL, user_name TEXT NOT NULL, scope TEXT NOT NULL,
        note TEXT NOT NULL, created FLOAT64 NOT NULL
    )
    """,
    "ALTER TABLE tokens ADD COLUMN expires FLOAT64",
)
COLUMNS = "id, user_name, scope, note, created, expires"
MAX_USER = 200
MAX_SECONDS = 100 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Token:
    """What is known about a token; not the token itself."""

    id: str
    user: str
    scope: Scope
    note: str
    created: float
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just created. `secret` is what to send; it can be seen here and never again."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"NewToken({self.token!r}, secret=…)"


class Tokens:
    """The tokens of one server. One that is created or revoked, here or elsewhere, counts from the next request on."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._held: tuple[int, dict[str, tuple[bytes, Token]]] = (-1, {})

    @classmethod
    def exist(cls, database: Database | None) -> bool:
        """Whether the database has any, if there is one; makes no table."""
        return database is not None and database.applied(COMPONENT) > 0 and bool(cls(database).all())

    def create(self, user: str, scope: Scope, note: str = "", *, seconds: float | None = None) -> NewToken:
        """A new token for a user, valid for `seconds` where they are given.

        A token has 256 random bits, so a plain hash of it cannot be undone by guessing.
        """
        if seconds is not None and not 0 < seconds <= MAX_SECONDS:
            raise InvalidArgument("a token expires after a positive number of seconds, and within a hundred years")
        if not user.strip() or not user.isprintable() or len(user.encode()) > MAX_USER:
            raise InvalidArgument(f"a user's name is one line of 1 to {MAX_USER} bytes; got {user[:40]!r}")
        if scope not in SCOPES:
            raise InvalidArgument(f"no scope {scope!r}; known: {', '.join(SCOPES)}")
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)

        def work(tx: Transaction) -> list[Row]:
            return tx.rows(
                "INSERT INTO tokens(id, hash, user_name, scope, note, created, expires) "
                f"VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING {COLUMNS}",
                *(token_id, _hash(secret), user, scope, note, now := tx.now(), seconds and now + seconds),
            )

        [row] = self._database.write(work, scope=COMPONENT)
        return NewToken(Token(*row), f"{PREFIX}_{token_id}_{secret}")

    def __bool__(self) -> bool:
        return bool(self._read())

    def all(self) -> list[Token]:
        """All of them, the oldest first."""
        return sorted((token for _, token in self._read().values()), key=lambda one: (one.created, one.id))

    def revoke(self, token_id: str) -> Token:
        """Make a token worthless."""
        gone = self._database.write(
            lambda tx: tx.rows(f"DELETE FROM tokens WHERE id = $1 RETURNING {COLUMNS}", token_id), scope=COMPONENT
        )
        if not gone:
            raise NotFound(f"no token has the id {token_id!r}; `homing tokens list` shows them")
        return Token(*gone[0])

    def rotate(self, token_id: str) -> NewToken:
        """The same token with a new secret: the old one is worthless, and one that expires has its time anew."""
        secret = secrets.token_urlsafe(32)
        found = self._database.write(
            lambda tx: tx.rows(
                "UPDATE tokens SET hash = $1, expires = expires - created + $2, created = $3 WHERE id = $4 "
                f"RETURNING {COLUMNS}",
                *(_hash(secret), now := tx.now(), now, token_id),
            ),
            scope=COMPONENT,
        )
        if not found:
            raise NotFound(f"no token has the id {token_id!r}; `homing tokens list` shows them")
        return NewToken(Token(*found[0]), f"{PREFIX}_{token_id}_{secret}")

    def check(self, given: str) -> Token:
        """The token that was sent. Raises Unauthorized; how long that takes tells nothing about the right one."""
        kind, _, rest = given.partition("_")
        token_id, _, secret = rest.partition("_")
        kept, token = self._read().get(token_id, (_NOBODY, None))
        matches = hmac.compare_digest(_hash(secret), kept)
        if kind != PREFIX or token is None or not matches:
            raise Unauthorized("this token is not valid (any more); create one with `homing tokens create`")
        if token.expires is not None and token.expires <= self._clock():
            raise Unauthorized(f"this token has expired; renew it with `homing tokens rotate {token.id}`")
        return token

    def _read(self) -> dict[str, tuple[bytes, Token]]:
        # Before reading: a commit that comes between the two is then noticed the next time.
        version = self._database.version()
        seen, known = self._held
        if version != seen:
            # One that was revoked is worthless at once, however far a replica is behind.
            found = self._database.read(lambda tx: tx.rows(f"SELECT hash, {COLUMNS} FROM tokens"), fresh=True)
            known = {row[1]: (row[0], Token(*row[1:])) for row in found}
            self._held = (version, known)
        return known


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_NOBODY = _hash(secrets.token_urlsafe(32))
