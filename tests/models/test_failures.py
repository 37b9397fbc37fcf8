"""A configured provider that fails: what a search costs, what it says, and that the key stays hidden."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import Settings
from homing.errors import HomingError
from homing.testing.loopback import Fault, LoopbackApi
from tests.models.conftest import KEY

NOTES = {"a": "打开卧室的灯", "b": "read a file from disk", "c": "周末去海边的灯塔"}


@pytest.fixture
def app(tmp_path: Path, api: LoopbackApi) -> Iterator[Homing]:
    with homing.open(tmp_path / "data", settings=Settings()) as app:
        config = app.models.config
        config.create_provider("openai", "openai", api_key=KEY, base_url=api.url + "/v1")
        config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512}, is_default=True)
        app.add(NOTES)
        yield app


def milliseconds(app: Homing, query: str) -> tuple[float, str | None, list[str]]:
    started = time.perf_counter()
    found = app.search(query)
    return (time.perf_counter() - started) * 1000, found.reason, [hit.id for hit in found]


def test_a_provider_that_hangs_costs_one_second_once_and_comes_back_by_itself(app: Homing, api: LoopbackApi) -> None:
    assert milliseconds(app, "灯塔")[1] is None
    api.always = Fault(delay=30)
    first = milliseconds(app, "海边的灯塔")
    assert first[0] < 1000
    assert (first[1], first[2][0]) == ("vector:TIMEOUT", "c")
    again = [milliseconds(app, f"灯塔 {number}") for number in range(5)]
    assert sorted(one[0] for one in again)[2] < 100
    assert {one[1] for one in again} == {"vector:PROVIDER_UNAVAILABLE"}
    assert all(one[2][0] == "c" for one in again)
    api.always = None
    end = time.monotonic() + 15
    attempt = 0
    while milliseconds(app, f"又一次灯塔 {attempt}")[1] is not None:
        attempt += 1
        assert time.monotonic() < end, "it did not recover"
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(status=401), "vector:INVALID_KEY"),
        (Fault(status=404), "vector:MODEL_UNKNOWN"),
        (Fault(status=429, headers={"retry-after": "30"}), "vector:RATE_LIMITED"),
        (Fault(status=500), "vector:PROVIDER_UNAVAILABLE"),
        (Fault(text=lambda text: text[:40]), "vector:MALFORMED_ANSWER"),
        (Fault(rows=lambda rows: [row[:7] for row in rows]), "vector:EMBEDDING_DIMENSION_MISMATCH"),
        (Fault(rows=lambda rows: [[float("nan")] * 512 for _ in rows]), "vector:MALFORMED_ANSWER"),
        (Fault(hang_up=True), "vector:PROVIDER_UNAVAILABLE"),
    ],
)
def test_every_fault_is_a_keyword_answer_with_its_reason_within_a_second(
    app: Homing, api: LoopbackApi, fault: Fault, reason: str
) -> None:
    api.always = fault
    took, told, found = milliseconds(app, "海边的灯塔在哪里")
    assert took < 1000
    assert (told, found[0]) == (reason, "c")


def test_a_500_and_then_an_answer_is_an_answer(app: Homing, api: LoopbackApi) -> None:
    api.faults = [Fault(status=500)]
    assert milliseconds(app, "灯塔和海")[1] is None
    assert api.faults == []


def test_the_key_is_in_no_log_error_or_repr(app: Homing, api: LoopbackApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = [repr(app.embedder), repr(app.models.providers()), repr(app.models.configured()), repr(app.models.config)]
    echo = f'{{"error": {{"message": "Incorrect API key provided: {KEY}", "code": "x"}}}}'
    for status in (400, 401, 404, 429, 500):
        api.always = Fault(status=status, body=echo)
        # A change of the account makes a new adapter, with a breaker that knows nothing of the last fault.
        app.models.config.update_provider("openai", base_url=f"{api.url}/v1{'/' * (status % 2)}")
        for call in (lambda: app.models.manager.embed([f"文本 {time.time_ns()}"]), lambda: app.switch.run()):
            try:
                call()
            except HomingError as error:
                seen += [str(error), repr(error), repr(error.details), repr(error.__cause__)]
        found = app.search(f"灯塔 {status}")
        seen.append(repr(found))
    assert caplog.text
    assert KEY not in caplog.text + "".join(seen)
