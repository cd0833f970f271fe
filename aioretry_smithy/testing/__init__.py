"""Parts for the tests of those who use this library, and of the library itself."""

from ._answer import ScriptedAnswer
from ._ask import ask
from ._loop import VirtualTimeLoop
from ._transport import ScriptedTransport

__all__ = ["ScriptedAnswer", "ScriptedTransport", "VirtualTimeLoop", "ask"]

for _public in (ScriptedTransport, VirtualTimeLoop, ask):
    _public.__module__ = __name__
