"""A home that is remembered in a data folder."""

from __future__ import annotations

import json
import os
import threading
from copy import copy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from homing.chat.model import ChatModel
from homing.devices.answer import Answer, DialogueState
from homing.devices.device import Device, Room
from homing.devices.home import Changes, Home
from homing.devices.loading import HomeFile, load_home, read_home
from homing.devices.parsing import DEADLINE
from homing.devices.retriever import DeviceRetriever
from homing.embedders.provider import EmbeddingProvider
from homing.errors import StoreCorrupt, StoreReadOnly

FILE = "devices.json"


class SavedDevices(DeviceRetriever):
    """Answers sentences about the home that was last loaded into a data folder.

    The home lies in one JSON file, replaced as a whole: a process that is killed while writing leaves the old one.
    Loading is safe beside asking: a sentence is answered by one home, the old or the new.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        embedder: EmbeddingProvider | None = None,
        chat: ChatModel | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self._file = Path(folder) / FILE
        self._loading = threading.Lock()
        saved = _read(self._file)
        super().__init__(saved.devices, saved.rooms, embedder=embedder, chat=chat, deadline=deadline)

    def ask(self, text: str, *, state: DialogueState | None = None, room: str | None = None) -> Answer:
        """See DeviceRetriever."""
        # The copy keeps its home while another thread loads a new one.
        return super(SavedDevices, copy(self)).ask(text, state=state, room=room)

    def load(self, path: Path | str) -> Changes:
        """Makes the home that of a file or folder (see `load_home`), and remembers it."""
        return self._become(load_home(path))

    def replace(self, data: Any) -> Changes:
        """Makes the home the one that `data` describes, in any form that a file may have, and remembers it."""
        return self._become(read_home(data))

    def _become(self, given: HomeFile) -> Changes:
        with self._loading:
            home, before = Home(given.devices, given.rooms), self.home
            _write(self._file, HomeFile(tuple(home.devices), tuple(home.rooms)))
            self.home = home
        return _changes(before, home)


def _changes(before: Home, now: Home) -> Changes:
    kept = [one for one in now.placed if one in before.placed]
    same = {one for one in kept if before.placed[one].content == now.placed[one].content}
    return Changes(
        added=tuple(one for one in now.placed if one not in before.placed),
        changed=tuple(one for one in kept if one not in same),
        removed=tuple(one for one in before.placed if one not in now.placed),
        unchanged=tuple(one for one in kept if one in same),
    )


def _read(file: Path) -> HomeFile:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return HomeFile(
            tuple(Device.model_validate(row) for row in data["devices"]),
            tuple(Room.model_validate(row) for row in data["rooms"]),
        )
    except FileNotFoundError:
        return HomeFile(())
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise StoreCorrupt(f"{file} is damaged; delete it and load the home again") from error


def _write(file: Path, home: HomeFile) -> None:
    data = {
        "devices": [device.model_dump(mode="json", exclude_defaults=True) for device in home.devices],
        "rooms": [room.model_dump(mode="json", exclude_defaults=True) for room in home.rooms],
    }
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StoreReadOnly(f"{file} cannot be written: {error.strerror}; choose another data folder") from error
