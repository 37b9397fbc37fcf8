"""A moment of fuzzing. For longer: `python -m tests.soak.fuzz --seconds 240 --jobs 16`, or HOMING_SOAK=1."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.effort import times
from tests.soak import fuzz
from tests.soak.targets import TARGETS

full = settings(
    max_examples=times(60, in_full=200_000), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_given(name: str) -> None:
    check, strategies = TARGETS[name]
    full(given(*strategies)(check))()


def never_long(text: str) -> None:
    assert len(text) < 3


def never_ends(text: str) -> None:
    while True:
        pass


def test_the_command_tells_what_does_not_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "TARGETS", {"never_ends": (never_ends, TARGETS["keywords_are_few"][1])})
    monkeypatch.setattr(fuzz, "PATIENCE", 0.2)
    assert fuzz.main(["--seconds", "0", "--jobs", "1"]) == 1
    assert "no end within 0.2 s" in capsys.readouterr().out


def test_the_command_tries_every_target_and_tells_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {name: TARGETS[name] for name in ("paragraphs_are_parts_of_the_text_in_order", "keywords_are_few")}
    monkeypatch.setattr(fuzz, "TARGETS", good)
    assert fuzz.main(["--seconds", "0", "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert all(f"{name}: " in told for name in good)
    monkeypatch.setattr(fuzz, "TARGETS", {**good, "never_long": (never_long, good["keywords_are_few"][1])})
    assert fuzz.main(["--seconds", "0", "--jobs", "1"]) == 1
    assert "never_long(" in capsys.readouterr().out
