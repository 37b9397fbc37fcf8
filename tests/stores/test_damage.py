"""Bytes that changed on the disk: they are found, said to be damage, and mended where the text is whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
import sqlite_vec  # type: ignore[import-untyped]

import homing
from homing.app import Homing
from homing.config import Settings
from homing.doctor import diagnose, healthy
from homing.doctor.repairing import repair
from homing.embedders.local import LocalProvider
from homing.embedders.model_folder import BUNDLED
from homing.errors import HomingError, ModelNotReady, StoreCorrupt
from homing.errors_zh import in_chinese
from tests.forked import run

pytestmark = pytest.mark.slow

TEXT = "灯塔守望者 lighthouse keeper\n\n第二段 about whales"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("damage") / "data"
    with homing.open(data, settings=Settings()) as app:
        app.documents.save("novel", "ch1", TEXT)
        app.memory.remember("knowledge", "灯塔 invoices go out on the first day")
        app.add({"a": "灯塔 lamp", "b": "你好 hello"})
        app.add({"b": "再见 goodbye"})
        app.documents.flush()
        app.engine.flush()
    return data


@pytest.fixture
def data(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "data")
    (tmp_path / "data" / "cache.db").unlink(missing_ok=True)
    return tmp_path / "data"


def change(data: Path, statement: str) -> None:
    connection = apsw.Connection(str(data / "homing.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute(statement).fetchall()
    assert connection.changes()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def flipped(column: str, at: int) -> str:
    """The column with one byte that is another."""
    before, byte, after = f"substr({column}, 1, {at})", f"substr({column}, {at + 1}, 1)", f"substr({column}, {at + 2})"
    return f"{column} = CAST({before} || CASE {byte} WHEN x'55' THEN x'33' ELSE x'55' END || {after} AS BLOB)"


def flip_text(data: Path, needle: bytes) -> None:
    content = bytearray((data / "homing.db").read_bytes())
    at = -1
    while (at := content.find(needle, at + 1)) >= 0:
        content[at] ^= 0xFF
    (data / "homing.db").write_bytes(bytes(content))


def asked(app: Homing) -> Iterator[Callable[[], object]]:
    yield lambda: app.documents.search("novel", "灯塔 whales")
    yield lambda: app.documents.text("novel", "ch1")
    yield lambda: app.search("灯塔 lamp")
    yield lambda: app.memory.recall("灯塔")


DERIVED = {
    "keyword header": f"UPDATE word_segments SET {flipped('header', 12)}",
    "keyword header cut": "UPDATE word_segments SET header = CAST(substr(header, 1, 9) AS BLOB)",
    "keyword postings": f"UPDATE word_pieces SET {flipped('postings', 5)}",
    "keyword postings gone": "DELETE FROM word_pieces",
    "codes": f"UPDATE segments SET {flipped('codes', 5)}",
    "codes cut": "UPDATE segments SET codes = CAST(substr(codes, 1, length(codes) - 1) AS BLOB)",
    "scales": f"UPDATE segments SET {flipped('scales', 3)}",
    "keys of codes": f"UPDATE segments SET {flipped('records', 0)}",
    "removals": f"UPDATE removals SET {flipped('records', 0)}",
    "codes gone": "DELETE FROM segments",
    "vectors": f"UPDATE vectors_1_vector_chunks00 SET {flipped('vectors', 7)}",
}


@pytest.mark.parametrize("name", DERIVED)
def test_damage_to_what_is_derived_is_found_and_mended(data: Path, name: str) -> None:
    change(data, DERIVED[name])
    with homing.open(data, settings=Settings()) as app:
        for ask in asked(app):
            with suppress(StoreCorrupt):
                ask()
        assert app.store.check()
        done = repair(app.engine)
        assert done.found
        assert not done.left
        app.engine.flush()
        assert not app.store.check()
        assert app.documents.text("novel", "ch1") == TEXT
        assert not app.documents.search("novel", "灯塔 whales").degraded
        assert {hit.id for hit in app.search("灯塔 lamp 再见 goodbye")} == {"a", "b"}
        assert [hit.text for hit in app.memory.recall("灯塔 invoices")]
    assert healthy(diagnose(Settings(data=data)))


@pytest.mark.parametrize("needle", ["灯塔守望者".encode(), b"lighthouse"])
def test_a_text_that_changed_is_damage_with_what_to_do(data: Path, needle: bytes) -> None:
    flip_text(data, needle)
    with homing.open(data, settings=Settings()) as app:
        told = []
        for ask in asked(app):
            try:
                ask()
            except HomingError as error:
                told.append(error)
        assert {error.code for error in told} == {"STORE_CORRUPT"}
        assert all("homing repair" in error.message for error in told)
        assert "homing repair" in in_chinese("STORE_CORRUPT")
        done = repair(app.engine)
        assert done.left
        assert all("is damaged" in one for one in done.left)
        # Everything else is whole, and what is saved again is whole as well.
        assert next(hit.id for hit in app.search("你好 再见 goodbye")) == "b"
        app.documents.save("novel", "ch1", TEXT)
        app.documents.flush()
        assert app.documents.text("novel", "ch1") == TEXT
        assert not repair(app.engine).left
    assert healthy(diagnose(Settings(data=data)))


def test_an_index_of_a_table_is_made_anew(data: Path) -> None:
    connection = apsw.Connection(str(data / "homing.db"))
    connection.execute("PRAGMA writable_schema = ON; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'segments_by_matrix'").get
    size = connection.pragma("page_size")
    connection.close()
    content = bytearray((data / "homing.db").read_bytes())
    # The rows of the index are at the end of its page.
    content[root * size - 3] ^= 0x01
    (data / "homing.db").write_bytes(bytes(content))
    with homing.open(data, settings=Settings()) as app:
        assert app.store.check()
        assert not repair(app.engine).left


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 40, b"no database" * 100])
def test_a_file_that_is_empty_or_cut_off_is_damage(data: Path, content: bytes) -> None:
    (data / "homing.db").write_bytes(content)
    with pytest.raises(StoreCorrupt), homing.open(data, settings=Settings()) as app:
        app.search("灯塔")
    (data / "homing.db").write_bytes(b"")
    found = diagnose(Settings(data=data))
    assert not healthy(found)
    assert any("STORE_CORRUPT" in one.detail for one in found)


def test_a_truncated_model_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED, tmp_path / "model")
    (model,) = (tmp_path / "model").glob("*.onnx")
    os.truncate(model, model.stat().st_size // 2)
    with pytest.raises(ModelNotReady, match="damaged"):
        LocalProvider(tmp_path / "model").embed(["灯塔"])


def test_the_command_says_what_it_mended(data: Path) -> None:
    change(data, DERIVED["keyword postings"])
    broken = run(["doctor", "--data", str(data), "--json"])
    mends = {one["mend"] for one in json.loads(broken.stdout)["findings"] if one["status"] == "fail"}
    assert mends == {"homing repair"}
    mended = json.loads(run(["repair", "--data", str(data), "--json"]).stdout)
    assert mended["left"] == []
    assert mended["found"]
    assert json.loads(run(["doctor", "--data", str(data), "--json"]).stdout)["healthy"]
