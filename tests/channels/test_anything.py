"""Whatever is sent, a channel answers with its data or says what is wrong; never that it broke."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import homing
from homing.channels import CHANNELS, Channels, schemas
from homing.channels.envelope import as_json
from homing.config import EmbeddingSettings, Settings
from tests.effort import times

DEFINITIONS = schemas()["$defs"]
TEXTS = st.one_of(
    st.sampled_from(
        ["p", "d", "灯塔", "😀 lighthouse", "", " ", '"', "'; --", "a\0b", "\ud83d", "x" * 600, "NEAR(", "*"]
    ),
    st.text(max_size=40),
)
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), TEXTS, st.lists(TEXTS, max_size=3)
)


def valued(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema more or less."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*(valued(one) for one in schema["anyOf"]))
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": TEXTS,
        "integer": st.integers(-1, 50),
        "number": st.floats(-0.1, 1.1),
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(TEXTS, max_size=3),
    }
    return kinds[schema["type"]]


def payloads(name: str) -> st.SearchStrategy[Any]:
    schema = DEFINITIONS[CHANNELS[name].request.__name__]
    fields = {field: valued(one) for field, one in schema.get("properties", {}).items()}
    required = {field: fields[field] for field in schema.get("required", ())}
    others = {field: one for field, one in fields.items() if field not in required and field != "waitMs"}
    fitting = st.fixed_dictionaries(required, optional=others)
    return st.one_of(fitting, fitting, st.dictionaries(st.sampled_from([*fields, "other"]), ANYTHING), ANYTHING)


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Channels]:
    folder = tmp_path_factory.mktemp("anything")
    with homing.open(folder, settings=Settings(embedding=EmbeddingSettings(provider=""))) as app:
        channels = Channels(app)
        channels.invoke("document:save", {"projectId": "p", "documentId": "d", "text": "灯塔 lighthouse 😀\n\na\0b"})
        yield channels


@pytest.mark.parametrize("name", CHANNELS)
@settings(max_examples=times(15, in_full=1_000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_is_sent_gets_an_envelope(name: str, channels: Channels, data: st.DataObject) -> None:
    payload = data.draw(payloads(name))
    envelope = channels.invoke(name, payload)
    read = json.loads(as_json(envelope))
    assert set(read) in ({"ok", "data"}, {"ok", "error"})
    if not read["ok"]:
        assert read["error"]["code"] in DEFINITIONS["ErrorCode"]["enum"]
        assert read["error"]["code"] != "INTERNAL", (payload, read)
