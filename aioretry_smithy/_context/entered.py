"""Enter the hooks of a row, and tell them of a good outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .._call.call import OF_ALL
from .._call.hooks import PASS, WAIT, Answer, Changed, Hooks, Sign
from .recording import record_response

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Permit, Request, Result

Entered: TypeAlias = "list[tuple[Hooks, Any]]"
"""The hooks that were entered, each with its permit, from the outside in."""


class Answered(Exception):  # noqa: N818
    """Ends an attempt, or a call, with a result in place of sending anything."""


def enter(
    hooks: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
    request: Request,
) -> Sign | None:
    """Enter hooks in turn, up to one that gives a sign in place of a mere permit."""
    for each in hooks:
        permit = each.enter(call, scope, request)
        if isinstance(permit, Sign):
            return permit
        entered.append((each, permit))
    return None


async def heed(
    sign: Sign | None,
    hooks: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
    request: Request,
) -> Any:
    """Enter the rest of some hooks, after a sign; return the request to send.

    Raises:
        Exception: One refuses the request, or answers it.
    """
    call.care = OF_ALL
    while sign is not None:
        each = hooks[len(entered)]
        permit: Permit = sign
        if sign is WAIT:
            permit = await each.admit(call, scope, request)
        if isinstance(permit, Answer):
            record_response(call, scope.record, permit.result)
            raise Answered(permit.result)
        if isinstance(permit, Changed):
            permit, request = permit.permit, permit.request
        entered.append((_NO_HOOKS if permit is PASS else each, permit))
        sign = enter(hooks[len(entered) :], entered, call, scope, request)
    return request


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


class _NoHooks(Hooks):
    """Stands for hooks that have nothing to do this time."""

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Permit,
        result: Result,
        cause: Exception | None,
    ) -> None:
        """Do nothing."""


_NO_HOOKS: Final = _NoHooks()
