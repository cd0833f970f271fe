"""Name what a call carries, which differs for HTTP and for functions."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, TypeAlias

Request: TypeAlias = Any
"""An ``HttpRequest``, or an ``RpcRequest`` in the call of a function."""

Result: TypeAlias = Any
"""A response of aiohttp, or whatever a function has returned."""

Cut: TypeAlias = Any
"""What cancels a function at a deadline; the room of functions knows its class."""

Permit: TypeAlias = Any
"""What hooks return when they are entered; each kind of hooks knows its own."""

Finder: TypeAlias = Any
"""Finds what hooks share with others: ``of(request)`` returns it, or None for no such.

Hooks that have found it once need not ask whether it is there.
"""


class Nothing(Enum):
    """Marks a result that is missing, since None may be a result."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING
"""Stands for the result of what has failed, since None may be a result."""
