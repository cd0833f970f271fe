"""An OpenTelemetry SDK that keeps what it hears, and the semantic conventions."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from chains import chain, log_of, retrying
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from aioretry_smithy.opentelemetry import TracingClient

pytest.importorskip("opentelemetry.sdk")


def attributes_of(span):
    """Return the attributes of a span, without the id, which differs each time."""
    attributes = dict(span.attributes or {})
    attributes.pop("aioretry_smithy.id", None)
    return attributes


class Broken:
    """An instrument that has a bug."""

    def record(self, *arguments):
        """Raise an error."""
        raise RuntimeError("a bug")


class Heard:
    """Providers of spans and metrics, and what they were told."""

    def __init__(self, **options):
        self.exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False, **options)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self.reader], shutdown_on_exit=False)

    def decorator(self, **settings):
        """Make the decorator that tells these providers."""
        return TracingClient.new_decorator(
            self.tracer_provider, self.meter_provider, **settings
        )

    def break_durations(self, tracing):
        """Let the instruments that a decorator measures times with have a bug."""
        client = tracing(object())
        series = client.telemetry.instruments.get().series
        for name in ("attempt_duration_seconds", "call_duration_seconds"):
            series[name] = Broken().record

    def spans(self, kind=None):
        """Return the spans of a kind, in the order in which they began."""
        found = [
            span
            for span in self.exporter.get_finished_spans()
            if kind is None or span.kind is kind
        ]
        # On a coarse clock a call and its first attempt begin at the same time.
        return sorted(
            found, key=lambda span: (span.start_time, span.parent is not None)
        )

    @property
    def attempts(self):
        """The spans of attempts."""
        return self.spans(SpanKind.CLIENT)

    @property
    def call(self):
        """The span of the one call."""
        (call,) = self.spans(SpanKind.INTERNAL)
        return call

    def metrics(self):
        """Collect the metrics by name."""
        data = self.reader.get_metrics_data()
        return {
            metric.name: metric
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def points(self, name):
        """Collect the attributes and the values, or sums, of one metric."""
        metric = self.metrics().get(name)
        return [
            (dict(point.attributes), getattr(point, "value", getattr(point, "sum", 0)))
            for point in (metric.data.data_points if metric else ())
        ]

    def total(self, name):
        """Collect one metric, all attributes together."""
        return sum(value for _, value in self.points(name))


URL = "https://api.example.com/orders"


class Row(NamedTuple):
    """An attribute as the conventions describe it."""

    type: type
    level: str


def check(attributes, table, *, failed, answered, resent=False):
    """Hold attributes against a table: names, types, levels of requirement."""
    conditions = {
        "required": True,
        "where it failed": failed,
        "where the method is _OTHER": attributes["http.request.method"] == "_OTHER",
        "where there is a response": answered,
        "where it was sent before": resent,
        "recommended, not made": False,
    }

    assert set() == set(attributes) - set(table)
    for name, row in table.items():
        if row.level in conditions:
            assert conditions[row.level] == (name in attributes), name
        if name in attributes:
            assert row.type is type(attributes[name]), name


def seconds(span):
    return (span.end_time - span.start_time) / 1e9


def traced(heard, answers, *inside, **settings):
    """Tracing in both places around a retrying client."""
    tracing = heard.decorator()
    return chain(answers, *inside, tracing, retrying(**settings), tracing)


async def get(builder, url=URL, **options):
    return await log_of(builder.build(), url, **options)
