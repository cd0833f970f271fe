"""Enter the hooks of a row in turn, heed the signs they give, and leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .._call.defaults import OF_ALL
from .._call.hooks import PASS, WAIT, Answer, Changed, Hooks, Interrupted, Sign
from .recording import record_response

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Permit, Request, Result


Entered: TypeAlias = "list[tuple[Hooks, Any]]"
"""The hooks that were entered, each with its permit, from the outside in."""


class AnsweredInstead(Exception):  # noqa: N818
    """Ends an attempt, or a call, with a result in place of sending anything."""


def enter(
    hooks: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
    request: Request,
) -> Sign | None:
    """Enter the next hooks in turn, up to one that gives a sign, no permit.

    Where some change the request the last such change is returned; or, where one gives
    a sign after it, both.
    """
    for each in hooks[len(entered) :] if entered else hooks:
        permit = each.enter(call, scope, request)
        if isinstance(permit, Sign):
            if isinstance(permit, Changed):
                return _go_on(permit, hooks, entered, call, scope)
            return permit
        entered.append((each, permit))
    return None


def _go_on(
    changed: Changed,
    hooks: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
) -> Changed | Interrupted:
    """Enter the hooks after one that has changed the request."""
    number, permit, request = len(entered), changed.permit, changed.request
    entered.append((_NO_HOOKS if permit is PASS else hooks[number], permit))
    for each in hooks[number + 1 :]:
        permit = each.enter(call, scope, request)
        if isinstance(permit, Sign):
            if isinstance(permit, Changed):
                return _go_on(permit, hooks, entered, call, scope)
            return Interrupted(permit, request)
        entered.append((each, permit))
    return changed


async def heed(
    sign: Sign,
    to_enter: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
    request: Request,
) -> Any:
    """Enter hooks that have given a sign; return the request to send.

    Raises:
        Exception: They refuse the request, or answer it.
    """
    if isinstance(sign, Interrupted):
        request, sign = sign.changed, sign.sign
    hooks: Hooks = to_enter[len(entered)]
    permit: Permit = sign
    if sign is WAIT:
        call.care = OF_ALL
        permit = await hooks.admit(call, scope, request)
    if isinstance(permit, Answer):
        record_response(call, scope.record, permit.result, permit.source)
        raise AnsweredInstead(permit.result)
    if isinstance(permit, Changed):
        permit, request = permit.permit, permit.request
    entered.append((_NO_HOOKS if permit is PASS else hooks, permit))
    return request


_NO_HOOKS: Final = Hooks()
"""Stands for hooks that have nothing to do this time."""


def leave(
    entered: Entered, call: Call, scope: Scope, result: Result
) -> Awaitable[None] | None:
    """Tell hooks of a result, the last first, up to one that takes a wait for it."""
    while entered:
        hooks, permit = entered.pop()
        pending = hooks.leave(call, scope, permit, result, None)
        if pending is not None:
            return pending
    return None
