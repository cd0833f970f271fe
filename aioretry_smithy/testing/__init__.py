"""Parts for the tests of those who use this library, and of the library itself."""

from ._ask import ask
from ._loop import VirtualTimeLoop
from ._transport import ScriptedAnswer, ScriptedTransport

__all__ = ["ScriptedAnswer", "ScriptedTransport", "VirtualTimeLoop", "ask"]

for _name in __all__:
    if _name != "ScriptedAnswer":
        globals()[_name].__module__ = __name__
del _name
