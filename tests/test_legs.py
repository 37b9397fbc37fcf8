"""Legs run side by side; a failing or slow one is an outcome, not an exception."""

from __future__ import annotations

import contextvars
import threading

from homing.errors import StoreBusy, Timeout
from homing.legs import run_leg, run_legs


def test_legs_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=120)
    outcomes = run_legs(dict.fromkeys("abc", meeting.wait), deadline=120)
    assert all(outcome.ok for outcome in outcomes.values())


def test_legs_see_the_context_of_their_caller_and_leave_it_alone() -> None:
    asked = contextvars.ContextVar("asked", default="nothing")
    asked.set("退款")

    def leg() -> str:
        seen = asked.get()
        asked.set("changed")
        return seen

    outcomes = run_legs({"a": leg, "b": leg}, deadline=120)
    assert [outcome.value for outcome in outcomes.values()] == ["退款", "退款"]
    assert asked.get() == "退款"


def test_what_a_leg_raises_is_its_outcome() -> None:
    def fail() -> int:
        raise StoreBusy("locked")

    outcomes = run_legs({"good": lambda: 1, "bad": fail}, deadline=120)
    assert outcomes["good"].value == 1
    assert outcomes["bad"].code == "STORE_BUSY"
    assert not outcomes["bad"].ok


def test_an_error_that_is_not_ours_still_has_a_code() -> None:
    assert run_leg("bad", lambda: 1 // 0, deadline=120).code == "INTERNAL_ERROR"


def test_a_slow_leg_is_left_behind_at_the_deadline() -> None:
    gate, done = threading.Event(), threading.Event()
    # The slow one is not over before the test is; the fast one is over before the deadline counts.
    outcomes = run_legs({"fast": done.set, "slow": lambda: done.wait() and gate.wait()}, deadline=1)
    gate.set()
    assert outcomes["fast"].ok
    assert isinstance(outcomes["slow"].error, Timeout)


def test_legs_within_legs_do_not_wait_for_each_other() -> None:
    def outer() -> int:
        return sum(run_leg("inner", lambda: 1, deadline=120).value or 0 for _ in range(3))

    outcomes = run_legs({str(number): outer for number in range(64)}, deadline=120)
    assert all(outcome.value == 3 for outcome in outcomes.values())


def test_legs_that_wait_for_nobody_take_no_threads_and_fail_as_others_do() -> None:
    outcomes = run_legs({"here": threading.get_ident, "bad": lambda: 1 // 0}, deadline=1, waits=False)
    assert outcomes["here"].value == threading.get_ident()
    assert outcomes["bad"].code == "INTERNAL_ERROR"
