"""A local model on disk: `model.onnx`, `weights.bin`, `tokenizer.json`, and `model.json` that says what they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from homing.errors import ModelNotReady
from homing.vectors import Fit, Scale

GRAPH = "model.onnx"
WEIGHTS = "weights.bin"
"""The constants of the graph; a model may also have them in the graph itself."""
TOKENIZER = "tokenizer.json"
DESCRIPTION = "model.json"
BUNDLED = Path(__file__).parent / "bundled"
"""The model that ships inside the package."""
FIRST_VERSION = "1"


def name_in(identity: str) -> str:
    """The name of the model that an identity is of: without the version, where the model runs on this machine."""
    provider, _, rest = identity.partition("/")
    name = rest.rpartition("@")[0]
    return name.partition(":")[0] if provider == "local" else name


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What `model.json` says; `graph` and `file` check the heavy files and say where they are."""

    path: Path
    name: str
    version: str
    """Counts the releases of the model that give other vectors; a part of its identity, so that they never meet."""
    dimensions: int
    max_tokens: int
    window: int
    """Tokens that are read at once; a longer text is read in several windows."""
    scale: Scale | None
    sha256: dict[str, str]

    @property
    def identity(self) -> str:
        """`local/<model>@<dimensions>`; from a model's second version on, `local/<model>:<version>@<dimensions>`."""
        version = "" if self.version == FIRST_VERSION else f":{self.version}"
        return f"local/{self.name}{version}@{self.dimensions}"

    @classmethod
    def read(cls, path: Path) -> ModelFolder:
        """Reads the description only: a few hundred bytes."""
        try:
            stored = json.loads((path / DESCRIPTION).read_bytes())
            if stored["pooling"] != "mean":
                raise ModelNotReady(f"the model in {path} pools by {stored['pooling']!r}; Homing can read 'mean'")
            return cls(
                path=path,
                name=str(stored["name"]),
                version=str(stored["version"]),
                dimensions=int(stored["dimensions"]),
                max_tokens=int(stored["max_tokens"]),
                window=int(stored.get("window", stored["max_tokens"])),
                scale=_scale(stored["scale"]),
                sha256={str(name): str(digest) for name, digest in stored["sha256"].items()},
            )
        except FileNotFoundError as error:
            raise ModelNotReady(f"no model in {path}: {DESCRIPTION} is missing; {_remedy(path)}") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelNotReady(f"cannot read {path / DESCRIPTION}: {error!r}; {_remedy(path)}") from error

    def stamp(self) -> tuple[object, ...]:
        """What changes when one of the heavy files does, without reading them."""
        files = [self.path / name for name in self.sha256]
        stats = [file.stat() if file.exists() else None for file in files]
        return (*files, *((one.st_mtime_ns, one.st_size) if one else None for one in stats))

    def file(self, name: str) -> Path:
        """A heavy file. Raises ModelNotReady when it is missing or not the one the description was written for."""
        path = self.path / name
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelNotReady(f"cannot read {path}: {error}; {_remedy(self.path)}") from error
        if found != self.sha256.get(name):
            raise ModelNotReady(f"{path} is damaged (its checksum differs); {_remedy(self.path)}")
        return path

    def graph(self) -> Path:
        """The ONNX file; it and the weights beside it are checked likewise."""
        if WEIGHTS in self.sha256:
            self.file(WEIGHTS)
        return self.file(GRAPH)


def write_model_folder(
    path: Path,
    *,
    graph: bytes,
    weights: bytes = b"",
    tokenizer: bytes,
    name: str,
    version: str,
    dimensions: int,
    max_tokens: int,
    scale: Scale | None,
    window: int | None = None,
    check: Mapping[str, Any] | None = None,
) -> None:
    """Writes the files into an existing folder. Without a `window`, all of `max_tokens` are read at once.

    `weights` are those that `split_weights` took out of the graph.
    `check` is kept for whoever looks after the model: a `text`, and the `vector` that it had where it was exported.
    """
    files = {GRAPH: graph, TOKENIZER: tokenizer} | ({WEIGHTS: weights} if weights else {})
    for file, content in files.items():
        (path / file).write_bytes(content)
    stored: dict[str, Any] = {
        "name": name,
        "version": version,
        "dimensions": dimensions,
        "max_tokens": max_tokens,
        "window": window or max_tokens,
        "pooling": "mean",
        "scale": None if scale is None else asdict(scale),
        "check": check,
        "sha256": {file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
    }
    (path / DESCRIPTION).write_text(json.dumps(stored, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _scale(stored: dict[str, Any] | None) -> Scale | None:
    if stored is None:
        return None
    fit = stored.get("fit") or {}
    # One that was made for another formula says nothing about this one.
    known = fit.keys() == {one.name for one in fields(Fit)}
    return Scale(stored["border"], stored["steepness"], Fit(**fit) if known else None)


def _remedy(path: Path) -> str:
    if path == BUNDLED:
        return "reinstall homing: pip install --force-reinstall homing"
    return "fetch it again with `homing models pull`, or remove the path to use the bundled model"
