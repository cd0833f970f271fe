"""Name what a call carries, which differs for HTTP and for functions."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, TypeAlias

Request: TypeAlias = Any
"""An ``HttpRequest``, or an ``RpcRequest`` in the call of a function."""

Result: TypeAlias = Any
"""A response of aiohttp, or whatever a function has returned."""

Cut: TypeAlias = Any
"""The timer that cancels a function at its deadline; ``_rpc`` has the class."""

Holdings: TypeAlias = Any
"""The limits and trials that an attempt holds; ``_context`` has the class."""


class Nothing(Enum):
    """Marks a result that is missing, since None may be a result."""

    NOTHING = "NOTHING"


NOTHING: Final = Nothing.NOTHING
"""Stands for the result of what has failed, since None may be a result."""
