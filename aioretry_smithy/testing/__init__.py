"""Test code that uses this library: scripted answers, faults, virtual time."""

from .._simulation.result import SimulatedRun, SimulationResult
from .._simulation.settings import SimulationSettings
from ._ask import ask
from ._fault import InjectedFault
from ._fault_client import FaultInjectingClient
from ._loop import VirtualTimeLoop
from ._mocks import patch_aioresponses
from ._simulate import simulate
from ._transport import ScriptedAnswer, ScriptedTransport

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

# Tracebacks, reprs and pickles then say where a name is to be imported from.
for _name in __all__:
    _public = globals()[_name]
    if getattr(_public, "__module__", "").startswith(f"{__name__.partition('.')[0]}."):
        _public.__module__ = __name__
