"""Make the Prometheus metrics for groups of endpoints."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from .endpoints import REASONS, counted
from .labels import ANOTHER_NAME, Names
from .prometheus_metrics import RegisteredMetrics, family_of
from .registry import WeakRegistry
from .series import SERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Counter
    from prometheus_client.core import GaugeMetricFamily

    from .._endpoints.state import Group
    from .._request.endpoint import Endpoint
    from .prometheus_metrics import Labels


class EndpointMetrics(RegisteredMetrics):
    """The counter and the gauge of groups of endpoints.

    Args:
        by_endpoint: Whether there is a label that tells endpoints from one another.
    """

    def __init__(self, *, by_endpoint: bool) -> None:
        super().__init__()
        self._endpoints: Names | None = Names() if by_endpoint else None
        labels = _labels("ejections", by_endpoint=by_endpoint)
        self._ejections: Counter = self.counter("ejections", labels)
        self._gauges = EndpointGauges(self.names, self._endpoints)
        self.collectors.append(self._gauges)

    def show(self, group: Group) -> None:
        """Show a group."""
        name = self.names[group.name]
        if name != ANOTHER_NAME:
            self._gauges.groups.add(group)
        if self._endpoints is None:
            # Counters begin at 0, so that rate() sees the first event too.
            for reason in REASONS:
                self._ejections.labels(name, reason)

    def count(self, group: Group, endpoint: Endpoint, reason: str) -> None:
        """Count that an endpoint is out."""
        names = self._endpoints
        more = () if names is None else (names[str(endpoint)],)
        self._ejections.labels(self.names[group.name], *more, reason).inc()


class EndpointGauges(Collector):
    """Reads groups when Prometheus asks: they change by time alone, too."""

    def __init__(self, names: Names, endpoints: Names | None) -> None:
        self.groups: WeakRegistry[Group] = WeakRegistry()
        self._names, self._endpoints = names, endpoints

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauge of all groups that are alive."""
        by_endpoint = self._endpoints is not None
        labels_of_all = _labels("endpoints", by_endpoint=by_endpoint)
        family = family_of(SERIES["endpoints"], labels_of_all)
        for group in self.groups.all():
            for found in counted(group, by_endpoint=by_endpoint):
                shown = () if found.endpoint is None else (found.endpoint,)
                labels = self._names[group.name], *shown, found.state
                family.add_metric(labels, found.number)
        yield family

    describe = collect


def _labels(name: str, *, by_endpoint: bool) -> Labels:
    first, *others = SERIES[name].labels
    return (first, "endpoint", *others) if by_endpoint else (first, *others)


endpoint_metrics = partial(EndpointMetrics, by_endpoint=False)
"""Makes those that tell groups from one another."""

metrics_of_each_endpoint = partial(EndpointMetrics, by_endpoint=True)
"""Makes those that tell endpoints from one another, too."""
