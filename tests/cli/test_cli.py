"""The shell: what people and programs see, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import homing
from homing.cli.output import EXIT_CODES, exit_code
from homing.errors import EmbeddingError, HomingError, InvalidArgument, RetrievalFailed, StoreError
from tests.cli.shell import Shell

pytestmark = pytest.mark.slow


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "灯塔.md").write_text("他一个人守着灯塔，三十年没有和人说话。\n", encoding="utf-8")
    (folder / "git.md").write_text("Amend a commit that was not pushed yet.\n", encoding="utf-8")
    return folder


@pytest.mark.usefixtures("notes")
def test_search_finds_across_languages_and_indexes_only_once(shell: Shell) -> None:
    first = shell.json("search", "修改还没推送的提交", "notes")
    assert first["hits"][0]["metadata"]["path"] == "git.md"
    assert first["mode"] == "hybrid"
    assert first["index"]["added"] == 2
    again = shell.json("search", "how lonely he is", "notes")
    assert again["hits"][0]["metadata"]["path"] == "灯塔.md"
    assert again["index"]["added"] == 0


@pytest.mark.usefixtures("notes")
def test_search_for_people_shows_score_place_and_text(shell: Shell) -> None:
    shown = shell("search", "灯塔", "notes", "--explain", "-n", "1")
    assert shown.returncode == 0
    assert "灯塔.md:1" in shown.stdout
    assert "三十年没有和人说话" in shown.stdout
    assert "向量：第 1 名" in shown.stdout
    assert "关键词：第 1 名" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["search", "x", "nowhere"], 3, "there is no folder nowhere"),
        (["search", "  ", "notes"], 3, "the query is empty"),
        (["search", "x", "notes", "--limit", "-1"], 3, "limit must not be negative"),
        (["search", "x", "notes", "--mode", "magic"], 3, "known: semantic, hybrid, keyword"),
        (["search"], 2, "Missing argument"),
        (["embed"], 3, "there is no text"),
    ],
)
@pytest.mark.usefixtures("notes")
def test_bad_input_says_what_to_do_and_has_its_exit_code(
    shell: Shell, arguments: list[str], code: int, message: str
) -> None:
    done = shell(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("query", "locale", "chinese"),
    [("海鸟", "C.UTF-8", True), ("gulls", "zh_CN.UTF-8", True), ("gulls", "en_GB.UTF-8", False)],
)
def test_who_writes_chinese_or_has_a_chinese_machine_is_told_so(
    shell: Shell, query: str, locale: str, chinese: bool
) -> None:
    said = shell("search", query, "nowhere", LC_ALL=locale).stderr
    assert ("找不到，可能已被删除或改名" in said) is chinese
    assert "there is no folder nowhere" in said


@pytest.mark.parametrize(
    ("arguments", "chinese", "english"),
    [
        (["search"], "缺少参数 query。", "Missing argument 'query'."),
        (["models", "add", "m"], "缺少选项 --provider。", "Missing option '--provider'."),
        (["memory", "recall", "x", "--limt", "3"], "没有 --limt 这个选项。", "No such option: --limt"),
        (["memory", "recal"], "没有 recal 这个命令。是不是想用 recall？", "No such command 'recal'."),
        (["memory", "recall", "x", "-n", "few"], "--limit 的值不对：应为整数。", "Invalid value for '--limit' / '-n'"),
        (["memory", "recall", "x", "-n"], "选项 -n 后面少了它的值。", "Option '-n' requires an argument."),
        (["models", "list", "extra"], "多余的参数：extra。", "Got unexpected extra argument"),
    ],
)
def test_a_wrong_command_line_is_told_in_the_language_of_the_user(
    shell: Shell, arguments: list[str], chinese: str, english: str
) -> None:
    for locale, said in (("zh_CN.UTF-8", chinese), ("en_GB.UTF-8", english)):
        done = shell(*arguments, LC_ALL=locale)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    assert "错误" not in done.stderr
    answer = json.loads(shell(*arguments, "--json").stdout)
    assert answer["error"]["code"] == "INVALID_ARGUMENT"


def test_an_answer_of_no_deletes_nothing(shell: Shell, tmp_path: Path) -> None:
    with homing.open(tmp_path / "data") as app:
        app.documents.save("novel", "ch1", "灯塔亮了。")
    done = shell("documents", "remove", "novel", stdin="n\n")
    assert done.returncode == 1
    assert done.stderr == "Delete the project novel with its 1 document? [y/N]:\nCancelled.\n"
    assert shell("documents", "show", "novel", "ch1").stdout == "灯塔亮了。\n"


def test_errors_are_json_for_programs(shell: Shell) -> None:
    done = shell("search", "x", "nowhere", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == "NOT_FOUND"


def test_a_searched_folder_is_left_as_it_is_and_becomes_part_of_the_library(shell: Shell, notes: Path) -> None:
    before = sorted(notes.iterdir())
    shell("search", "灯塔", "notes")
    assert sorted(notes.iterdir()) == before
    found = {group["source"]: group for group in shell.json("search", "三十年没有和人说话")["groups"]}
    assert [hit["metadata"]["project_id"] for hit in found["documents"]["hits"]][:1] == [f"folder {notes}"]


def test_everything_is_searched_at_once_in_the_folder_of_the_user(shell: Shell, tmp_path: Path) -> None:
    """What was remembered in one terminal is known in the next."""
    home = {"HOMING_DATA": "", "XDG_DATA_HOME": str(tmp_path / "share")}
    here, there = (Shell(tmp_path / name) for name in ("here", "there"))
    here.folder.mkdir()
    there.folder.mkdir()
    here("memory", "remember", "发票每月第一个工作日寄出", **home)
    shown = there("search", "发票什么时候寄", **home)
    assert "发票每月第一个工作日寄出" in shown.stdout
    assert list(here.folder.iterdir()) == list(there.folder.iterdir()) == []
    place = there.json("where", **home)
    assert (place["data"], place["exists"], place["config"]) == (str(tmp_path / "share" / "homing"), True, None)
    assert here("where", **home).stdout == f"{place['data']}\n"
    empty = shell("search", "发票")
    assert "没有找到相关内容" in empty.stdout


def test_options_that_only_a_folder_has_are_refused_without_one(shell: Shell) -> None:
    done = shell("search", "灯塔", "--mode", "keyword")
    assert (done.returncode, "只用于文件夹" in done.stderr) == (3, True)


def test_half_an_emoji_that_an_editor_saved_is_shown_as_a_replacement(shell: Shell, tmp_path: Path) -> None:
    with homing.open(tmp_path / "data") as app:
        app.documents.save("日记", "周一", "钥匙 \ud83d 在抽屉里")
    shown = shell("documents", "show", "日记", "周一")
    assert (shown.returncode, shown.stdout) == (0, "钥匙 \ufffd 在抽屉里\n")
    assert shell.json("documents", "show", "日记", "周一")["text"] == "钥匙 \ufffd 在抽屉里"
    found = shell("documents", "search", "日记", "钥匙")
    assert (found.returncode, found.stderr) == (0, "")


def test_embed_prints_vectors_as_json_and_nearness_for_people(shell: Shell) -> None:
    told = shell.json("embed", "打开", "打开设备")
    assert told["model"] == "local/all-MiniLM-L6-v2-zh:4@384"
    assert [len(row) for row in told["vectors"]] == [384, 384]
    assert "1.00" in shell("embed", stdin="打开\n打开设备\n").stdout


def test_doctor_proves_both_legs_in_both_languages(shell: Shell) -> None:
    told = shell.json("doctor")
    assert told["healthy"]
    checks = {finding["check"]: finding["status"] for finding in told["findings"]}
    for probe in ("search zh keyword", "search zh semantic", "search en keyword", "search en semantic", "model"):
        assert checks[probe] == "ok"


@pytest.mark.usefixtures("notes")
def test_doctor_tells_how_much_room_the_index_takes(shell: Shell) -> None:
    shell("search", "灯塔", "notes", "--data", "data")
    sizes = next(one for one in shell.json("doctor")["findings"] if one["check"] == "index sizes")
    assert "vectors" in sizes["detail"]
    assert "keywords" in sizes["detail"]


def test_doctor_fails_on_a_damaged_database_and_says_how_to_mend_it(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "homing.db").write_bytes(b"not a database at all" * 100)
    done = shell("doctor")
    assert done.returncode == 1
    assert "STORE_CORRUPT" in done.stdout
    assert "→" in done.stdout


def test_doctor_reports_a_broken_configuration(shell: Shell) -> None:
    done = shell("doctor", HOMING_SEARCH__RRF_K="many")
    assert done.returncode == 3
    assert "search.rrf_k" in done.stderr


def test_config_show_masks_keys(shell: Shell, tmp_path: Path) -> None:
    text = '[providers.x]\ntype = "openai"\napi_key = "sk-very-secret"\n'
    (tmp_path / "homing.toml").write_text(text, encoding="utf-8")
    done = shell("config", "show")
    assert done.returncode == 0
    assert "sk-very-secret" not in done.stdout + done.stderr
    rows = {row["key"]: row for row in shell.json("config", "show")}
    assert rows["providers.x.type"]["source"] == "homing.toml"
    assert rows["search.rrf_k"]["source"] == "default"


def test_models_lists_the_bundled_one_first(shell: Shell, tmp_path: Path) -> None:
    models = shell.json("models", "list", HOMING_MODELS=str(tmp_path / "models"))
    assert [model["name"] for model in models["models"]] == ["all-MiniLM-L6-v2-zh"]


def test_an_unknown_model_to_pull_lists_the_known_ones(shell: Shell) -> None:
    done = shell("models", "pull", "no-such-model")
    assert done.returncode == 3
    assert "all-MiniLM-L6-v2" in done.stderr


def test_version(shell: Shell) -> None:
    assert shell("--version").stdout.strip() == "0.1.0"


def test_every_exit_code_is_documented() -> None:
    errors: list[HomingError] = [
        InvalidArgument("x"),
        EmbeddingError("x"),
        StoreError("x"),
        RetrievalFailed("x", causes={}),
    ]
    assert {exit_code(error) for error in errors} <= set(EXIT_CODES)
