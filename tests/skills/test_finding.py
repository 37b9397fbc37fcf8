from __future__ import annotations

import threading
from pathlib import Path

import pytest

from homing.embedders.local import LocalProvider
from homing.engine.ranking import smallness
from homing.errors import InvalidArgument, ModelNotReady, NotFound
from homing.skills import Skill, ToolRetrievalService
from homing.testing.fake import FakeEmbedder
from tests.effort import times

pytestmark = pytest.mark.slow

MIXED = [
    Skill("git-commit", "生成Git提交信息", ("git", "版本")),
    Skill("file_read", "Read the contents of a file"),
    Skill("spreadsheet", "读取Excel分析数据", ("excel", "表格")),
    Skill("translate", "Translate text between languages"),
    Skill("weather", "查询城市的天气预报 🌤"),
]


@pytest.fixture
def mixed(service: ToolRetrievalService) -> ToolRetrievalService:
    service.index_skills(MIXED)
    return service


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> ToolRetrievalService:
    service = ToolRetrievalService(tmp_path_factory.mktemp("data"), embedder=LocalProvider())
    service.index_skills(MIXED)
    return service


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("commit my changes", "git-commit"),
        ("读一下这个文件", "file_read"),
        ("analyse the numbers in a table", "spreadsheet"),
        ("把这段话翻译成英文", "translate"),
        ("will it rain tomorrow", "weather"),
        ("明天会下雨吗", "weather"),
        ("用 git 提交", "git-commit"),
    ],
)
def test_either_language_finds_either_language(bundled: ToolRetrievalService, query: str, name: str) -> None:
    assert bundled.find_relevant_skills(query)[0].name == name


def test_words_of_every_writing_are_found(mixed: ToolRetrievalService) -> None:
    asked = {"提交": "git-commit", "天氣預報": "weather", "ＥＸＣＥＬ": "spreadsheet", "🌤": "weather"}
    for query, name in asked.items():
        hit = mixed.find_relevant_skills(query)[0]
        assert hit.name == name, query
        assert any(why.leg == "keyword" for why in hit.why)


def test_an_exact_name_always_wins(mixed: ToolRetrievalService) -> None:
    mixed.index_skills([Skill(f"other-{n}", "read a file, file read, read file") for n in range(4)])
    for query in ("file_read", "file-read", "File Read", "/file_read", "fileRead"):
        hit = mixed.find_relevant_skills(query)[0]
        assert (hit.name, hit.score) == ("file_read", 1.0), query
        assert hit.why[0].leg == "name"


def test_the_body_counts(service: ToolRetrievalService) -> None:
    filler = "\n\n".join(f"第{n}节，一般的说明文字。" * 30 for n in range(4))
    service.index_skills(
        [
            Skill("alpha", "一个通用助手", body=f"{filler}\n\n用于解析发票上的税号并核对金额。" + "核对税号。" * 60),
            Skill("beta", "一个通用助手二", body=filler),
        ]
    )
    hit = service.find_relevant_skills("核对发票税号")[0]
    assert hit.name == "alpha"
    assert any(why.part == "body" and "税号" in why.text for why in hit.why)


def test_near_duplicates_do_not_crowd_out_others(service: ToolRetrievalService) -> None:
    service.index_skills(
        [Skill(f"copy-{n}", "deploy the service to production", path=f"/copies/{n}") for n in range(8)]
    )
    service.index_skill(Skill("rollback", "undo a deploy of the service"))
    found = [hit.name for hit in service.find_relevant_skills("deploy the service to production", limit=5)]
    assert "rollback" in found
    assert len(found) == 5


def test_hits_are_sorted_by_the_score_they_report(bundled: ToolRetrievalService) -> None:
    for query in ("读取文件并翻译", "git file weather excel", "xyzzy", "天气 translate"):
        scores = [hit.score for hit in bundled.find_relevant_skills(query, limit=10)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_a_shared_word_raises_a_score_and_never_lowers_it(bundled: ToolRetrievalService) -> None:
    scale = LocalProvider().scale
    assert scale is not None
    assert scale.fit is not None
    few = smallness(len(bundled.list_skills()))
    for hit in bundled.find_relevant_skills("提交信息", limit=10):
        assert hit.cosine is not None
        assert hit.score >= scale.fit.score(1 - hit.cosine, few) - 1e-6


def test_among_hundreds_what_fits_nothing_stays_below_the_border(tmp_path: Path) -> None:
    verbs, things = ("分析", "convert", "整理", "deploy", "翻译"), ("表格", "invoices", "日志", "images", "合同")
    steps = (
        "先打开文件，检查内容是否完整，再按步骤处理，最后保存结果。 Check the result and tell the user what was done. "
    )
    crowd = [
        Skill(
            f"skill-{number}",
            f"{verbs[number % 5]} {things[number // 5 % 5]} {number}",
            body=steps * times(2, in_full=8),
        )
        for number in range(times(120, in_full=200))
    ]
    with ToolRetrievalService(tmp_path, embedder=LocalProvider()) as service:
        service.index_skills([*crowd, Skill("git-commit", "生成Git提交信息", body=steps)])
        for nothing in ("珠穆朗玛峰有多高", "唐朝是哪一年建立的", "how old is the moon", "my knee hurts when it rains"):
            assert not service.find_relevant_skills(nothing, threshold=0.5), nothing
        for right in ("写一条提交信息", "write a git commit message"):
            assert service.find_relevant_skills(right, threshold=0.5)[0].name == "git-commit"


def test_when_nothing_fits_the_answer_is_empty_and_says_so(mixed: ToolRetrievalService) -> None:
    found = mixed.find_relevant_skills("qwertyuiop", threshold=0.9)
    assert len(found) == 0
    assert found.notice is not None
    assert "0.9" in found.notice.en
    assert "阈值" in found.notice.zh
    assert not found.degraded


def test_a_threshold_of_zero_is_a_threshold_and_none_is_none(mixed: ToolRetrievalService) -> None:
    assert len(mixed.find_relevant_skills("提交", limit=10, threshold=0)) == 5
    assert len(mixed.find_relevant_skills("提交", limit=0)) == 0


def test_an_empty_index_says_that_it_is_empty(service: ToolRetrievalService) -> None:
    found = service.find_relevant_skills("提交")
    assert not found.hits
    assert found.notice is not None
    assert "scan" in found.notice.en


def test_what_cannot_be_asked_is_refused(mixed: ToolRetrievalService) -> None:
    for query, limit in (("", 5), ("   ", 5), ("a", -1), ("a", 10_001), (None, 5)):
        with pytest.raises(InvalidArgument):
            mixed.find_relevant_skills(query, limit)  # type: ignore[arg-type]


def test_a_query_is_data(mixed: ToolRetrievalService) -> None:
    for query in ("' OR 1=1 --", '"', "*", "name:*", "\x00", "a" * 50_000, "%s {0}", "\ud83d"):
        mixed.find_relevant_skills(query)


def test_a_model_that_fails_is_replaced_by_keywords_until_it_recovers(
    mixed: ToolRetrievalService, embedder: FakeEmbedder
) -> None:
    embedder.fail_with = ModelNotReady("gone")
    found = mixed.find_relevant_skills("提交信息")
    assert [hit.name for hit in found] == ["git-commit"]
    assert (found.mode, found.degraded, found.reason) == ("keyword", True, "vector:MODEL_NOT_READY")
    assert found.notice is not None
    embedder.fail_with = None
    found = mixed.find_relevant_skills("提交信息")
    assert (found.mode, found.degraded) == ("hybrid", False)


def test_skills_that_got_no_vector_get_one_when_the_model_is_back(
    service: ToolRetrievalService, embedder: FakeEmbedder
) -> None:
    embedder.fail_with = ModelNotReady("gone")
    service.index_skills(MIXED)
    embedder.fail_with = None
    service.find_relevant_skills("提交")
    service.engine.flush()
    assert service.find_relevant_skills("提交").mode == "hybrid"


def test_records_are_kept_by_folder_or_name(service: ToolRetrievalService) -> None:
    service.index_skill(Skill("a", "first"))
    service.index_skill(Skill("a", "second"))
    assert [skill.description for skill in service.list_skills()] == ["second"]
    service.index_skill(Skill("a", "third", path="/x/a"))
    assert [(skill.id, skill.description) for skill in service.list_skills()] == [("/x/a", "third")]
    service.index_skill(Skill("a", "fourth"))
    assert [(skill.id, skill.description) for skill in service.list_skills()] == [("/x/a", "fourth")]
    service.index_skill(Skill("a", "fifth", path="/y/a"))
    assert len(service.list_skills()) == 2
    assert service.remove_skill("a") == 2


def test_only_what_is_indexed_can_be_updated(service: ToolRetrievalService) -> None:
    with pytest.raises(NotFound, match="index_skill"):
        service.update_skill(Skill("nobody", "x"))
    assert service.remove_skill("nobody") == 0


def test_names_may_hold_anything(service: ToolRetrievalService) -> None:
    odd = ["team/git", "o'brien", 'say "hi"', "名字 空格", "a\\b", "emoji 🚀", "half \ud83d"]
    service.index_skills([Skill(name, "描述") for name in odd])
    assert len(service.list_skills()) == len(odd)
    assert service.find_relevant_skills("team/git")[0].name == "team/git"
    assert service.remove_skill("o'brien") == 1


def test_another_process_is_seen_at_once(mixed: ToolRetrievalService, tmp_path: Path, embedder: FakeEmbedder) -> None:
    assert mixed.find_relevant_skills("deploy")[0].name != "deploy"
    with ToolRetrievalService(tmp_path / "data", embedder=embedder) as other:
        other.index_skill(Skill("deploy", "deploy the service"))
    assert mixed.find_relevant_skills("deploy")[0].name == "deploy"


def test_many_threads_may_ask_and_index_at_once(service: ToolRetrievalService) -> None:
    service.index_skill(Skill("first", "第一个技能"))
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            service.index_skill(Skill(f"skill-{number}", f"第{number}个技能"))
            assert service.find_relevant_skills(f"skill-{number}")[0].name == f"skill-{number}"
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(service.list_skills()) == 7
