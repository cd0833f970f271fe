"""Test code that uses this library: scripted answers, faults, virtual time."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from ._faults import FaultInjectingClient, InjectedFault
    from ._simulation import SimulatedRun, SimulationResult, SimulationSettings
    from ._transport import ScriptedAnswer, ScriptedTransport, ask, patch_aioresponses
    from ._virtual_time import VirtualTimeLoop, simulate
else:
    from .._facade import facade_of as _facade_of

    __getattr__, __dir__ = _facade_of(__name__)

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
