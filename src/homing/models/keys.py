"""Where keys of providers are kept: never in the database, which is copied, backed up and shared."""

from __future__ import annotations

import importlib
import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from homing.database.locking import WriteLock
from homing.database.private import private_file
from homing.errors import ConfigError, InvalidArgument, MissingExtra

NAME = "keys.json"
SERVICE = "homing"
_REFERENCE = re.compile(r"\$\{(?:(file|keyring):)?[\w.-]+\}")


class Keys:
    """Keeps keys in a file of the data folder that nobody else reads, and finds them again by their reference.

    A key may be `${VARIABLE}`, of the environment; `${keyring:NAME}`, in the keyring of the system under the service
    `homing`; or `${file:NAME}`, in the file, which is what `keep` answers for a plain one. Without a file (the rows are
    in a database server) a plain key is refused.
    """

    def __init__(self, file: Path | None, refer: Callable[[str], str]) -> None:
        self._file = file
        self._refer = refer

    def keep(self, key: str) -> str:
        """What stands in the database for a key. Raises InvalidArgument where a plain one has no place."""
        if not key or is_reference(key):
            return key
        if self._file is None:
            raise InvalidArgument(
                "a key is not kept in a database server; write ${VARIABLE}, and set that variable where Homing runs"
            )
        reference = f"${{file:{secrets.token_hex(4)}}}"
        lock = self._file.with_suffix(".lock")
        private_file(lock)
        with WriteLock(lock, wait=10.0).held():
            kept = self._read() | {reference: key}
            draft = self._file.with_suffix(".new")
            private_file(draft)
            draft.write_text(json.dumps(kept), encoding="utf-8")
            os.replace(draft, self._file)
        return reference

    def refer(self, value: str) -> str:
        """The key that a reference means, and anything else as it is. Raises ConfigError, MissingExtra."""
        found = _REFERENCE.fullmatch(value)
        if found is None or found[1] is None:
            return self._refer(value)
        name = value[2:-1].partition(":")[2]
        key = self._read().get(value) if found[1] == "file" else _from_keyring(name)
        if key is None:
            raise ConfigError(f"the key {value} is not there any more; set it again with `homing providers key`")
        return str(key)

    def _read(self) -> dict[str, str]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self._file} cannot be read ({error}); set the keys again") from None
        return kept if isinstance(kept, dict) else {}


def is_reference(key: str) -> bool:
    """Whether this says where a key is, and is none."""
    return _REFERENCE.fullmatch(key) is not None


def _from_keyring(name: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "keyring is not installed; install it with: pip install keyring", details={"extra": "keyring"}
        ) from error
    try:
        found: str | None = keyring.get_password(SERVICE, name)
    except keyring.errors.KeyringError as error:
        raise ConfigError(f"the keyring of this machine cannot be asked for {name!r}: {error}") from error
    return found
