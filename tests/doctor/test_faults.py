"""Every fault is planted: the doctor finds it, and what its finding says, done word for word, mends it."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import apsw
import pytest
import sqlite_vec  # type: ignore[import-untyped]

import homing.doctor
from homing.backup import back_up
from homing.database.sqlite import database as sqlite
from homing.embedders.model_folder import BUNDLED, GRAPH, WEIGHTS
from homing.engine import Engine
from homing.engine.batch import Retries
from homing.engine.worker import WorkerOptions
from homing.errors import EmbeddingError, ProviderUnavailable
from homing.errors_zh import has_chinese
from homing.memory import Memory
from homing.stores.registry import open_store
from homing.stores.store import CollectionInfo
from homing.testing.fake import FakeEmbedder
from homing.testing.loopback import LoopbackApi
from tests.another_user import NOBODY, by_root
from tests.doctor.model_faults import CASES as OF_MODELS
from tests.doctor.planting import (
    BY_HAND,
    Asked,
    Home,
    Planting,
    assert_found_and_mended,
    copied,
    planted_in,
)
from tests.forked import HOMING, run_python
from tests.stores.postgres.test_postgres_doctor import CASES as OF_A_SERVER
from tests.stores.postgres.test_postgres_replica import CASES as OF_A_REPLICA

CASES: dict[str, Planting] = {**OF_MODELS}
case = partial(planted_in, CASES)


@case("package missing")
def a_package_is_hidden(home: Home) -> Generator[Asked]:
    found = importlib.metadata.Distribution.from_name

    def hidden(name: str) -> Any:
        if name == "sqlite-vec":
            raise importlib.metadata.PackageNotFoundError(name)
        return found(name)

    home.patch.setattr(importlib.metadata.Distribution, "from_name", hidden)
    yield BY_HAND
    home.patch.setattr(importlib.metadata.Distribution, "from_name", found)


@case("extra missing")
def the_driver_is_hidden(home: Home) -> Generator[Asked]:
    home.tell('store = "postgresql://localhost/x"')
    with home.patch.context() as patch:
        for name in list(sys.modules):
            if name.startswith(("psycopg", "homing.database.postgres", "homing.stores.postgres")):
                patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "psycopg", None)
        yield BY_HAND
    home.tell('store = ""')


@case("library unreadable")
def a_library_cannot_be_loaded(home: Home) -> Generator[Asked]:
    with home.patch.context() as patch:
        patch.setattr(sqlite_vec, "loadable_path", lambda: str(home.folder / "none"))
        yield BY_HAND


@case("address wrong")
def a_replica_has_no_address(home: Home) -> Generator[Asked]:
    home.tell('store = "postgresql://localhost/x?read_url=somewhere"')
    yield BY_HAND
    home.tell('store = ""')


@case("store too new")
def a_newer_version_wrote(home: Home) -> Generator[Asked]:
    home.sql("INSERT INTO migrations(component, number) VALUES ('store', 99)")
    yield BY_HAND
    home.sql("DELETE FROM migrations WHERE number = 99")


@case("bug")
def a_disk_fails(home: Home) -> Generator[Asked]:
    def broken(path: object) -> NoReturn:
        raise OSError(5, "Input/output error")

    with home.patch.context() as patch:
        patch.setattr(shutil, "disk_usage", broken)
        yield BY_HAND


@case("advised")
def an_edition_that_is_not_read_wrote(home: Home) -> Generator[Asked]:
    home.sql("PRAGMA user_version = 1")
    yield BY_HAND
    home.data.rename(home.folder / "away")


@case("disk full")
def hardly_any_room_is_left(home: Home) -> Generator[Asked]:
    usage = shutil.disk_usage(home.data)
    with home.patch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1024))
        yield BY_HAND


@case("files open")
def others_may_read(home: Home) -> Generator[Asked]:
    os.chmod(home.data / "homing.db", 0o644)
    yield Asked()


@case("store busy")
def another_process_writes(home: Home) -> Generator[Asked]:
    home.patch.setattr(sqlite, "BUSY_MS", 1)
    with closing(apsw.Connection(str(home.data / "homing.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield BY_HAND


@case("index damaged")
def postings_are_overwritten(home: Home) -> Generator[Asked]:
    home.sql("UPDATE word_pieces SET postings = zeroblob(length(postings))")
    yield Asked()


@case("text damaged")
def a_table_is_lost(home: Home) -> Generator[Asked]:
    back_up(home.settings, home.folder / "backup")
    home.sql("DROP TABLE memories")
    yield Asked(words={"BACKUP": home.folder / "backup"})


@case("recall collections")
def no_such_collection(home: Home) -> Generator[Asked]:
    home.tell('embedding = { rag = { collections = ["dreams", "learning"] } }')
    yield Asked()
    assert home.settings.embedding.rag.collections == ("learning",)


@case("recall results")
def too_many_results(home: Home) -> Generator[Asked]:
    home.tell("embedding = { rag = { max_results = 900 } }")
    yield Asked()


@case("recall distance")
def a_distance_that_filters_nothing(home: Home) -> Generator[Asked]:
    home.tell("embedding = { rag = { max_distance = 1.5 } }")
    yield Asked()


@case("memory unembedded")
def memories_without_a_vector(home: Home) -> Generator[Asked]:
    home.use_api()
    yield Asked()


def half_embedded(home: Home, more: Any) -> None:
    """What was there gets its vectors; then more comes that gets none."""
    home.use_api()
    with home.open() as app:
        app.documents.reindex()
        app.skills.scan(home.folder / "skills")
        app.engine.flush()
    with home.open() as app:
        app.store.write([])
    home.without_model()
    with home.open() as app:
        more(app)
    home.use_api()


@case("documents unembedded")
def paragraphs_without_a_vector(home: Home) -> Generator[Asked]:
    half_embedded(home, lambda app: app.documents.save("novel", "ch2", "海鸟 seabird"))
    yield Asked()


@case("texts unembedded")
def skills_without_a_vector(home: Home) -> Generator[Asked]:
    half_embedded(home, lambda app: app.skills.scan(home.folder / "more"))
    yield Asked()


@case("documents disagree")
def a_paragraph_is_lost_from_the_index(home: Home) -> Generator[Asked]:
    with home.open() as app:
        [record] = app.store.records("paragraphs")
        app.store.delete("paragraphs", [record.id])
    yield Asked()


def remembered_by(home: Home, error: EmbeddingError) -> None:
    store = open_store(f"sqlite:///{home.data / 'homing.db'}")
    engine = Engine(store, FakeEmbedder(fail_with=error), options=WorkerOptions(retries=Retries(attempts=1)))
    Memory(engine).remember("knowledge", "账单每月一号结算")
    engine.close()
    store.close()
    home.use_api()


@case("queue gave up")
def texts_were_given_up(home: Home) -> Generator[Asked]:
    remembered_by(home, EmbeddingError("cannot"))
    yield Asked()


@case("queue stuck")
def texts_wait_for_a_model_that_fails(home: Home) -> Generator[Asked]:
    remembered_by(home, ProviderUnavailable("down"))
    yield Asked()


@pytest.mark.slow
@pytest.mark.parametrize("fault", CASES)
def test_a_fault_is_found_and_mended_by_what_its_finding_says(fault: str, home: Home, whole: Path) -> None:
    for name, source in (("skills", "git"), ("more", "excel")):
        shutil.copytree(whole / source, home.folder / name)
    assert_found_and_mended(CASES[fault], fault, home)


@pytest.mark.slow
@by_root
def test_files_that_cannot_be_written_are_found_and_mended(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user: to root every file is open."""
    folder = Path(tempfile.mkdtemp(prefix="homing-doctor-"))
    folder.chmod(0o755)

    def planting(home: Home) -> Generator[Asked]:
        for file in (home.data, *home.data.rglob("*")):
            os.chown(file, NOBODY, NOBODY)
            file.chmod(0o500 if file.is_dir() else 0o400)
        os.seteuid(NOBODY)
        yield Asked()
        os.seteuid(NOBODY)

    try:
        with LoopbackApi() as api:
            home = Home(folder, copied(whole, folder), api, monkeypatch)
            home.without_model()
            mend = home.mend

            def as_root(*args: Any) -> None:
                os.seteuid(0)
                mend(*args)

            monkeypatch.setattr(home, "mend", as_root)
            assert_found_and_mended(planting, "files read only", home)
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


FULL = """
mount -t tmpfs -o size=40m none "$1" && cp -r "$HOMING_DATA" "$1/data" && export HOMING_DATA="$1/data"
"$2" -c "$3" doctor --json > "$4"; test $? = 1 && mount -o remount,size=100% "$1"
exec "$2" -c "$3" doctor --json > "$5"
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full_is_found(home: Home) -> None:
    """On a small disk of its own, which only whoever may mount one can have; freed, it is found no more."""
    place, told = home.folder / "disk", [home.folder / "full", home.folder / "freed"]
    place.mkdir()
    words = [str(place), sys.executable, HOMING[1], *map(str, told)]
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL, "sh", *words], capture_output=True, check=False)
    if b"unshare" in done.stderr or b"mount:" in done.stderr:
        pytest.skip("nobody may mount here")
    before, after = (
        {one["check"]: one["status"] for one in json.loads(file.read_bytes())["findings"]} for file in told
    )
    assert (before["disk"], after["disk"]) == ("fail", "ok")


DAMAGED = """
import sys
from pathlib import Path
from homing.config import load
from homing.doctor import diagnose, embedding
from homing.embedders import local, model_folder
embedding.BUNDLED = local.BUNDLED = model_folder.BUNDLED = Path(sys.argv[1])
print([one.fault for one in diagnose(load().settings) if one.fault])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [GRAPH, WEIGHTS])
def test_damage_to_the_model_in_the_package_is_found(home: Home, name: str) -> None:
    """In a process that has not read it yet; what mends it is pip."""
    home.tell("embedding = { }")
    packaged = home.folder / "packaged"
    shutil.copytree(BUNDLED, packaged)
    assert "packaged model damaged" not in run_python(["-c", DAMAGED, str(packaged)]).stdout
    os.truncate(packaged / name, 1000)
    assert "packaged model damaged" in run_python(["-c", DAMAGED, str(packaged)]).stdout


def said(function: str) -> list[ast.Call]:
    """Where the doctor calls a function."""
    files = Path(homing.doctor.__file__).parent.glob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    return [one for one in nodes if isinstance(one, ast.Call) and getattr(one.func, "id", "") == function]


def test_every_fault_is_planted_somewhere() -> None:
    named = {one.value for how in ("failed", "wrong", "lacking") for call in said(how) for one in ast.walk(call.args[0])
             if isinstance(one, ast.Constant)}  # fmt: skip
    by_themselves = {"files read only", "packaged model damaged"}
    assert named == {*CASES, *OF_A_SERVER, *OF_A_REPLICA} | by_themselves
    # Nothing is called wrong in another way.
    others = [ast.unparse(call.args[1]) for call in said("Finding")]
    assert sorted({one for one in others if one not in ("'ok'", "'skip'")}) == ["status"]


def test_what_is_in_use_is_tried_and_left_as_it_was(home: Home) -> None:
    def collections() -> list[CollectionInfo]:
        with home.open() as app:
            return list(app.store.collections())

    before = collections()
    found = {one.check: one for one in home.diagnose()}
    for check in ("disk", "file modes", "searching", "saving", "queue", "skills", "database"):
        assert found[check].status == "ok", found[check]
        assert has_chinese(found[check].detail_zh), found[check]
    assert [one for one in found.values() if one.fault] == []
    assert collections() == before
