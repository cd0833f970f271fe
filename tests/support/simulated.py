"""A stand-in for the simulated server, and the simulation that a page shows."""

import importlib.util
from pathlib import Path

from aioretry_smithy.testing import SimulationSettings

DOCS = Path(__file__).parents[2] / "docs"


def simulation_of_the_page():
    """Return the module with the retry storm of the documentation."""
    path = DOCS / "examples" / "retry_storm.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(**changes):
    """Return what all have in common: a few calls, each of which may succeed."""
    usual = {"clients": 1, "rate": 4.0, "capacity": 10.0, "outage": None}
    usual |= {"duration": 4.0, "error_rate": 0.0, "seed": 0}
    return SimulationSettings(**usual | changes)


class ScriptedServer:
    """Answers with a status after seconds."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def serve(self, now):
        status, seconds = next(self.answers)
        return status, now + seconds
