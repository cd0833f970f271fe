"""What telemetry needs of others may be missing."""

from __future__ import annotations

import importlib.util

EXTRAS = {"opentelemetry": "opentelemetry", "prometheus": "prometheus_client"}

collect_ignore_glob = [
    f"test_{part}*.py"
    for part, package in EXTRAS.items()
    if importlib.util.find_spec(package) is None
]
