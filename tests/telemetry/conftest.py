"""Skip tests of telemetry where its packages are missing."""

import importlib
import importlib.util

import pytest

EXTRAS = {"opentelemetry": "opentelemetry", "prometheus": "prometheus_client"}

collect_ignore_glob = [
    f"test_{part}*.py"
    for part, package in EXTRAS.items()
    if importlib.util.find_spec(package) is None
]


@pytest.fixture
def heard():
    """An OpenTelemetry SDK that keeps what it is told."""
    return importlib.import_module("heard").Heard()


@pytest.fixture(params=["Prometheus", "OpenTelemetry"])
def shown(request):
    """Each back end by itself."""
    return getattr(importlib.import_module("back_ends"), request.param)()


@pytest.fixture
def registry():
    """A registry of Prometheus without metrics."""
    return importlib.import_module("prometheus_client").CollectorRegistry()


@pytest.fixture
def values(registry):
    """A function that returns the values of a series by those of its labels."""

    def read(name, of=registry):
        return {
            tuple(sample.labels.values()): sample.value
            for metric in of.collect()
            for sample in metric.samples
            if sample.name == f"aioretry_smithy_{name}"
        }

    return read
