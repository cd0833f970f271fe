"""Both back ends of telemetry, which say the same numbers in the same form."""

import re

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra prometheus")
pytest.importorskip("opentelemetry.sdk", reason="needs the SDK of OpenTelemetry")

from heard import Heard
from prometheus_client import CollectorRegistry

from aioretry_smithy.opentelemetry import OpenTelemetryMetrics
from aioretry_smithy.prometheus import PrometheusMetrics

THINGS = re.compile("^(circuit_breaker|concurrency_limit|retry_budget)_")
"""What has a name, which is followed by a point in OpenTelemetry."""


class BackEnd:
    """Sums up what it says."""

    def totals(self, *names):
        """Return what was counted, or how often it was measured, in each series."""
        return [sum(self.values(name).values()) for name in names]


class Prometheus(BackEnd):
    """Counts in a registry."""

    classes = "MetricsClient", "MetricsRpcClient"

    def __init__(self):
        self.registry = CollectorRegistry()

    def metrics(self, **settings):
        """Make what counts."""
        return PrometheusMetrics(self.registry, **settings)

    def values(self, name):
        """Return each value that is not 0, or how often it was measured, by labels."""
        names = {f"aioretry_smithy_{name}{end}" for end in ("", "_total", "_count")}
        return {
            tuple(sample.labels.values()): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name in names and sample.value
        }


class OpenTelemetry(BackEnd):
    """Tells an SDK."""

    classes = "TracingClient", "TracingRpcClient"

    def __init__(self):
        self.heard = Heard()

    def metrics(self, **settings):
        """Make what counts."""
        return OpenTelemetryMetrics(self.heard.meter_provider, **settings)

    def values(self, name):
        """Return each value that is not 0, or how often it was measured, by labels."""
        metric = self.heard.metrics().get(_instrument(name.removesuffix("_seconds")))
        values = {
            tuple(point.attributes.values()): getattr(point, "count", None)
            or point.value
            for point in (metric.data.data_points if metric else ())
        }
        return {labels: value for labels, value in values.items() if value}


def _instrument(name):
    if name == "attempt_duration":
        return "http.client.request.duration"
    thing = THINGS.sub(r"\1.", name)
    return f"aioretry_smithy.{name.replace('_', '.') if thing == name else thing}"
