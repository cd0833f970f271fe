"""Name what a call carries, which differs for HTTP and for functions."""

from __future__ import annotations

from typing import Any, TypeAlias

Request: TypeAlias = Any
"""An ``HttpRequest``, or an ``RpcRequest`` in the call of a function."""

Result: TypeAlias = Any
"""A response of aiohttp, or whatever a function has returned."""

Permit: TypeAlias = Any
"""What hooks return when they are entered; each kind of hooks knows its own."""

Finder: TypeAlias = Any
"""Finds what hooks share with others: ``of(request)`` returns it, or None for no such.

Hooks that have found it once need not ask whether it is there.
"""
