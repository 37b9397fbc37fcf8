"""What the server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from homing.server.found import FoundGroup

if TYPE_CHECKING:
    from homing.server.tenants import Tenants

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one server."""

    def __init__(self, tenants: Tenants) -> None:
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
        self._registry.register(_Queues(tenants))

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered. `route` is the pattern, not the path: paths hold people's names for things."""
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(method, route).observe(seconds)

    def searched(self, group: FoundGroup) -> FoundGroup:
        """Counts a search and hands it back."""
        self._searches.labels(group.source, group.mode, str(group.degraded).lower()).inc()
        return group

    def text(self) -> bytes:
        """Everything, in the text format that Prometheus reads."""
        return generate_latest(self._registry)


class _Queues:
    """What waits to be embedded, read when it is asked for."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def collect(self) -> Iterator[Metric]:
        pending = dead = 0
        for _, app in self._tenants.open_apps():
            backlog = app.rag.buffer.backlog()
            pending += backlog.waiting
            dead += backlog.dead
        yield GaugeMetricFamily("homing_buffer_pending", "Texts that wait to be embedded.", value=pending)
        yield GaugeMetricFamily("homing_dead_letters", "Texts that were given up.", value=dead)
