"""The breaker, on a clock of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from homing.embedders.resilient import Breaker
from homing.errors import InvalidArgument


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_permits_while_nothing_fails(clock: Clock) -> None:
    breaker = Breaker(clock=clock)
    for _ in range(3):
        assert breaker.permit()
        breaker.succeeded()
    assert breaker.retry_after is None


def test_it_opens_after_so_many_failures_in_a_row(clock: Clock) -> None:
    breaker = Breaker(failures=3, clock=clock)
    for _ in range(2):
        assert breaker.permit()
        breaker.failed()
    assert breaker.permit()
    breaker.failed()
    assert not breaker.permit()


def test_a_success_between_failures_starts_the_count_again(clock: Clock) -> None:
    breaker = Breaker(failures=2, clock=clock)
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.permit()


def test_after_the_cool_down_one_probe_and_only_one_is_permitted(clock: Clock) -> None:
    breaker = Breaker(cool_down=5, clock=clock)
    breaker.failed()
    clock.now += 4.9
    assert not breaker.permit()
    assert breaker.retry_after == pytest.approx(0.1)
    clock.now += 0.2
    assert [breaker.permit() for _ in range(4)] == [True, False, False, False]
    assert breaker.retry_after == 0


def test_a_probe_that_succeeds_closes_it(clock: Clock) -> None:
    breaker = Breaker(cool_down=5, clock=clock)
    breaker.failed()
    clock.now += 6
    assert breaker.permit()
    breaker.succeeded()
    assert [breaker.permit() for _ in range(3)] == [True] * 3


def test_each_failed_probe_doubles_the_pause_up_to_the_longest(clock: Clock) -> None:
    breaker = Breaker(cool_down=5, longest=18, clock=clock)
    breaker.failed()
    for pause in (5, 10, 18, 18):
        assert breaker.retry_after == pytest.approx(pause)
        clock.now += pause
        assert breaker.permit()
        breaker.failed()


def test_recovery_forgets_the_long_pauses(clock: Clock) -> None:
    breaker = Breaker(cool_down=5, clock=clock)
    breaker.failed()
    clock.now += 5
    breaker.permit()
    breaker.failed()
    clock.now += 10
    breaker.permit()
    breaker.succeeded()
    breaker.failed()
    assert breaker.retry_after == pytest.approx(5)


def test_it_stays_open_as_long_as_the_other_side_asked(clock: Clock) -> None:
    breaker = Breaker(cool_down=1, clock=clock)
    breaker.failed(retry_after=60)
    clock.now += 59
    assert not breaker.permit()
    clock.now += 2
    assert breaker.permit()


def test_threads_that_arrive_together_get_one_probe(clock: Clock) -> None:
    breaker = Breaker(cool_down=1, clock=clock)
    breaker.failed()
    clock.now += 2
    with ThreadPoolExecutor(16) as threads:
        permitted = list(threads.map(lambda _: breaker.permit(), range(200)))
    assert sum(permitted) == 1


@pytest.mark.parametrize("options", [{"failures": 0}, {"cool_down": 0}, {"cool_down": 10, "longest": 5}])
def test_nonsense_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        Breaker(**options)  # type: ignore[arg-type]


def test_a_provider_that_asks_for_an_hour_is_tried_again_after_five_minutes(clock: Clock) -> None:
    breaker = Breaker(cool_down=1, clock=clock)
    breaker.failed(retry_after=3600)
    clock.now += 299
    assert not breaker.permit()
    clock.now += 2
    assert breaker.permit()
