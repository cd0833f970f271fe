"""A stand-in for the simulated server, and the simulation that a page shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def simulation_of_the_page() -> Any:
    """Return the module with the retry storm of the documentation."""
    path = DOCS / "examples" / "retry_storm.py"
    spec: Any = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ScriptedServer:
    """Answers with a status after seconds."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def serve(self, now):
        status, seconds = next(self.answers)
        return status, now + seconds
