"""Test code that uses this library: scripted answers, virtual time, no network."""

from .._simulation.result import SimulatedRun, SimulationResult
from .._simulation.settings import SimulationSettings
from ._answer import ScriptedAnswer
from ._ask import ask
from ._loop import VirtualTimeLoop
from ._mocks import patch_aioresponses
from ._simulate import simulate
from ._transport import ScriptedTransport

__all__ = [
    "ScriptedAnswer",
    "ScriptedTransport",
    "SimulatedRun",
    "SimulationResult",
    "SimulationSettings",
    "VirtualTimeLoop",
    "ask",
    "patch_aioresponses",
    "simulate",
]

for _public in (
    ScriptedTransport,
    SimulatedRun,
    SimulationResult,
    SimulationSettings,
    VirtualTimeLoop,
    ask,
    patch_aioresponses,
    simulate,
):
    _public.__module__ = __name__
