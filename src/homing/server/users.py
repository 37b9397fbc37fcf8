"""Users: documents, memory, devices and knowledge of one are never those of another.

Where the server's database keeps users apart (PostgreSQL), each user has their part of it, and no file. Else each has a
data folder of their own below the server's, with a database of its own. Models and skills are the server's. The owner
is who runs the server; theirs is the server's own database or folder.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from homing.app import Homing
from homing.database.private import private_file, private_folder
from homing.errors import Overloaded

log = logging.getLogger(__name__)

OWNER = "owner"
"""The user whose data is in the server's own folder."""
FOLDER = "users"
NAME_FILE = "user.txt"
CLOSERS = 8
"""How many folders are closed at the same time."""


def folder_name(user: str) -> str:
    """The name of a user's folder: readable, the same everywhere, and no two users share one.

    File systems fold case, trim dots and refuse some names; a hash of the exact name keeps those apart that would meet.
    """
    readable = re.sub(r"[^\w-]+", "-", user.casefold()).strip("-")[:40] or "user"
    return f"{readable}-{blake2b(user.encode(), digest_size=8).hexdigest()}"


@dataclass(slots=True)
class _Open:
    app: Homing
    users: int = 0
    ready: bool = False
    opening: threading.Lock = field(default_factory=threading.Lock)


class Users:
    """The apps of the users. At most `most` are open; one that is being used is never closed.

    Folders from before the server's database kept users apart stay as they are, and are logged as left behind.
    """

    def __init__(self, owner: Homing, *, most: int = 64) -> None:
        self.owner = owner
        self._most = most
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._closing = ThreadPoolExecutor(CLOSERS, thread_name_prefix="homing-closing")
        if owner.keeps_users_apart and (left := self.known()[1:]):
            log.warning(
                "%d users have folders in %s that are not served from now on, because users are in the database; bring "
                "each over with: homing store copy sqlite:///FOLDER/homing.db ADDRESS --user NAME",
                *(len(left), owner.settings.data / FOLDER),
            )

    @contextmanager
    def lease(self, user: str) -> Iterator[Homing]:
        """The app of a user, open for as long as the block lasts. Takes time only where it has to be opened."""
        if user == OWNER:
            yield self.owner
            return
        held = self._take(user)
        try:
            if not held.ready:
                self._prepare(user, held)
            yield held.app
        finally:
            with self._lock:
                held.users -= 1

    def is_open(self, user: str) -> bool:
        """Whether a lease costs nothing."""
        with self._lock:
            return user == OWNER or (user in self._open and self._open[user].ready)

    def known(self) -> list[str]:
        """The owner, and whoever has a folder of their own; all others are reached through the owner's engine."""
        files = sorted((self.owner.settings.data / FOLDER).glob(f"*/{NAME_FILE}"))
        return [OWNER, *(file.read_text(encoding="utf-8") for file in files)]

    def open_apps(self) -> list[tuple[str, Homing]]:
        """The users whose folders are open now."""
        with self._lock:
            return [(OWNER, self.owner), *((user, held.app) for user, held in self._open.items() if held.ready)]

    def close(self) -> None:
        """Close every user's folder, each embedding what still waits. The owner's app is left to who opened it."""
        with self._lock:
            held, self._open = self._open, OrderedDict()
        for one in held.values():
            self._closing.submit(self._close, one.app)
        self._closing.shutdown()

    def folder(self, user: str) -> Path:
        """Where a user's data is."""
        data = self.owner.settings.data
        return data if user == OWNER else data / FOLDER / folder_name(user)

    def _take(self, user: str) -> _Open:
        with self._lock:
            held = self._open.get(user)
            if held is None:
                self._make_room()
                held = self._open[user] = _Open(self._app(user))
            self._open.move_to_end(user)
            held.users += 1
            return held

    def _make_room(self) -> None:
        for user, one in list(self._open.items()):
            if len(self._open) < self._most:
                return
            if not one.users:
                # Behind the scenes: who comes does not wait until another's texts are embedded. Should that one come
                # back meanwhile, two have the folder open, as two processes may.
                self._closing.submit(self._close, self._open.pop(user).app)
        if len(self._open) >= self._most:
            raise Overloaded(f"{self._most} users are being served; come back in a moment", retry_after=2)

    def _app(self, user: str) -> Homing:
        if self.owner.keeps_users_apart:
            return Homing(self.owner.settings, shared=self.owner, user=user)
        # A store that the settings name would be everybody's: each user has the one in their own folder.
        changes = {"data": self.folder(user), "store": "", "row_security": False}
        return Homing(self.owner.settings.model_copy(update=changes), shared=self.owner, user=user)

    def prepare(self, app: Homing) -> None:
        """Open what requests use, and embed what an earlier process left waiting, beside whoever does so too."""
        app.engine.start()
        assert app.memory is not None
        assert app.documents is not None
        assert app.devices is not None

    def _close(self, app: Homing) -> None:
        try:
            app.close()
        except Exception:
            log.exception("the folder %s was not closed properly; what it holds is on disk", app.settings.data)

    def _prepare(self, user: str, held: _Open) -> None:
        """Open the parts one after the other: two threads that open the same part at once would open it twice."""
        with held.opening:
            if held.ready:
                return
            if self.owner.keeps_users_apart:
                held.app.engine.register()
            else:
                _make_folder(self.folder(user), user)
            self.prepare(held.app)
            held.ready = True


def _make_folder(folder: Path, user: str) -> None:
    """Make a user's folder, and write whose it is: once, and whole, for whoever lists the users meanwhile would read
    half a name."""
    private_folder(folder.parent)
    private_folder(folder)
    signed = folder / NAME_FILE
    if not signed.exists():
        draft = folder / f"{NAME_FILE}.{secrets.token_hex(4)}"
        private_file(draft)
        draft.write_text(user, encoding="utf-8")
        os.replace(draft, signed)
