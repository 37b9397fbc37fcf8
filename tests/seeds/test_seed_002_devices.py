"""Seed 002, context-retrieval: one test per scenario, named after it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from homing.chat import DashScopeLLM, Message
from homing.devices import (
    CommandIndex,
    CommandSpec,
    Device,
    QueryIR,
    filter_by_capability,
    filter_by_scope,
    load_commands,
    parse,
    recall,
)
from homing.devices.similarity import default_similarity
from homing.embedders.dashscope import DashScopeProvider
from homing.embedders.local import LocalProvider
from homing.errors import HomingError
from tests.chat.loopback import ChatServer, dashscope_embeddings

ON = CommandSpec(id="switch-on", description="打开设备")
OFF = CommandSpec(id="switch-off", description="关闭设备")
READ = CommandSpec(id="read-temperature", description="读取温度")
BEDROOM_LIGHT = Device(id="l1", name="卧室灯", room="卧室", type="light", commands=(ON, OFF))
LIVING_LIGHT = Device(id="l2", name="客厅灯", room="客厅", type="light", commands=(ON, OFF))
KITCHEN_LIGHT = Device(id="l3", name="厨房灯", room="厨房", type="light", commands=(ON, OFF))
BUDDY = Device(id="b1", name="老伙计", room="客厅", type="fan", commands=(ON, OFF))


class CannedLLM:
    """Answers each sentence with the fields a good model returns."""

    id = "canned/qwen"
    answers: Mapping[str, Mapping[str, Any]] = {
        "打开老伙计": {"action": "打开", "name_hint": "老伙计"},
        "关闭所有卧室的灯": {"action": "关闭", "quantifier": "all", "scope_include": ["卧室"], "type_hint": "light"},
        "打开除卧室以外的灯": {"action": "打开", "quantifier": "except", "scope_exclude": ["卧室"]},
        "打开那个": {"action": "打开", "references": ["last-mentioned"]},
    }  # fmt: skip

    def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, deadline: float | None = None
    ) -> str:
        sentence = json.loads(messages[1].text)["sentence"]
        return json.dumps({**self.answers[sentence], "confidence": 0.95}, ensure_ascii=False)


@pytest.fixture(params=["rules", "llm"])
def chat(request: pytest.FixtureRequest) -> CannedLLM | None:
    return CannedLLM() if request.param == "llm" else None


def read(text: str, chat: CannedLLM | None, **lists: Sequence[str]) -> QueryIR:
    ir = parse(text, chat=chat, **lists)  # type: ignore[arg-type]
    assert ir.parser == ("rules" if chat is None else "llm")
    assert 0 < ir.confidence <= 1
    QueryIR.model_validate_json(ir.model_dump_json())
    return ir


def test_解析动作与名称(chat: CannedLLM | None) -> None:  # noqa: N802
    ir = read("打开老伙计", chat, names=["老伙计"])
    assert ir.action == "打开"
    assert ir.name_hint == "老伙计"


def test_解析量词与范围(chat: CannedLLM | None) -> None:  # noqa: N802
    ir = read("关闭所有卧室的灯", chat)
    assert ir.action == "关闭"
    assert ir.quantifier == "all"
    assert "卧室" in ir.scope_include
    assert ir.type_hint == "light"


def test_解析排除语义(chat: CannedLLM | None) -> None:  # noqa: N802
    ir = read("打开除卧室以外的灯", chat, rooms=["卧室"])
    assert ir.quantifier == "except"
    assert "卧室" in ir.scope_exclude


def test_解析指代(chat: CannedLLM | None) -> None:  # noqa: N802
    assert "last-mentioned" in read("打开那个", chat).references


def test_名称精确命中优先() -> None:  # noqa: N802
    found = recall([BUDDY, BEDROOM_LIGHT], QueryIR(raw="打开老伙计", action="打开", name_hint="老伙计"))
    assert [candidate.device.id for candidate in found] == ["b1"]
    assert "name_hit" in found[0].reasons


def test_房间加类型组合命中() -> None:  # noqa: N802
    ir = QueryIR(raw="打开卧室的灯", action="打开", scope_include=("卧室",), type_hint="light")
    found = recall([BEDROOM_LIGHT, LIVING_LIGHT], ir)
    assert [candidate.device.id for candidate in found] == ["l1"]
    assert "room_hit" in found[0].reasons
    assert "type_hit" in found[0].reasons


def test_动作与命令描述相似度匹配() -> None:  # noqa: N802
    assert default_similarity()("打开", "打开设备") >= 0.5
    kept = filter_by_capability([BEDROOM_LIGHT], QueryIR(action="打开"))
    assert [candidate.command.id for candidate in kept if candidate.command] == ["switch-on"]
    assert "command_hit" in kept[0].reasons


def test_无匹配命令被过滤() -> None:  # noqa: N802
    thermometer = Device(id="t", name="温度计", type="sensor", commands=(READ,))
    similarity = default_similarity()
    assert similarity("打开", "读取温度") < 0.5
    assert filter_by_capability([thermometer], QueryIR(action="打开"), similarity_func=similarity) == []
    # Whatever a similarity function says, reading is not switching on.
    assert filter_by_capability([thermometer], QueryIR(action="打开"), similarity_func=lambda a, b: 0.99) == []


def test_排除指定房间() -> None:  # noqa: N802
    assert filter_by_scope([BEDROOM_LIGHT, LIVING_LIGHT], QueryIR(scope_exclude=("卧室",))) == [LIVING_LIGHT]


def test_仅包含指定房间() -> None:  # noqa: N802
    devices = [BEDROOM_LIGHT, LIVING_LIGHT, KITCHEN_LIGHT]
    assert filter_by_scope(devices, QueryIR(scope_include=("客厅",))) == [LIVING_LIGHT]


SPEC = [
    {"id": "light", "capabilities": [
        {"id": "light-switch-on", "description": "打开灯光", "type": "none"},
        {"id": "light-switch-off", "description": "关闭灯光", "type": "none"},
        {"id": "light-level", "description": "设置灯光亮度", "type": "int",
         "value_range": {"min": 0, "max": 100, "unit": "%"}},
    ]},
    {"id": "aircon", "capabilities": [
        {"id": "aircon-temperature", "description": "设置空调温度", "type": "float",
         "value_range": [16, 30], "unit": ["°C", "°F"]},
        {"id": "aircon-mode", "description": "设置空调模式", "type": "enum", "value_list": [
            {"value": "cool", "description": "制冷"}, {"value": "heat", "description": "制热"}]},
    ]},
    {"id": "curtain", "capabilities": [
        {"id": "curtain-open", "description": "拉开窗帘"}, {"id": "curtain-close", "description": "拉上窗帘"}]},
    {"id": "speaker", "capabilities": [
        {"id": "speaker-play", "description": "播放音乐"},
        {"id": "speaker-volume", "description": "调节音量", "unit": "%"}]},
    {"id": "robot", "capabilities": [{"id": "robot-dock", "description": "扫地机器人返回充电座"}]},
]  # fmt: skip
EXPECTED = {
    "把灯调亮一点": "light-level",
    "空调调到二十六度": "aircon-temperature",
    "拉上窗帘": "curtain-close",
    "放首歌听听": "speaker-play",
    "让扫地机回去充电": "robot-dock",
}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in SPEC), encoding="utf-8")
    return path


def live_dashscope() -> tuple[DashScopeLLM, DashScopeProvider]:
    """The real DashScope; skips without a key or a network."""
    key = os.environ.get("DASHSCOPE_API_KEY", "")
    if not key:
        pytest.skip("DASHSCOPE_API_KEY is not set")
    llm = DashScopeLLM("qwen-flash", api_key=key)
    try:
        llm.complete([Message("user", "你好")], deadline=5)
    except HomingError as error:
        pytest.skip(f"DashScope cannot be reached: {error}")
    return llm, DashScopeProvider("text-embedding-v4", api_key=key)


@pytest.fixture(params=["loopback", "live"])
def dashscope(request: pytest.FixtureRequest) -> Iterator[tuple[DashScopeLLM, DashScopeProvider]]:
    """DashScope's two APIs: on this machine always, the real ones where there is a key."""
    if request.param == "live":
        llm, embedder = live_dashscope()
        with closing(llm), closing(embedder):
            yield llm, embedder
        return
    with ChatServer(key="sk-test") as server, dashscope_embeddings("sk-test") as embeddings:
        server.answers = [lambda body: json.dumps({"commands": [_canned(body)]}, ensure_ascii=False)] * 10
        with (
            closing(DashScopeLLM("qwen-flash", api_key="sk-test", base_url=server.url + "/compatible-mode/v1")) as llm,
            closing(DashScopeProvider(api_key="sk-test", base_url=embeddings.url + "/api/v1")) as embedder,
        ):
            yield llm, embedder


def _canned(body: Mapping[str, Any]) -> dict[str, Any]:
    sentence = json.loads(next(m["content"] for m in body["messages"] if m["role"] == "user"))["sentence"]
    return parse(sentence).model_dump(exclude={"raw", "parser", "compound"})


DashScope = tuple[DashScopeLLM, DashScopeProvider]


def test_llm_解析_query_ir(dashscope: DashScope) -> None:  # noqa: N802
    ir = parse("把客厅的灯全部关掉", rooms=["客厅", "卧室"], types=["light", "climate"], chat=dashscope[0], deadline=20)
    assert ir.parser == "llm"
    assert ir.action
    assert ir.name_hint or ir.scope_include or ir.type_hint or ir.quantifier != "one"


def test_llm_到_embedding_的主路径联通(dashscope: DashScope, spec: Path) -> None:  # noqa: N802
    llm, embedder = dashscope
    ir = parse("拉上卧室的窗帘", rooms=["卧室"], chat=llm, deadline=20)
    assert CommandIndex(load_commands(spec), embedder).search(ir)


def test_命令_embedding_topn_命中(dashscope: DashScope, spec: Path) -> None:  # noqa: N802
    index = CommandIndex(load_commands(spec), dashscope[1])
    for sentence, expected in EXPECTED.items():
        assert expected in [hit.command.id for hit in index.search(sentence, limit=10)], sentence


def test_命令_embedding_topn_命中_with_the_bundled_model(spec: Path) -> None:  # noqa: N802
    index = CommandIndex(load_commands(spec), LocalProvider())
    for sentence, expected in EXPECTED.items():
        assert expected in [hit.command.id for hit in index.search(sentence, limit=3)], sentence


def test_无密钥时跳过(monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: N802
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    with pytest.raises(pytest.skip.Exception, match="DASHSCOPE_API_KEY"):
        live_dashscope()
