"""The rule parser: what it reads out of a sentence, without a home or with its lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.devices import QueryIR, SpokenValue, parse, parse_all
from homing.devices.lexicon.values import NUMBER, number_of
from homing.devices.lexicon.words import TABLES
from homing.devices.parsing.tokens import Kind


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("打开灯", "打开"), ("开灯", "打开"), ("开启灯", "打开"), ("把灯打开", "打开"), ("把燈開啟", "打开"),
        ("关灯", "关闭"), ("关掉灯", "关闭"), ("把灯给我关了", "关闭"), ("turn on the light", "turn on"),
        ("switch the light on", "turn on"), ("light off", "turn off"), ("调亮灯", "调亮"), ("dim the light", "dim"),
        ("暂停电视", "暂停"), ("播放音乐", "播放"), ("拉上窗帘", "关闭"), ("close the curtains", "close"),
        ("查询温度", "查询温度"), ("客厅多少度", "查询温度"), ("unlock the door", "unlock"),
    ],
)  # fmt: skip
def test_many_wordings_are_one_action(text: str, action: str) -> None:
    assert parse(text).action == action


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("灯调到30%", SpokenValue(number=30, unit="%")),
        ("灯调到百分之三十", SpokenValue(number=30, unit="%")),
        ("灯调到３０％", SpokenValue(number=30, unit="%")),
        ("灯调到一半", SpokenValue(number=50, unit="%")),
        ("灯调到三成", SpokenValue(number=30, unit="%")),
        ("灯调到最亮", SpokenValue(extreme="max")),
        ("空调调到二十四度", SpokenValue(number=24, unit="°")),
        ("空调调到24.5℃", SpokenValue(number=24.5, unit="°C")),
        ("空调调高两度", SpokenValue(number=2, unit="°", relative=True)),
        ("空调升高到二十六点五度", SpokenValue(number=26.5, unit="°")),
        ("set the light to half", SpokenValue(number=50, unit="%")),
        ("set the ac to seventy-two degrees", SpokenValue(number=72, unit="°")),
        ("turn the heating up by 2 degrees", SpokenValue(number=2, unit="°", relative=True)),
        ("turn the volume down to 20", SpokenValue(number=20)),
        ("make the lamp blue", SpokenValue(text="blue")),
        ("灯调成紅色", SpokenValue(text="red")),
    ],
)
def test_values_are_read_with_their_units(text: str, value: SpokenValue) -> None:
    assert parse(text).value == value


@given(st.integers(0, 9999))
def test_every_number_is_read_back_from_its_chinese_numeral(number: int) -> None:
    text = _chinese_numeral(number)
    found = NUMBER.match(text)
    assert found is not None
    assert found[0] == text
    assert number_of(text) == number


def _chinese_numeral(number: int) -> str:
    digits = "零一二三四五六七八九"
    if number < 10:
        return digits[number]
    parts, gap = "", False
    for scale, word in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // scale % 10
        if digit:
            parts += ("零" if gap and parts else "") + digits[digit] + word
            gap = False
        else:
            gap = True
    return parts


def test_two_commands_in_one_sentence_are_two_queries() -> None:
    first, second = parse_all("开灯并关空调")
    assert (first.action, first.type_hint) == ("打开", "light")
    assert (second.action, second.type_hint) == ("关闭", "climate")
    assert first.compound
    assert second.compound
    assert parse("开灯并关空调") == first


@pytest.mark.parametrize(
    "text", ["别开灯", "不要开灯", "先别开灯", "别开燈", "don't turn on the light", "do not turn the light on"]
)
def test_a_prohibition_is_negated(text: str) -> None:
    assert parse(text).negated


@pytest.mark.parametrize(
    "text", ["五分钟后开灯", "明天开灯", "如果下雨就关窗", "turn on the light at 7 pm", "later, lights off"]
)
def test_another_time_or_a_condition_is_deferred(text: str) -> None:
    assert parse(text).deferred


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("打开除卧室以外的灯", ("卧室",)),
        ("除了卧室都打开灯", ("卧室",)),
        ("关掉所有的灯，卧室除外", ("卧室",)),
        ("把灯都关了，别动卧室和书房的", ("卧室", "书房")),
        ("turn off all the lights except the kitchen", ("kitchen",)),
        ("turn off all the lights but not the kitchen and the hall", ("kitchen", "hall")),
    ],
)
def test_exclusions_in_any_place_of_the_sentence(text: str, excluded: tuple[str, ...]) -> None:
    ir = parse(text)
    assert ir.quantifier == "except"
    assert ir.scope_exclude == excluded


@pytest.mark.parametrize("text", ["打开那个", "打开它", "打开刚才那个", "turn that one on", "turn it on", "把它打开"])
def test_references_are_marked(text: str) -> None:
    assert parse(text).references == ("last-mentioned",)


def test_a_room_no_lexicon_knows_is_read_from_the_list_of_the_home() -> None:
    ir = parse("打开月光宝盒的灯", rooms=["月光宝盒"])
    assert ir.scope_include == ("月光宝盒",)
    assert ir.name_hint is None


def test_a_room_is_found_in_the_other_language() -> None:
    assert parse("turn on the bedroom light", rooms=["卧室", "客厅"]).scope_include == ("卧室",)
    assert parse("打开厨房的灯", rooms=["Kitchen"]).scope_include == ("Kitchen",)


def test_a_type_is_written_as_the_home_writes_it() -> None:
    assert parse("打开空调", types=["AirConditioner", "Light"]).type_hint == "AirConditioner"
    assert parse("打开香薰蜡烛", types=["香薰蜡烛"]).type_hint == "香薰蜡烛"


def test_a_name_wins_over_the_type_in_it() -> None:
    ir = parse("打开灯神", names=["灯神"])
    assert ir.name_hint == "灯神"
    assert ir.type_hint is None


def test_an_emoji_in_a_name_need_not_be_said() -> None:
    assert parse("打开小猫灯", names=["小猫灯🐱"]).name_hint == "小猫灯🐱"


def test_unknown_words_lower_the_confidence_and_are_kept() -> None:
    known, unknown, lost = parse("打开灯"), parse("打开大黄"), parse("随便聊聊")
    assert known.confidence > unknown.confidence > lost.confidence
    assert unknown.name_hint == "大黄"
    assert lost.action == ""


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for ir in parse_all(text, rooms=["卧室"], names=["大白"]):
        assert ir.raw == text
        assert QueryIR.model_validate_json(ir.model_dump_json()) == ir


def test_a_text_too_long_to_be_a_command_is_not_read_in_part() -> None:
    assert parse("打开灯，" + "然后我们来聊聊天" * 100 + "，算了别开").action == ""


def test_the_schema_is_published() -> None:
    schema = QueryIR.model_json_schema()
    assert {"raw", "action", "name_hint", "type_hint", "scope_include", "scope_exclude", "quantifier"} <= set(
        schema["properties"]
    )
    assert schema["additionalProperties"] is False


def test_every_section_of_the_lexicon_is_one_that_somebody_reads() -> None:
    of_their_own = {Kind.ACTION, Kind.CARRIER, Kind.PARTICLE, Kind.NAME, Kind.TYPE, Kind.PLACE, Kind.PROPERTY}
    of_their_own |= {Kind.VALUE, Kind.STATE, Kind.UNKNOWN}
    tables = {"verbs", "written verbs", "device kinds", "machine types", "rooms", "properties", "colors", "modes"}
    tables |= {"extremes", "units", "complaints", "states", "only", "media", "more", "little", "time units"}
    assert set(TABLES) == tables | (set(Kind) - of_their_own)
    assert all(TABLES.values())
