"""A configured provider that fails: what is asked of it, what a search says, and that the key stays hidden."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import homing
from homing.app import Homing
from homing.config import EmbeddingSettings, SearchSettings, Settings
from homing.errors import HomingError
from homing.testing.loopback import Fault, LoopbackApi
from tests.models.conftest import KEY

NOTES = {"a": "打开卧室的灯", "b": "read a file from disk", "c": "周末去海边的灯塔"}


@pytest.fixture
def query_deadline() -> float:
    """As long as a query waits by default."""
    return EmbeddingSettings().query_deadline


@pytest.fixture
def app(tmp_path: Path, api: LoopbackApi, query_deadline: float) -> Iterator[Homing]:
    settings = Settings(search=SearchSettings(deadline=120), embedding=EmbeddingSettings(query_deadline=query_deadline))
    with homing.open(tmp_path / "data", settings=settings) as app:
        config = app.models.config
        config.create_provider("openai", "openai", api_key=KEY, base_url=api.url + "/v1")
        config.create_model("openai", "text-embedding-3-small", model_config={"dimensions": 512}, is_default=True)
        app.add(NOTES)
        yield app


PATIENT = pytest.mark.parametrize("query_deadline", [120.0])
"""A query waits for whatever its provider does, however busy the machine is."""


def asked(app: Homing, query: str) -> tuple[str | None, list[str]]:
    found = app.search(query)
    return found.reason, [hit.id for hit in found]


def test_a_provider_that_hangs_is_waited_for_once_and_comes_back_by_itself(app: Homing, api: LoopbackApi) -> None:
    while asked(app, "灯塔")[0] is not None:
        # On a busy machine the first answer may take longer than a query waits.
        continue
    over = threading.Event()
    api.always = Fault(text=lambda answer: answer if over.wait(600) else "")
    before = len(api.requests)
    # From here on it never answers: a search that is answered did not wait for it.
    reason, found = asked(app, "海边的灯塔")
    assert (reason, found[0]) == ("vector:TIMEOUT", "c")
    reasons = [reason]
    while reasons.count("vector:PROVIDER_UNAVAILABLE") < 5:
        reason, found = asked(app, f"灯塔 {len(reasons)}")
        assert found[0] == "c"
        reasons.append(reason)
    assert set(reasons) <= {"vector:TIMEOUT", "vector:PROVIDER_UNAVAILABLE"}
    # Whoever did not wait did not ask either.
    assert len(api.requests) - before <= reasons.count("vector:TIMEOUT")
    api.always = None
    over.set()
    for number in count():
        if asked(app, f"又一次灯塔 {number}")[0] is None:
            break
        time.sleep(0.05)


@PATIENT
@pytest.mark.parametrize(
    ("fault", "reason", "attempts"),
    [
        (Fault(status=401), "vector:INVALID_KEY", 1),
        (Fault(status=404), "vector:MODEL_UNKNOWN", 1),
        (Fault(status=429, headers={"retry-after": "3600"}), "vector:RATE_LIMITED", 1),
        (Fault(status=500), "vector:PROVIDER_UNAVAILABLE", 3),
        (Fault(text=lambda text: text[:40]), "vector:MALFORMED_ANSWER", 3),
        (Fault(rows=lambda rows: [row[:7] for row in rows]), "vector:EMBEDDING_DIMENSION_MISMATCH", 1),
        (Fault(rows=lambda rows: [[float("nan")] * 512 for _ in rows]), "vector:MALFORMED_ANSWER", 3),
        (Fault(hang_up=True), "vector:PROVIDER_UNAVAILABLE", 3),
    ],
)
def test_every_fault_is_a_keyword_answer_with_its_reason_after_few_attempts(
    app: Homing, api: LoopbackApi, fault: Fault, reason: str, attempts: int
) -> None:
    api.always = fault
    before = len(api.requests)
    told, found = asked(app, "海边的灯塔在哪里")
    assert (told, found[0]) == (reason, "c")
    assert len(api.requests) == before + attempts


@PATIENT
def test_a_500_and_then_an_answer_is_an_answer(app: Homing, api: LoopbackApi) -> None:
    api.faults = [Fault(status=500)]
    assert asked(app, "灯塔和海")[0] is None
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
