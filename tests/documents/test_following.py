"""A folder of text files: indexed once, then only what changed; killed half-way it carries on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from homing.documents import DocumentService
from homing.documents.folders import FollowedFolder, text_files
from homing.documents.records import COLLECTION
from homing.engine import Engine
from homing.engine.search import HybridOptions
from homing.errors import NotFound, ProviderUnavailable
from homing.stores.registry import open_store
from homing.stores.store import Store
from homing.testing.fake import FakeEmbedder
from tests.forked import start_python


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "灯塔.md").write_text("# 灯塔\n\n他一个人守着灯塔。\n\n海鸟每天都来。\n", encoding="utf-8")
    (folder / "deep" / "git.txt").write_text("Amend a commit.\r\n\r\nRevert a pushed commit.\r\n", encoding="utf-8")
    (folder / "image.png").write_bytes(b"\x89PNG")
    age(folder)
    return folder


def age(folder: Path) -> None:
    """Give every file a time stamp that has settled."""
    long_ago = time.time() - 3600
    for path in folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path / 'index.db'}")
    yield store
    store.close()


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


def followed(folder: Path, store: Store, embedder: FakeEmbedder | None) -> FollowedFolder:
    engine = Engine(store, embedder)
    return FollowedFolder(folder, documents=DocumentService(engine, settle=0.0), engine=engine)


@pytest.fixture
def index(notes: Path, store: Store, embedder: FakeEmbedder) -> FollowedFolder:
    return followed(notes, store, embedder)


def texts(store: Store) -> set[str]:
    return {record.text for record in store.records(COLLECTION)}


def test_files_become_passages_with_their_place(index: FollowedFolder, store: Store, notes: Path) -> None:
    report = index.refresh()
    assert (report.added, report.unchanged, report.passages) == (2, 0, 4)
    for hit in index.search("灯塔 海鸟 commit", HybridOptions(limit=10)):
        original = (notes / hit.metadata["path"]).read_bytes().decode()
        assert original[hit.metadata["start"] : hit.metadata["end"]] == hit.text
    pushed = index.search("pushed commit", HybridOptions(limit=1))[0]
    assert pushed.metadata == {"path": "deep/git.txt", "line": 3, "start": 19, "end": 42}


@pytest.mark.parametrize("query", ["海鸟", "海鳥", "守着 灯塔 lighthouse"])
def test_chinese_is_found_in_both_scripts_and_mixed(index: FollowedFolder, query: str) -> None:
    index.refresh()
    assert index.search(query)[0].metadata["path"] == "灯塔.md"


def test_a_second_refresh_reads_and_embeds_nothing(index: FollowedFolder, embedder: FakeEmbedder) -> None:
    index.refresh()
    before = len(embedder.texts)
    report = index.refresh()
    assert (report.unchanged, report.added, report.changed, report.passages) == (2, 0, 0, 0)
    assert len(embedder.texts) == before


def test_one_changed_paragraph_embeds_one(
    index: FollowedFolder, embedder: FakeEmbedder, notes: Path, store: Store
) -> None:
    index.refresh()
    before = len(embedder.texts)
    (notes / "灯塔.md").write_text("# 灯塔\n\n他一个人守着灯塔。\n\n海鸟不再来了。\n", encoding="utf-8")
    report = index.refresh()
    assert report.changed == 1
    assert embedder.texts[before:] == ["海鸟不再来了。"]
    assert "海鸟每天都来。" not in texts(store)


def test_touching_a_file_changes_nothing(index: FollowedFolder, notes: Path, store: Store) -> None:
    index.refresh()
    os.utime(notes / "灯塔.md", (1, 1))
    report = index.refresh()
    assert (report.changed, report.unchanged, report.passages) == (0, 2, 0)
    assert index.refresh().passages == 0
    assert len(texts(store)) == 4


def test_a_file_saved_twice_within_one_tick_is_read_again(index: FollowedFolder, notes: Path, store: Store) -> None:
    file = notes / "fresh.md"
    file.write_text("one", encoding="utf-8")
    stamp = file.stat().st_mtime_ns
    index.refresh()
    file.write_text("two", encoding="utf-8")
    os.utime(file, ns=(stamp, stamp))
    index.refresh()
    assert "two" in texts(store)
    assert "one" not in texts(store)


def test_shortened_and_deleted_files_leave_the_index(index: FollowedFolder, notes: Path, store: Store) -> None:
    index.refresh()
    (notes / "灯塔.md").write_text("# 灯塔\n\n他一个人守着灯塔。\n", encoding="utf-8")
    (notes / "deep" / "git.txt").unlink()
    report = index.refresh()
    assert (report.changed, report.removed) == (1, 1)
    assert len(texts(store)) == 1
    assert {record.metadata["document"] for record in store.records(COLLECTION)} == {"灯塔.md"}


def test_other_encodings_are_read_and_binary_is_skipped_with_a_reason(index: FollowedFolder, notes: Path) -> None:
    (notes / "gbk.txt").write_bytes("国标编码的文字".encode("gbk"))
    (notes / "wide.txt").write_text("sixteen bits 宽", encoding="utf-16")
    (notes / "noise.txt").write_bytes(b"\0\1\2")
    report = index.refresh()
    assert [(one.path, one.reason) for one in report.skipped] == [("noise.txt", "binary: it contains NUL bytes")]
    assert index.search("国标编码")[0].metadata["path"] == "gbk.txt"
    assert index.search("sixteen bits")[0].metadata["path"] == "wide.txt"


def test_hidden_folders_and_links_out_of_the_folder_are_left_out(notes: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret", encoding="utf-8")
    (notes / "link.md").symlink_to(secret)
    (notes / ".git").mkdir()
    (notes / ".git" / "x.md").write_text("x", encoding="utf-8")
    assert [path.name for path in text_files(notes)] == ["灯塔.md", "git.txt"]


def test_with_the_model_down_files_are_found_by_keywords_and_embedded_when_it_is_back(
    index: FollowedFolder, embedder: FakeEmbedder, store: Store
) -> None:
    embedder.fail_with = ProviderUnavailable("down")
    assert not index.refresh().embedded
    found = index.search("海鸟")
    assert found.degraded
    assert found[0].text == "海鸟每天都来。"
    embedder.fail_with = None
    assert index.refresh().embedded
    assert all(record.embedding is not None for record in store.records(COLLECTION))
    assert not index.search("海鸟").degraded


def test_another_model_makes_the_index_again(index: FollowedFolder, store: Store) -> None:
    index.refresh()
    other = followed(index.folder, store, FakeEmbedder(dimensions=32, model="other"))
    assert other.refresh().unchanged == 2
    assert Engine(store, FakeEmbedder(dimensions=32, model="other")).flush(120)
    assert not other.search("海鸟").degraded
    assert {record.model for record in store.records(COLLECTION)} == {"fake/other@32"}


def test_progress_ends_at_the_number_of_files(index: FollowedFolder) -> None:
    steps: list[tuple[int, int]] = []
    index.refresh(lambda done, total: steps.append((done, total)))
    assert steps[-1] == (2, 2)


def test_a_missing_folder_is_a_clear_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no folder"):
        followed(tmp_path / "nowhere", store, None)


@pytest.mark.slow
def test_killed_in_the_middle_the_next_refresh_completes_it(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.md").write_text(
            f"这是编号{number}的文章，写到这里算是第一段的结尾。\n\n{'第二段' * 12} {number}\n", encoding="utf-8"
        )
    age(folder)
    database = tmp_path / "index.db"
    script = (
        "from pathlib import Path; from tests.documents.test_following import followed;"
        "from homing.stores.registry import open_store; from homing.testing.fake import FakeEmbedder;"
        f"followed(Path({str(folder)!r}), open_store({f'sqlite:///{database}'!r}),"
        " FakeEmbedder(delay=0.01)).refresh(lambda done, total: print(done, flush=True))"
    )
    process = start_python(["-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) > 100:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    process.stdout.close()
    store = open_store(f"sqlite:///{database}")
    report = followed(folder, store, FakeEmbedder()).refresh()
    assert report.unchanged > 0
    assert report.added + report.changed + report.unchanged == 300
    assert len(list(store.records(COLLECTION))) == 600
    assert store.check() == []
    store.close()


def test_options_reach_the_search(index: FollowedFolder) -> None:
    index.refresh()
    options = HybridOptions(limit=1, mode="keyword")
    assert index.search("commit", options).mode == "keyword"
    assert len(index.search("commit", replace(options, limit=2))) == 2
