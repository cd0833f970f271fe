"""Callbacks for the bodies that a retrying client reads within an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .kinds import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .call import Call
    from .kinds import Result

    Told: TypeAlias = Callable[[Call, Result, bytes | None], None]
    """Takes the call, the answer that was looked at, and its body if it is here."""


def will_read(call: Call) -> None:
    """Note that the body of the next answer may be read before the attempt is over."""
    call.awaiting_body = []


def await_body(call: Call, told: Told) -> bool:
    """Let a function be told of the body; return False where nobody will read it."""
    if call.awaiting_body is None:
        return False
    call.awaiting_body.append(told)
    return True


def tell_of_body(call: Call, result: Result, body: bytes | None = None) -> None:
    """Tell those who wait, once, that an answer was looked at."""
    waiting, call.awaiting_body = call.awaiting_body or (), None
    for told in waiting if result is not NOTHING else ():
        told(call, result, body)


def forget_body(call: Call) -> None:
    """Let nobody be told: there is no answer after all."""
    if call.awaiting_body is not None:
        call.awaiting_body = None
