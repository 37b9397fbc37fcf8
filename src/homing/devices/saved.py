"""A home that is remembered in a data folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import ValidationError

from homing.chat.model import ChatModel
from homing.devices.device import Device, Room
from homing.devices.home import Changes
from homing.devices.loading import HomeFile, load_home
from homing.devices.parsing import DEADLINE
from homing.devices.retriever import DeviceRetriever
from homing.embedders.provider import EmbeddingProvider
from homing.errors import StoreCorrupt, StoreReadOnly

FILE = "devices.json"


class SavedDevices(DeviceRetriever):
    """Answers sentences about the home that was last loaded into a data folder.

    The home lies in one JSON file, replaced as a whole: a process that is killed while writing leaves the old one.
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
        saved = _read(self._file)
        super().__init__(saved.devices, saved.rooms, embedder=embedder, chat=chat, deadline=deadline)

    def load(self, path: Path | str) -> Changes:
        """Makes the home that of a file or folder (see `load_home`), and remembers it."""
        home = load_home(path)
        changes = self.update(home.devices, home.rooms)
        _write(self._file, HomeFile(tuple(self.home.devices), tuple(self.home.rooms)))
        return changes


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
