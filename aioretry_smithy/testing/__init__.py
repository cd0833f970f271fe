"""Test code that uses this library: scripted answers, faults, virtual time."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from ._faults import FaultInjectingClient as FaultInjectingClient
    from ._faults import InjectedFault as InjectedFault
    from ._simulation import SimulatedRun as SimulatedRun
    from ._simulation import SimulationResult as SimulationResult
    from ._simulation import SimulationSettings as SimulationSettings
    from ._transport import ScriptedAnswer as ScriptedAnswer
    from ._transport import ScriptedTransport as ScriptedTransport
    from ._transport import ask as ask
    from ._transport import patch_aioresponses as patch_aioresponses
    from ._virtual_time import VirtualTimeLoop as VirtualTimeLoop
    from ._virtual_time import simulate as simulate
else:
    from .._facade import facade_of as _facade_of

    __all__, __getattr__, __dir__ = _facade_of(__name__)
