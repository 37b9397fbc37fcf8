"""Tokens: who may use the server, as whom, and for what. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from homing.database.sqlite import SqliteDatabase
from homing.database.sqlite.rows import rows
from homing.errors import InvalidArgument, NotFound, Unauthorized
from homing.server.access import SCOPES, Scope

FILE = "tokens.db"
PREFIX = "hmg"
STEPS = (
    """
    CREATE TABLE tokens(
        id TEXT PRIMARY KEY, hash BLOB NOT NULL, user TEXT NOT NULL, scope TEXT NOT NULL, note TEXT NOT NULL,
        created REAL NOT NULL) WITHOUT ROWID;
    """,
)
LONGEST_USER = 200


@dataclass(frozen=True, slots=True)
class Token:
    """What is known about a token; not the token itself."""

    id: str
    user: str
    scope: Scope
    note: str
    created: float


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just created. `secret` is what to send; it can be seen here and never again."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"NewToken({self.token!r}, secret=…)"


class Tokens:
    """The tokens of one data folder, in a file of their own that only its owner may read.

    A token that is created or revoked, here or in another process, counts from the next request on.
    """

    def __init__(self, data: Path) -> None:
        path = data / FILE
        self._database = SqliteDatabase(path)
        path.chmod(0o600)
        self._database.migrate("tokens", STEPS)
        self._version = -1
        self._known: dict[str, tuple[bytes, Token]] = {}

    @classmethod
    def exist(cls, data: Path) -> bool:
        """Whether the folder has any; makes no file."""
        if not (data / FILE).exists():
            return False
        tokens = cls(data)
        try:
            return bool(tokens.all())
        finally:
            tokens.close()

    def create(self, user: str, scope: Scope, note: str = "") -> NewToken:
        """A new token for a user. A token has 256 random bits, so a plain hash of it cannot be undone by guessing."""
        if not user.strip() or not user.isprintable() or len(user.encode()) > LONGEST_USER:
            raise InvalidArgument(f"a user's name is one line of 1 to {LONGEST_USER} bytes; got {user[:40]!r}")
        if scope not in SCOPES:
            raise InvalidArgument(f"no scope {scope!r}; known: {', '.join(SCOPES)}")
        token = Token(secrets.token_hex(6), user, scope, note, time.time())
        secret = secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)",
                (token.id, _hash(secret), token.user, token.scope, token.note, token.created),
            )
        return NewToken(token, f"{PREFIX}_{token.id}_{secret}")

    def all(self) -> list[Token]:
        """All of them, the oldest first."""
        return sorted((token for _, token in self._read().values()), key=lambda one: (one.created, one.id))

    def revoke(self, token_id: str) -> Token:
        """Make a token worthless."""
        found = self._read().get(token_id)
        if found is None:
            raise NotFound(f"no token has the id {token_id!r}; `homing tokens list` shows them")
        with self._database.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE id = ?", (token_id,))
        return found[1]

    def check(self, given: str) -> Token:
        """The token that was sent. Raises Unauthorized; how long that takes tells nothing about the right one."""
        kind, _, rest = given.partition("_")
        token_id, _, secret = rest.partition("_")
        kept, token = self._read().get(token_id, (_NOBODY, None))
        matches = hmac.compare_digest(_hash(secret), kept)
        if kind != PREFIX or token is None or not matches:
            raise Unauthorized("this token is not valid (any more); create one with `homing tokens create`")
        return token

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _read(self) -> dict[str, tuple[bytes, Token]]:
        version = self._database.version()
        if version != self._version:
            with self._database.reading() as connection:
                found = rows(connection, "SELECT id, hash, user, scope, note, created FROM tokens")
            self._known = {row[0]: (row[1], Token(row[0], *row[2:])) for row in found}
            self._version = version
        return self._known


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


_NOBODY = _hash(secrets.token_urlsafe(32))
