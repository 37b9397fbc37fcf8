"""What is seen of a model: how often it was asked, how long it took, how it failed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from homing.embedders.cached import BOUNDS, Observed
from homing.embedders.provider import layers
from homing.embedders.resilient import Breaker, Resilient
from homing.errors import InvalidKey, ProviderUnavailable
from homing.testing.fake import FakeEmbedder


def test_it_is_the_same_provider_under_observation() -> None:
    plain = FakeEmbedder()
    observed = Observed(plain)
    np.testing.assert_array_equal(observed.embed(["灯塔", "lighthouse"]), plain.embed(["灯塔", "lighthouse"]))
    assert (observed.id, observed.dimensions) == (plain.id, plain.dimensions)
    seen = observed.seen
    assert (seen.calls, seen.texts, sum(seen.by_bound), len(seen.by_bound)) == (1, 2, 1, len(BOUNDS) + 1)
    assert seen.seconds > 0


def test_failures_are_counted_by_code_and_the_last_one_is_known_until_it_answers() -> None:
    plain = FakeEmbedder(fail_with=InvalidKey("no"))
    observed = Observed(plain)
    for error in (InvalidKey("no"), ProviderUnavailable("gone"), ProviderUnavailable("gone")):
        plain.fail_with = error
        with pytest.raises(type(error)):
            observed.embed(["x"])
    assert observed.seen.failures == {"INVALID_KEY": 1, "PROVIDER_UNAVAILABLE": 2}
    assert observed.seen.last_failure == "PROVIDER_UNAVAILABLE"
    plain.fail_with = None
    observed.embed(["x"])
    assert observed.seen.last_failure is None
    assert observed.seen.calls == 4


def test_many_threads_lose_no_count() -> None:
    observed = Observed(FakeEmbedder())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: observed.embed([str(number)]), range(200)))
    assert (observed.seen.calls, sum(observed.seen.by_bound)) == (200, 200)


def test_the_circuit_tells_its_state() -> None:
    now = 0.0
    plain = FakeEmbedder()
    resilient = Resilient(plain, attempts=1, breaker=Breaker(cool_down=5.0, clock=lambda: now))
    told = [resilient.circuit]
    plain.fail_with = ProviderUnavailable("gone")
    with pytest.raises(ProviderUnavailable):
        resilient.embed(["x"])
    told.append(resilient.circuit)
    now = 6.0
    told.append(resilient.circuit)
    plain.fail_with = None
    resilient.embed(["x"])
    told.append(resilient.circuit)
    assert told == ["closed", "open", "half-open", "closed"]


def test_the_layers_of_a_provider_are_told_from_the_outside_in() -> None:
    inner = FakeEmbedder()
    middle = Resilient(inner)
    outer = Observed(middle)
    assert list(layers(outer)) == [outer, middle, inner]
