"""Skip tests of telemetry where its packages are missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heard import Heard

EXTRAS = {"opentelemetry": "opentelemetry", "prometheus": "prometheus_client"}

collect_ignore_glob = [
    f"test_{part}*.py"
    for part, package in EXTRAS.items()
    if importlib.util.find_spec(package) is None
]


@pytest.fixture
def heard() -> Heard:
    """An OpenTelemetry SDK that keeps what it is told."""
    return importlib.import_module("heard").Heard()
