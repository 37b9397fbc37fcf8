"""Where a database is: a folder of this machine, or a prefix in object storage with what is needed to reach it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from homing.errors import InvalidArgument

LOCK = ".homing.lock"
SECRET = ("key", "secret", "token", "password", "credential", "sas")
"""What the name of an option contains whose value must not be shown."""


@dataclass(frozen=True, slots=True)
class Address:
    """`uri` is what LanceDB is given; `folder` is set where it is one. `options` may hold keys and are never shown."""

    uri: str
    folder: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.uri

    @classmethod
    def of_folder(cls, path: str | Path) -> Address:
        """A folder of this machine."""
        folder = Path(path)
        return cls(str(folder.absolute()), folder)

    @classmethod
    def of_url(cls, url: str) -> Address:
        """`lance://relative/folder`, `lance:///absolute/folder`, or `s3://bucket/prefix?option=value&…`.

        The options are those of Lance's object storage: `endpoint`, `region`, `allow_http`, `aws_access_key_id` … What
        is not given comes from the environment (`AWS_ACCESS_KEY_ID` …), which is where keys belong.
        """
        scheme, _, rest = url.partition("://")
        if scheme == "lance":
            if not rest.strip("/"):
                raise InvalidArgument("'lance://' names no folder; write lance://relative/folder or lance:///absolute")
            return cls.of_folder(unquote(rest))
        place, _, query = rest.partition("?")
        if not place.strip("/"):
            raise InvalidArgument(f"'{scheme}://' names no bucket; write {scheme}://bucket/prefix")
        return cls(f"{scheme}://{place.rstrip('/')}", None, dict(parse_qsl(query, keep_blank_values=True)))

    @property
    def lock(self) -> Path:
        """The file that writers of this machine lock."""
        if self.folder is not None:
            return self.folder / LOCK
        name = hashlib.blake2b(self.uri.encode(), digest_size=12).hexdigest()
        return Path(tempfile.gettempdir()) / f"homing-{name}.lock"

    def redacted(self, text: str) -> str:
        """The text without any value of an option that could be a secret."""
        for key, value in self.options.items():
            name = key.lower()
            if value and not name.endswith("key_id") and any(mark in name for mark in SECRET):
                text = text.replace(value, "***")
        return text
