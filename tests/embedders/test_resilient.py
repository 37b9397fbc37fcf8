"""A resilient provider ends by its deadline, tries again what may pass, and leaves the dead alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from homing.embedders.provider import EmbeddingProvider, Kind
from homing.embedders.resilient import Breaker, Resilient
from homing.errors import (
    EmbeddingError,
    InvalidArgument,
    InvalidKey,
    MalformedAnswer,
    ModelUnknown,
    ProviderUnavailable,
    RateLimited,
    TextTooLong,
    Timeout,
)
from homing.testing.fake import FakeEmbedder
from homing.testing.provider_contract import ProviderContract
from homing.vectors import Matrix, Scale


class TestResilientContract(ProviderContract):
    @pytest.fixture
    def provider(self) -> EmbeddingProvider:
        return Resilient(FakeEmbedder(), deadline=30)


class Failing(FakeEmbedder):
    """Raises the given errors in turn, then answers."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__()
        self.errors = list(errors)
        self.at: list[float] = []

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        self.at.append(time.monotonic())
        self.fail_with = self.errors.pop(0) if self.errors else None
        return super().embed(texts, kind=kind)


class Held(FakeEmbedder):
    """Has been asked at `asked`, and answers once it is `released`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked = threading.Event()
        self.released = threading.Event()

    def embed(self, texts: Sequence[str], *, kind: Kind = "document") -> Matrix:
        self.asked.set()
        assert self.released.wait(600)
        return super().embed(texts, kind=kind)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def never_opens() -> Breaker:
    return Breaker(failures=1_000_000)


def test_it_passes_identity_width_scale_and_truncation_through() -> None:
    fake = FakeEmbedder(scale=Scale(0.3, 12))
    resilient = Resilient(fake)
    assert (resilient.id, resilient.dimensions, resilient.scale) == (fake.id, 64, Scale(0.3, 12))
    assert resilient.truncated(["x" * 20_000, "x"]) == [True, False]


@pytest.mark.parametrize("error", [ProviderUnavailable, RateLimited, Timeout, MalformedAnswer])
def test_what_may_pass_is_tried_again(error: type[EmbeddingError]) -> None:
    fake = Failing(error("once"), error("twice"))
    assert Resilient(fake, attempts=3, deadline=120).embed(["灯"], kind="query").shape == (1, 64)
    assert fake.calls == 3


@pytest.mark.parametrize(
    "error", [InvalidKey, ModelUnknown, TextTooLong, EmbeddingError, InvalidArgument, KeyError, ZeroDivisionError]
)
def test_what_will_not_pass_is_raised_at_once_and_opens_nothing(error: type[Exception]) -> None:
    fake = Failing(error("no"), error("no"))
    resilient = Resilient(fake, attempts=3)
    for _ in range(2):
        with pytest.raises(error):
            resilient.embed(["a"])
    assert fake.calls == 2
    assert resilient.embed(["a"]).shape == (1, 64)


def test_after_the_last_attempt_the_error_is_raised() -> None:
    fake = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    with pytest.raises(ProviderUnavailable, match="down"):
        Resilient(fake, attempts=2).embed(["a"])
    assert fake.calls == 2


def test_waits_grow_and_vary() -> None:
    gaps = []
    for _ in range(3):
        fake = Failing(*[ProviderUnavailable("x")] * 2)
        Resilient(fake, attempts=3, deadline=120).embed(["a"], kind="query")
        first, second, third = fake.at
        assert second - first >= 0.05
        assert third - second >= 0.1
        gaps.append(second - first)
    assert len({round(gap, 6) for gap in gaps}) == 3


def test_retry_after_is_respected() -> None:
    fake = Failing(RateLimited("slow down", retry_after=0.4))
    Resilient(fake, deadline=120).embed(["a"], kind="query")
    assert fake.at[1] - fake.at[0] >= 0.4


def test_a_retry_after_beyond_the_deadline_fails_at_once() -> None:
    fake = FakeEmbedder(fail_with=RateLimited("slow down", retry_after=3600))
    with pytest.raises(RateLimited):
        Resilient(fake, deadline=120).embed(["a"], kind="query")
    assert fake.calls == 1


def test_a_slow_provider_is_given_up_at_the_deadline() -> None:
    held = Held()
    resilient, start = Resilient(held, deadline=0.2), time.monotonic()
    with pytest.raises(Timeout, match=r"no answer within 0\.2 s"):
        resilient.embed(["a"], kind="query")
    assert time.monotonic() - start >= 0.2
    held.released.set()


def test_by_default_a_query_is_given_up_within_a_second_and_the_next_at_once() -> None:
    held = Held()
    resilient = Resilient(held, breaker=Breaker(clock=Clock()))
    with pytest.raises(Timeout, match=r"within 0\.8 s"):
        resilient.embed(["a"], kind="query")
    assert held.asked.wait(600)
    held.asked.clear()
    with pytest.raises(ProviderUnavailable, match="tried again in"):
        resilient.embed(["a"], kind="query")
    assert not held.asked.is_set()
    held.released.set()


def test_documents_may_take_longer_than_queries() -> None:
    held = Held()
    resilient = Resilient(held, deadline=0.1, document_deadline=600, breaker=never_opens())
    with ThreadPoolExecutor(1) as threads:
        rows = threads.submit(resilient.embed, ["a"], kind="document")
        assert held.asked.wait(600)
        with pytest.raises(Timeout):
            resilient.embed(["a"], kind="query")
        held.released.set()
        assert rows.result().shape == (1, 64)


def test_retries_together_stay_within_the_deadline() -> None:
    fake = FakeEmbedder(delay=0.15, fail_with=ProviderUnavailable("down"))
    with pytest.raises((ProviderUnavailable, Timeout)):
        Resilient(fake, attempts=100, deadline=0.5).embed(["a"], kind="query")
    # More do not fit into half a second.
    assert fake.calls <= 4


def test_a_dead_provider_is_left_alone_and_comes_back_by_itself() -> None:
    fake = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    clock = Clock()
    resilient = Resilient(fake, attempts=1, breaker=Breaker(cool_down=5, clock=clock))
    with pytest.raises(ProviderUnavailable, match="down"):
        resilient.embed(["a"])
    for _ in range(20):
        with pytest.raises(ProviderUnavailable, match="left alone"):
            resilient.embed(["a"])
    assert fake.calls == 1
    fake.fail_with = None
    clock.now += 5
    assert resilient.embed(["a"]).shape == (1, 64)
    assert resilient.embed(["a"]).shape == (1, 64)


def test_while_it_is_dead_one_probe_at_a_time_is_tried() -> None:
    fake = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    clock = Clock()
    resilient = Resilient(fake, attempts=1, breaker=Breaker(cool_down=5, clock=clock))
    with pytest.raises(ProviderUnavailable):
        resilient.embed(["a"])
    clock.now += 5
    fake.delay = 0.1

    def ask(_: int) -> str:
        with pytest.raises(ProviderUnavailable) as caught:
            resilient.embed(["a"])
        return str(caught.value)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert fake.calls == 2
    assert answers.count("down") == 1


def test_a_rate_limit_keeps_the_breaker_open_as_long_as_it_said() -> None:
    limited = FakeEmbedder(fail_with=RateLimited("slow down", retry_after=120))
    resilient = Resilient(limited, deadline=60, breaker=Breaker(clock=Clock()))
    with pytest.raises(RateLimited):
        resilient.embed(["a"], kind="query")
    with pytest.raises(ProviderUnavailable) as caught:
        resilient.embed(["a"], kind="query")
    assert caught.value.retry_after == 120


def test_bad_input_and_no_input_say_nothing_about_the_provider() -> None:
    fake = FakeEmbedder(fail_with=ProviderUnavailable("down"))
    clock = Clock()
    resilient = Resilient(fake, attempts=1, breaker=Breaker(cool_down=5, clock=clock))
    with pytest.raises(ProviderUnavailable, match="down"):
        resilient.embed(["a"])
    clock.now += 5
    assert resilient.embed([]).shape == (0, 64)
    with pytest.raises(InvalidArgument):
        resilient.embed([None])  # type: ignore[list-item]
    with pytest.raises(ProviderUnavailable, match="down"):
        resilient.embed(["a"])


def test_threads_left_behind_are_bounded_and_end() -> None:
    fake = Held(model="left-behind")
    resilient = Resilient(fake, deadline=0.01, attempts=1, breaker=never_opens(), max_abandoned=4)
    messages = []
    for _ in range(12):
        with pytest.raises((Timeout, ProviderUnavailable)) as caught:
            resilient.embed(["a"], kind="query")
        messages.append(str(caught.value))
    assert sum("still without an answer" in message for message in messages) == 8
    assert len(_threads_of(fake)) == 4
    fake.released.set()
    for thread in _threads_of(fake):
        thread.join()
    fake.released.clear()
    with pytest.raises(Timeout):
        resilient.embed(["a"], kind="query")
    fake.released.set()


def _threads_of(fake: FakeEmbedder) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"embed {fake.id}"]


def test_many_callers_at_once_are_not_mistaken_for_abandoned_ones() -> None:
    resilient = Resilient(FakeEmbedder(delay=0.1), max_abandoned=1, deadline=120)
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: resilient.embed(["a"], kind="query"), range(24)))
    assert len(answers) == 24


def test_closing_closes_what_it_wraps() -> None:
    class Closing(FakeEmbedder):
        closed = False

        def close(self) -> None:
            self.closed = True

    inner = Closing()
    Resilient(inner).close()
    Resilient(FakeEmbedder()).close()
    assert inner.closed


@pytest.mark.parametrize("options", [{"deadline": 0}, {"document_deadline": -1}, {"attempts": 0}, {"max_abandoned": 0}])
def test_nonsense_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        Resilient(FakeEmbedder(), **options)  # type: ignore[arg-type]
