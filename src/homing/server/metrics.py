"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from homing.embedders.cached import BOUNDS, Observed
from homing.embedders.provider import layers
from homing.embedders.resilient import Resilient
from homing.records import Mode

if TYPE_CHECKING:
    from homing.server.users import Users

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one server; of one of several workers, whose number every series then has."""

    def __init__(self, users: Users, worker: int | None = None) -> None:
        self._worker = worker
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "homing_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._latency = Histogram(
            "homing_request_seconds",
            "Seconds from request to the end of its answer.",
            ["method", "route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._searches = Counter(
            "homing_searches", "Searches by source and mode.", ["source", "mode", "degraded"], registry=self._registry
        )
        self.working = Gauge("homing_requests_working", "Requests being worked on.", registry=self._registry)
        self.waiting = Gauge("homing_requests_waiting", "Requests waiting for their turn.", registry=self._registry)
        self._series = cache(self._labelled)
        self._registry.register(_Queues(users))
        self._registry.register(_Models(users))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered. `route` is the pattern, not the path: paths hold people's names for things."""
        count, latency = self._series(method, route, status)
        count.inc()
        latency.observe(seconds)

    def _labelled(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, str(status)), self._latency.labels(method, route)

    def on_search(self, source: str, mode: Mode, degraded: bool) -> None:
        """Counts a search of whatever door it came through."""
        self._searches.labels(source, mode, str(degraded).lower()).inc()

    def text(self) -> bytes:
        """Everything, in the text format that Prometheus reads."""
        return generate_latest(self if self._worker is not None else self._registry)

    def collect(self) -> Iterator[Metric]:
        """The series with the number of the worker."""
        for metric in self._registry.collect():
            metric.samples = [
                one._replace(labels={**one.labels, "worker": str(self._worker)}) for one in metric.samples
            ]
            yield metric


class _Queues:
    """What waits to be embedded, read when it is asked for."""

    def __init__(self, users: Users) -> None:
        self._users = users

    def collect(self) -> Iterator[Metric]:
        pending = dead = 0
        for _, app in self._users.open_apps():
            backlog = app.engine.work.backlog()
            pending += backlog.waiting
            dead += backlog.dead
        yield GaugeMetricFamily("homing_pending_texts", "Texts that wait to be embedded.", value=pending)
        yield GaugeMetricFamily("homing_dead_letters", "Texts that were given up.", value=dead)


class _Models:
    """How the models answer, read when it is asked for."""

    def __init__(self, users: Users) -> None:
        self._users = users

    def collect(self) -> Iterator[Metric]:
        seconds = HistogramMetricFamily("homing_embedding_seconds", "Seconds of a call to a model.", labels=["model"])
        texts = CounterMetricFamily("homing_embedded_texts", "Texts that a model was given.", labels=["model"])
        failures = CounterMetricFamily("homing_embedding_failures", "Calls that failed.", labels=["model", "code"])
        circuit = GaugeMetricFamily(
            "homing_circuit", "1 for the state that the circuit of a model is in.", labels=["model", "state"]
        )
        seen: set[str] = set()
        for provider in self._users.owner.models.made():
            if provider.id in seen:
                continue
            seen.add(provider.id)
            for layer in layers(provider):
                if isinstance(layer, Observed):
                    counted = layer.seen
                    ends = [*(str(bound) for bound in BOUNDS), "+Inf"]
                    buckets = list(zip(ends, accumulate(counted.by_bound), strict=True))
                    seconds.add_metric([layer.id], buckets, counted.seconds)
                    texts.add_metric([layer.id], counted.texts)
                    for code, count in counted.failures.items():
                        failures.add_metric([layer.id, code], count)
                elif isinstance(layer, Resilient):
                    for state in ("closed", "half-open", "open"):
                        circuit.add_metric([layer.id, state], float(layer.circuit == state))
        yield from (seconds, texts, failures, circuit)
