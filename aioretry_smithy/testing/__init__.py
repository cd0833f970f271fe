"""Test code that uses this library: scripted answers, faults, virtual time."""

from .._simulation.result import SimulatedRun, SimulationResult
from .._simulation.settings import SimulationSettings
from ._answer import ScriptedAnswer
from ._ask import ask
from ._fault import InjectedFault
from ._fault_client import FaultInjectingClient
from ._loop import VirtualTimeLoop
from ._mocks import patch_aioresponses
from ._simulate import simulate
from ._transport import ScriptedTransport

__all__ = [
    "FaultInjectingClient",
    "InjectedFault",
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
    FaultInjectingClient,
    InjectedFault,
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
