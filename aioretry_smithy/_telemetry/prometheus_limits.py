"""The Prometheus metrics of concurrency limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from .._text import encodable
from .labels import ANOTHER_NAME
from .limit_gauges import LIMIT_GAUGES
from .prometheus_metrics import RegisteredMetrics
from .weak_registry import WeakRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._limits.concurrency_limit import ConcurrencyLimit

_PREFIX = "aioretry_smithy_concurrency_limit_"
_LABELS = ("concurrency_limit",)


class LimitGauges(Collector):
    """Reads limits when Prometheus asks: they change with each request."""

    def __init__(self) -> None:
        self.limits: WeakRegistry[ConcurrencyLimit] = WeakRegistry()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges of all limits that are alive."""
        shown = self.limits.all()
        for name, value, text in LIMIT_GAUGES:
            family = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=_LABELS)
            for limit in shown:
                family.add_metric([encodable(limit.name)], value(limit))
            yield family

    describe = collect


class LimitMetrics(RegisteredMetrics):
    """The counters and gauges of concurrency limits."""

    def __init__(self) -> None:
        self.refusals: Counter = Counter(
            f"{_PREFIX}refusals",
            "Requests that got no place in time, or none in the queue.",
            _LABELS,
            registry=None,
        )
        self.gauges: LimitGauges = LimitGauges()
        super().__init__(self.refusals, self.gauges)

    def show(self, limit: ConcurrencyLimit) -> str:
        """Show a limit, and return its label."""
        name = self.names[limit.name]
        # Counters begin at 0, so that rate() sees the first event too.
        self.refusals.labels(name)
        if name != ANOTHER_NAME:
            self.gauges.limits.add(limit)
        return name
