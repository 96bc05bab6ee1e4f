"""The operator's metrics for Prometheus, as `core.catalogue` describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from sluice.core.catalogue import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.catalogue import Metric

_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG: Final = (5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)


class Metrics:
    """The metrics of one operator."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        PlatformCollector(registry=self.registry)
        ProcessCollector(registry=self.registry)
        self._gauges = {m.name: self._gauge(m) for m in METRICS if m.kind == "gauge"}
        self._counters = {m.name: self._counter(m) for m in METRICS if m.kind == "counter"}
        self._times = {m.name: self._histogram(m) for m in METRICS if m.kind == "histogram"}

    def set(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(**labels) if labels else gauge).set(value)

    def replace(self, name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> None:
        """Replace all series of a gauge.

        Args:
            name: the gauge.
            values: the values, each behind the values of the gauge's labels in order.
        """
        gauge = self._gauges[name]
        gauge.clear()
        for labels, value in values:
            gauge.labels(*labels).set(value)

    def count(self, name: str, value: float = 1, /, **labels: str) -> None:
        """Add to a counter."""
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(value)

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Add a duration to a histogram."""
        histogram = self._times[name]
        (histogram.labels(**labels) if labels else histogram).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.means, metric.labels, registry=self.registry)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.means, metric.labels, registry=self.registry)

    def _histogram(self, metric: Metric) -> Histogram:
        buckets = _LONG if metric.name == "sluice_copy_seconds" else _BUCKETS
        return Histogram(
            metric.name, metric.means, metric.labels, buckets=buckets, registry=self.registry
        )
