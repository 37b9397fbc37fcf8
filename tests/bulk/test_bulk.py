"""Bulk loading: every row once, whatever dies meanwhile, and again only what is new."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from homing.bulk import ProcessWorkers, Source, load
from homing.bulk.rows import Row
from homing.database.sqlite import SqliteDatabase
from homing.engine import Engine
from homing.errors import EmbeddingError, InvalidArgument, NotFound
from homing.records import VectorRecord
from homing.stores import open_store
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.bulk.embedding import Counting, embedded

pytestmark = pytest.mark.slow
MODEL = FakeEmbedder().id
Rows = Callable[[int], Path]


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    def written(count: int) -> Path:
        file = tmp_path / "rows.jsonl"
        lines = ({"id": f"r{n:03d}", "text": f"第{n}条 灯塔 lamp {n}", "n": n} for n in range(count))
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return file

    return written


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = Engine(SqliteStore(tmp_path / "store.db"), FakeEmbedder(), background=False)
    yield made
    made.close()
    made.store.close()


def loaded(engine: Engine, file: Path, log: Path, **options: Any) -> Any:
    pool = ProcessWorkers(partial(Counting, log), 2)
    try:
        return load(engine, Source(str(file)), "rows", pool, model=MODEL, batch=10, **options)
    finally:
        pool.close()


def test_rows_are_loaded_once_and_again_only_what_is_new(engine: Engine, rows: Rows, log: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = loaded(engine, rows(95), log, progress=lambda done, total: seen.append((done, total)))
    assert (first.rows, first.embedded, first.unchanged, first.unreadable) == (95, 95, 0, 0)
    assert seen[-1] == (95, 95)
    assert [one.id for one in engine.store.search_words("rows", "第7条", 1).found] == ["r007"]
    assert engine.store.pending("rows") == 0
    assert engine.store.check() == []
    assert sorted(embedded(log)) == sorted(set(embedded(log)))
    engine.store.write([VectorRecord("r005", "rows", None, {}, "changed by somebody")])
    again = loaded(engine, rows(100), log)
    assert (again.rows, again.embedded, again.unchanged) == (100, 6, 94)
    assert engine.store.get("rows", ["r005"])[0].metadata == {"n": 5}


def test_a_worker_that_is_killed_costs_the_batches_under_way(engine: Engine, rows: Rows, log: Path) -> None:
    pool = ProcessWorkers(partial(Counting, log), 2)
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done >= 50 and not killed:
            killed.append(pool.pids[0])
            os.kill(killed[0], signal.SIGKILL)

    try:
        source = Source(str(rows(200)))
        done = load(engine, source, "rows", pool, model=MODEL, batch=10, progress=kill_one)
    finally:
        pool.close()
    assert killed
    assert (done.rows, done.embedded) == (200, 200)
    assert engine.store.collections()[0].embedded == 200
    texts = embedded(log)
    assert len(set(texts)) == 200
    assert len(texts) - 200 <= 10 * pool.window
    assert engine.store.check() == []


class Stopped(Exception):
    pass


def test_a_load_that_is_stopped_goes_on_where_it_was(engine: Engine, rows: Rows, log: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done >= 60:
            raise Stopped

    with pytest.raises(Stopped):
        loaded(engine, rows(150), log, progress=stop)
    before = engine.store.collections()[0].records
    assert 60 <= before < 150
    done = loaded(engine, rows(150), log)
    assert (done.unchanged, done.embedded) == (before, 150 - before)
    assert len(embedded(log)) - 150 <= 10 * 2 * 2


def test_texts_whose_model_fails_are_kept_and_wait(engine: Engine, rows: Rows, log: Path) -> None:
    pool = ProcessWorkers(partial(Counting, log, fails_on="lamp 37"), 1)
    done = load(engine, Source(str(rows(60))), "rows", pool, model=MODEL, batch=10)
    pool.close()
    assert (done.embedded, done.waiting) == (50, 10)
    assert [one.id for one in engine.store.search_words("rows", "第37条", 1).found] == ["r037"]
    assert engine.flush()
    assert engine.store.pending("rows") == 0


def test_a_model_that_never_answers_is_an_error(engine: Engine, rows: Rows, log: Path) -> None:
    pool = ProcessWorkers(partial(Counting, log, fails_on="lamp"), 1)
    with pytest.raises(EmbeddingError, match="the model is down"):
        load(engine, Source(str(rows(5))), "rows", pool, model=MODEL)
    pool.close()
    assert engine.store.collections() == []


@pytest.mark.parametrize(("collection", "said"), [("paragraphs", "belongs to"), ("taken", "served by 'other@3'")])
def test_what_is_not_for_rows_is_refused(engine: Engine, tmp_path: Path, collection: str, said: str) -> None:
    engine.store.write([VectorRecord("a", "taken", [1.0, 0.0, 0.0], {}, "text", "other@3")])  # type: ignore[arg-type]
    pool = ProcessWorkers(FakeEmbedder, 1)
    with pytest.raises(InvalidArgument, match=said):
        load(engine, Source(str(tmp_path)), collection, pool, model=MODEL)
    pool.close()


def test_lance_takes_rows_as_well(rows: Rows, log: Path, tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "rows.db")
    engine = Engine(open_store(f"lance://{tmp_path}/lance"), FakeEmbedder(), database=database, background=False)
    assert loaded(engine, rows(40), log).embedded == 40
    assert loaded(engine, rows(45), log).embedded == 5
    assert engine.store.check() == []
    engine.close()
    engine.store.close()
    database.close()


def read(source: Source) -> list[Row]:
    return list(source.rows())


def test_files_of_a_folder_are_read_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    table = pyarrow.table({"id": [1, 2], "text": ["一", "two"], "tags": [["x"], None]})
    pyarrow.parquet.write_table(table, folder / "b.parquet")
    lines = '{"text": "no id"}\n\n{"id": "x", "text": " "}\n[1]\n{"text": 5}\n{"id": "", "text": "灯", "d": {"k": 1}}'
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "deep" / "c.md").write_text("First sentence. " * 100, encoding="utf-8")
    (folder / "ignored.bin").write_bytes(b"\0")
    source = Source(str(folder))
    found = read(source)
    assert [one.text for one in found[:4]] == ["no id", "灯", "一", "two"]
    assert [one.id for one in found[2:4]] == ["1", "2"]
    assert len(found[0].id) == 32
    assert [one.metadata for one in found[1:4]] == [{"d": {"k": 1}}, {"tags": ["x"]}, {"tags": None}]
    assert [one.id for one in found[4:]] == ["deep/c.md#1", "deep/c.md#2"]
    assert source.unreadable == 3
    assert source.named[0] == "a.jsonl.gz, line 3: no 'text'"
    assert read(source) == found
    assert Source(str(folder / "b.parquet")).count() == 2
    assert [one.id for one in read(Source(str(folder / "b.parquet"), text="text", id="none"))] != ["1", "2"]
    with pytest.raises(NotFound, match="nothing to load"):
        read(Source(str(tmp_path / "none")))
    with pytest.raises(InvalidArgument, match=r"name a file that ends in \.jsonl"):
        read(Source(str(folder / "ignored.bin")))


def test_rows_are_read_from_object_storage(tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "me", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys)
    client.create_bucket(Bucket="homing-bulk")
    lines = '{"id": "a", "text": "一"}\n{"id": "b", "text": "two"}\n'
    client.put_object(Bucket="homing-bulk", Key="in/one.jsonl", Body=lines.encode())
    client.put_object(Bucket="homing-bulk", Key="in/two.jsonl.gz", Body=gzip.compress(b'{"text": "three"}'))
    pyarrow.parquet.write_table(pyarrow.table({"id": ["p"], "text": ["四"]}), tmp_path / "p.parquet")
    client.put_object(Bucket="homing-bulk", Key="in/deep/p.parquet", Body=(tmp_path / "p.parquet").read_bytes())
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    place = f"s3://me:secret@homing-bulk/in?{options}"
    assert [one.text for one in read(Source(place))] == ["四", "一", "two", "three"]
    assert [one.id for one in read(Source(place.replace("/in?", "/in/one.jsonl?")))] == ["a", "b"]
    with pytest.raises(NotFound, match="nothing to load") as missing:
        read(Source(place.replace("/in?", "/none?")))
    assert "secret" not in str(missing.value)
    server.stop()
