"""Test code that uses this library: scripted answers, virtual time, no network."""

from ._answer import ScriptedAnswer
from ._ask import ask
from ._loop import VirtualTimeLoop
from ._mocks import patch_aioresponses
from ._transport import ScriptedTransport

__all__ = [
    "ScriptedAnswer",
    "ScriptedTransport",
    "VirtualTimeLoop",
    "ask",
    "patch_aioresponses",
]

for _public in (ScriptedTransport, VirtualTimeLoop, ask, patch_aioresponses):
    _public.__module__ = __name__
