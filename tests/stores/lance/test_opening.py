"""Opening: addresses, folders that are not ours, folders that are damaged, and a library that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homing.errors import InvalidArgument, StoreCorrupt, StoreTooNew, StoreTooOld
from homing.stores import open_store
from homing.stores.lance import Address, LanceStore, preload
from homing.stores.lance.engine import arrow
from homing.testing.store_contract import record, vector


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_relative_and_an_absolute_address_open_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = open_store("lance://data/数据 %231")
    one.upsert([record("a", 1, text="灯")])
    one.close()
    other = open_store(f"lance://{tmp_path}/data/数据 %231")
    assert [found.id for found in other.search("things", vector(1))] == ["a"]
    other.close()
    assert (tmp_path / "data" / "数据 #1").is_dir()


@pytest.mark.parametrize("url", ["lance://", "lance:///", "s3://", "s3://?region=x"])
def test_an_address_that_names_nothing_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="names no"):
        open_store(url)


def test_options_of_an_address_never_show() -> None:
    address = Address.of_url("s3://bucket/prefix?aws_secret_access_key=top%2Fsecret&region=eu")
    assert address.options["aws_secret_access_key"] == "top/secret"
    assert "secret" not in f"{address} {address!r}"
    assert "top/secret" not in address.redacted("signature of top/secret in eu")


def test_a_folder_with_other_things_in_it_is_left_as_it_is(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("十年的心血", encoding="utf-8")
    before = everything_in(folder)
    with pytest.raises(StoreCorrupt, match=r"not a Homing store.*thesis\.txt"):
        LanceStore(folder)
    after = everything_in(folder)
    assert {path: data for path, data in after.items() if not path.endswith(".lock")} == before


def test_tables_of_somebody_else_are_left_as_they_are(folder: Path) -> None:
    import lancedb

    lancedb.connect(folder).create_table("homing", [{"id": 1}])
    before = everything_in(folder)
    with pytest.raises(StoreCorrupt, match="not a Homing store"):
        LanceStore(folder)
    assert everything_in(folder) == before


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(StoreCorrupt, match="is a file"):
        LanceStore(path)
    assert path.read_text() == "x"


def test_a_folder_whose_making_was_cut_short_is_made_anew(folder: Path) -> None:
    (folder / "homing.lance" / "_transactions").mkdir(parents=True)
    store = LanceStore(folder)
    store.upsert([record("a", 1)])
    assert store.check() == []
    store.close()


def test_a_store_of_a_newer_format_is_refused(folder: Path) -> None:
    import lancedb

    pa = arrow()
    schema = pa.schema([pa.field("collection", pa.string())], metadata={b"homing.format": b"99"})
    lancedb.connect(folder).create_table("homing", schema=schema)
    with pytest.raises(StoreTooNew, match="format 99"):
        LanceStore(folder)


def test_a_store_of_the_first_edition_is_refused_and_left_as_it_is(folder: Path) -> None:
    import lancedb

    pa = arrow()
    schema = pa.schema([pa.field("collection", pa.string())], metadata={b"homing.format": b"1"})
    lancedb.connect(folder).create_table("homing", schema=schema)
    before = everything_in(folder)
    with pytest.raises(StoreTooOld, match="first edition"):
        LanceStore(folder)
    assert everything_in(folder) == before


def test_a_lost_table_is_damage_and_not_an_empty_collection(store: LanceStore, folder: Path) -> None:
    store.upsert([record("a", 1), record("b", 1, collection="others")])
    store.close()
    [lost] = folder.glob("c-others-*")
    for path in sorted(lost.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    lost.rmdir()
    before = everything_in(folder)
    with pytest.raises(StoreCorrupt, match=r"lost the table.*'others'"):
        LanceStore(folder)
    assert everything_in(folder) == before


@pytest.mark.parametrize("part", ["data/*.lance", "_versions/*.manifest"])
def test_a_file_that_was_cut_off_is_damage(store: LanceStore, folder: Path, part: str) -> None:
    store.upsert([record("a", 1, text="灯")])
    store.close()
    for path in folder.glob(f"c-things-*/{part}"):
        os.truncate(path, 40)
    again = LanceStore(folder)
    with pytest.raises(StoreCorrupt, match="damaged"):
        again.search("things", vector(1))
    assert "cannot be read" in again.check()[0]
    again.close()


def test_a_fork_must_open_its_own(folder: Path) -> None:
    code = (
        "import os, sys; from homing.errors import StoreError; from homing.stores.lance import LanceStore\n"
        "store = LanceStore(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try: store.collections()\n"
        "    except StoreError as error: os.write(1, str(error).encode())\n"
        "    os._exit(0)\n"
        "os.wait()"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=60)
    assert "opened before this process was forked" in done.stdout


def test_the_library_is_imported_when_a_store_is_opened_and_not_before() -> None:
    code = "import sys, homing.stores.lance; print('lancedb' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_the_import_can_be_begun_early() -> None:
    preload().join()
    assert "lancedb" in sys.modules


@pytest.mark.parametrize("missing", ["lancedb", "pyarrow"])
def test_a_missing_library_names_the_extra(missing: str, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from homing.stores import open_store\n"
        f"open_store('lance://{tmp_path}/x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra" in done.stderr
    assert "pip install 'homing[lance]'" in done.stderr
