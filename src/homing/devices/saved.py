"""The home that was loaded into a database, and how it is asked."""

from __future__ import annotations

import json
import threading
from copy import copy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from homing.chat import ChatModel
from homing.database import Database, Step, Transaction
from homing.devices.answer import Answer, DialogueState
from homing.devices.device import Device, Room
from homing.devices.home import Changes, Home
from homing.devices.loading import HomeFile, load_home, read_home
from homing.devices.parsing.parse import DEADLINE
from homing.devices.retriever import VECTOR_DEADLINE, DeviceRetriever
from homing.embedders.provider import EmbeddingProvider
from homing.errors import StoreCorrupt

COMPONENT = "devices"
STEPS: tuple[Step, ...] = (
    """
    CREATE TABLE homes(
        name TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL, revision INT64 NOT NULL, updated FLOAT64 NOT NULL
    )
    """,
    """
    ALTER TABLE homes RENAME TO home_of_one;
    CREATE TABLE homes(
        user_id TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL, revision INT64 NOT NULL, updated FLOAT64 NOT NULL);
    INSERT INTO homes SELECT '', body, revision, updated FROM home_of_one;
    DROP TABLE home_of_one;
    """,
)


class SavedDevices:
    """Answers sentences about the home that was last loaded into a database, by this process or another.

    Each `user` of a database has one. Loading is atomic, and safe beside asking: a sentence is answered by one home,
    the latest when it was said. A home that cannot be read any more raises StoreCorrupt until another is loaded.
    """

    def __init__(
        self,
        database: Database,
        *,
        user: str = "",
        embedder: EmbeddingProvider | None = None,
        chat: ChatModel | None = None,
        deadline: float = DEADLINE,
        vector_deadline: float = VECTOR_DEADLINE,
    ) -> None:
        database.migrate(COMPONENT, STEPS)
        self._database = database
        self._user = user
        self._lock = threading.Lock()
        self._latest = DeviceRetriever(embedder=embedder, chat=chat, deadline=deadline, vector_deadline=vector_deadline)
        self._revision = 0
        self._seen = -1

    @property
    def home(self) -> Home:
        """The home as it is now; a later one takes its place and leaves it as it is."""
        return self._retriever().home

    def prepare(self) -> int:
        """See DeviceRetriever."""
        return self._retriever().prepare()

    def ask(self, text: str, *, state: DialogueState | None = None, room: str | None = None) -> Answer:
        """See DeviceRetriever."""
        return self._retriever().ask(text, state=state, room=room)

    def load(self, path: Path | str) -> Changes:
        """Makes the home that of a file or folder (see `load_home`), and remembers it."""
        return self._become(load_home(path))

    def replace(self, data: Any) -> Changes:
        """Makes the home the one that `data` describes, in any form that a file may have, and remembers it."""
        return self._become(read_home(data))

    def _retriever(self) -> DeviceRetriever:
        """What answers about the latest home."""
        with self._lock:
            # Before reading: a commit that comes between the two is then noticed the next time.
            seen = self._database.version()
            if seen != self._seen:
                other = "SELECT body, revision FROM homes WHERE user_id = $1 AND revision <> $2"
                user, known = self._user, self._revision
                for body, revision in self._database.read(lambda tx: tx.rows(other, user, known)):
                    self._turn_to(_parse(body), revision)
                self._seen = seen
            return self._latest

    def _become(self, given: HomeFile) -> Changes:
        home = Home(given.devices, given.rooms)
        body = _dump(home)
        replaced, revision = self._database.write(lambda tx: _replace(self._user, body, tx), scope=COMPONENT)
        with self._lock:
            if revision > self._revision:
                self._turn_to(home, revision)
        return _parse_any(replaced).update(home.devices)

    def _turn_to(self, home: Home, revision: int) -> None:
        # A copy: whoever is being answered keeps the home that the answer began with.
        latest = copy(self._latest)
        latest.home = home
        self._latest, self._revision = latest, revision


def _replace(user: str, body: str, tx: Transaction) -> tuple[str | None, int]:
    """Put a home in place of the one before; answers that one's text, and the new revision."""
    before = tx.rows("SELECT body FROM homes WHERE user_id = $1", user)
    [(revision,)] = tx.rows(
        "INSERT INTO homes(user_id, body, revision, updated) VALUES ($1, $2, 1, $3) ON CONFLICT(user_id) DO UPDATE SET "
        "body = excluded.body, revision = homes.revision + 1, updated = excluded.updated RETURNING revision",
        *(user, body, tx.now()),
    )
    return (before[0][0] if before else None), revision


def _dump(home: Home) -> str:
    data = {
        "devices": [device.model_dump(mode="json", exclude_defaults=True) for device in home.devices],
        "rooms": [room.model_dump(mode="json", exclude_defaults=True) for room in home.rooms],
    }
    return json.dumps(data, ensure_ascii=False)


def _parse(body: str) -> Home:
    try:
        data = json.loads(body)
        return Home(
            [Device.model_validate(row) for row in data["devices"]],
            [Room.model_validate(row) for row in data["rooms"]],
        )
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise StoreCorrupt("the saved home is damaged; load the home again (homing devices load FILE)") from error


def _parse_any(body: str | None) -> Home:
    """The home; an empty one where there is none that can be read."""
    try:
        return Home() if body is None else _parse(body)
    except StoreCorrupt:
        return Home()
