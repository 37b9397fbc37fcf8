"""The bundled model as its users meet it: the real files, the real runtime."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from homing.embedders.local import PRODUCT, LocalProvider, open_session, products_are_exact
from homing.embedders.model_folder import BUNDLED, DESCRIPTION, GRAPH, TOKENIZER, WEIGHTS, ModelFolder
from homing.errors import InvalidArgument, ModelNotReady
from homing.testing.provider_contract import ProviderContract
from tests.effort import times

PIECES = ("打开", "客厅", "的灯", "git commit", "数据分析", "weather in Beijing", "，", "report.xlsx", "C++", "帮我")


LOADED = LocalProvider()


class TestLocalProvider(ProviderContract):
    @pytest.fixture
    def provider(self) -> LocalProvider:
        return LOADED


def cosine(one: str, other: str) -> float:
    rows = LOADED.embed([one, other])
    return float(rows[0] @ rows[1])


def score(one: str, other: str) -> float:
    assert LOADED.scale is not None
    return LOADED.scale.score(cosine(one, other))


def mixed_texts(count: int) -> list[str]:
    draw = random.Random(7)
    return [" ".join(draw.choices(PIECES, k=draw.choice((1, 2, 3, 5, 8, 13, 40)))) for _ in range(count)]


def test_its_identity_is_the_bundled_model() -> None:
    assert LOADED.id == "local/all-MiniLM-L6-v2-zh:4@384"
    assert LOADED.dimensions == 384


def test_another_version_of_a_model_has_another_identity(tmp_path: Path) -> None:
    folder = shutil.copytree(BUNDLED, tmp_path / "model")
    told = json.loads((folder / DESCRIPTION).read_text())
    (folder / DESCRIPTION).write_text(json.dumps(told | {"version": "2"}))
    assert LocalProvider(folder).id == "local/all-MiniLM-L6-v2-zh:2@384"


@pytest.mark.slow
def test_a_row_does_not_depend_on_batch_order_or_threads() -> None:
    texts = mixed_texts(times(100, in_full=400))
    together = LOADED.embed(texts)
    order = random.Random(1).sample(range(len(texts)), len(texts))
    shuffled = LOADED.embed([texts[place] for place in order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-6)
    np.testing.assert_allclose(LocalProvider(threads=1).embed(texts), together, atol=1e-6)
    np.testing.assert_allclose(LocalProvider(threads=5).embed(texts), together, atol=1e-6)
    for place in range(0, len(texts), 7):
        np.testing.assert_allclose(LOADED.embed([texts[place]])[0], together[place], atol=1e-6)


@settings(max_examples=times(15, in_full=200), deadline=None)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=8))
def test_any_text_has_the_same_unit_row_alone_and_in_company(texts: list[str]) -> None:
    rows = LOADED.embed(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-4)
    np.testing.assert_allclose(LOADED.embed(texts[-1:])[0], rows[-1], atol=1e-6)


def test_no_component_of_a_vector_is_zero() -> None:
    assert (LOADED.embed([*mixed_texts(20), "", "?"]) != 0).all()


def test_traditional_and_simplified_spelling_give_the_same_row() -> None:
    rows = LOADED.embed(["幫我打開燈", "帮我打开灯", "關閉臥室的冷氣機", "关闭卧室的冷气机"])
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[2], rows[3])


def test_scores_separate_the_right_skill_from_the_others() -> None:
    commit = score("帮我提交代码", "git-commit: 生成Git提交信息")
    assert commit > 0.75
    for other in ("file-read: 读取文件", "calculate: 数学计算"):
        assert commit - score("帮我提交代码", other) >= 0.2
    assert score("分析Excel文件", "excel-analysis: 读取Excel分析数据") > 0.7


def test_scores_separate_the_right_command_from_another() -> None:
    assert score("打开", "打开设备") >= 0.5
    assert score("打开", "读取温度") < 0.5


def test_the_two_languages_meet() -> None:
    assert cosine("turn on the light", "打开灯") > cosine("turn on the light", "读取温度") + 0.2


@pytest.mark.slow
def test_a_megabyte_is_cut_quickly_and_said_to_be() -> None:
    chinese, english, word = "很长的故事" * 200_000, "a long story " * 80_000, "x" * 1_000_000
    assert LOADED.truncated([chinese, english, word, "短"]) == [True, True, False, False]
    head = LOADED.embed([chinese[:2_000], english[:8_000]])
    np.testing.assert_array_equal(LOADED.embed([chinese, english]), head)


def test_all_windows_of_a_longer_text_count_the_same() -> None:
    parts = ["海鸟在灯塔上过夜。" * 20, "The invoice is due within thirty days. " * 20, "烤箱预热到两百度。" * 20]
    whole = LOADED.embed(["".join(parts)])[0]
    near = LOADED.embed(parts) @ whole
    assert near.min() > 0.4
    other_order = LOADED.embed(["".join(reversed(parts))])[0]
    assert other_order @ whole > 0.95


def test_a_longer_text_has_the_same_row_in_company() -> None:
    texts = [*mixed_texts(6), "海鸟在灯塔上过夜。" * 60, "The invoice is due within thirty days. " * 60]
    together = LOADED.embed(texts)
    for place, text in enumerate(texts):
        np.testing.assert_allclose(LOADED.embed([text])[0], together[place], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)


def test_a_window_that_ends_inside_a_word_does_not_change_the_row() -> None:
    blank_middle = "begin" + " " * 4_090 + "internationalisation " + "x" * 4_000
    plain = "begin internationalisation " + "x" * 4_000
    np.testing.assert_array_equal(LOADED.embed([blank_middle]), LOADED.embed([plain]))


def test_it_logs_its_name_once_however_many_threads_ask(caplog: pytest.LogCaptureFixture) -> None:
    fresh = LocalProvider()
    with caplog.at_level(logging.INFO, logger="homing"), ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: fresh.load(), range(8)))
    # On some processors it also says that it takes other kernels.
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Loaded")]
    assert told == ["Loaded local embedding model: all-MiniLM-L6-v2-zh"]


def test_providers_of_one_folder_share_what_is_in_memory(tmp_path: Path) -> None:
    folder = shutil.copytree(BUNDLED, tmp_path / "model")
    one, other = LocalProvider(folder), LocalProvider(folder)
    np.testing.assert_array_equal(one.embed(["灯塔"]), other.embed(["灯塔"]))
    assert one._model() is other._model()
    (folder / GRAPH).write_bytes(b"another graph")
    with pytest.raises(ModelNotReady, match="damaged"):
        LocalProvider(folder).load()


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys; from homing.embedders.local import LocalProvider; LocalProvider().id; "
        "print('onnxruntime' in sys.modules or 'tokenizers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_folder_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ModelNotReady, match="models pull"):
        LocalProvider(tmp_path).embed(["text"])


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER, WEIGHTS])
def test_a_damaged_file_is_noticed(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(BUNDLED, tmp_path / "model")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ModelNotReady, match="damaged"):
        LocalProvider(folder).load()
    (folder / name).unlink()
    with pytest.raises(ModelNotReady, match="cannot read"):
        LocalProvider(folder).load()


@pytest.mark.parametrize("told", ["", "[]", "{}", '{"name": "x", "pooling": "cls"}'])
def test_a_description_that_says_nothing_is_refused(tmp_path: Path, told: str) -> None:
    (tmp_path / DESCRIPTION).write_text(told)
    with pytest.raises(ModelNotReady):
        LocalProvider(tmp_path).load()


def test_a_file_that_is_no_graph_is_refused_even_with_the_right_checksum(tmp_path: Path) -> None:
    folder = shutil.copytree(BUNDLED, tmp_path / "model")
    (folder / GRAPH).write_bytes(b"no graph")
    told = json.loads((folder / DESCRIPTION).read_text())
    told["sha256"][GRAPH] = hashlib.sha256(b"no graph").hexdigest()
    (folder / DESCRIPTION).write_text(json.dumps(told))
    with pytest.raises(ModelNotReady, match="cannot load"):
        LocalProvider(folder).load()


def test_the_products_that_are_used_are_exact_on_every_processor() -> None:
    """Each kernel is asked, whatever this processor has; the one that is used does not overflow."""
    large = {"a": np.full((4, 8), 255, np.uint8)}
    exact = open_session(PRODUCT, exact=True).run(None, large)[0]
    assert exact.tolist() == [[8 * 255 * 127] * 16] * 4
    used = open_session(PRODUCT, exact=not products_are_exact()).run(None, large)[0]
    assert used.tolist() == exact.tolist()


def test_the_exact_kernels_give_the_same_rows() -> None:
    session = open_session(ModelFolder.read(BUNDLED).graph(), exact=True)
    tokenizer = Tokenizer.from_file(str(BUNDLED / TOKENIZER))
    for text in mixed_texts(10):
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        np.testing.assert_array_equal(session.run(None, {"ids": ids})[0][0], LOADED.embed([text])[0])


def test_no_node_of_the_bundled_model_adds_up_in_an_order_that_depends_on_the_processor() -> None:
    """onnxruntime's softmax does: with AVX-512 its sums differ in the last bit, and rounding makes much of a bit."""
    graph = (BUNDLED / GRAPH).read_bytes()
    assert b"Exp" in graph
    assert not [one for one in (b"Softmax", b"Attention") if one in graph]


def test_the_bundled_model_agrees_with_its_export_here() -> None:
    check = json.loads((BUNDLED / DESCRIPTION).read_bytes())["check"]
    assert float(LOADED.embed([check["text"]])[0] @ np.array(check["vector"], dtype=np.float32)) > 0.9999


def test_no_threads_are_no_choice() -> None:
    with pytest.raises(InvalidArgument):
        LocalProvider(threads=0)


def test_what_ships_is_small() -> None:
    assert sum(file.stat().st_size for file in BUNDLED.iterdir()) <= 28_000_000
