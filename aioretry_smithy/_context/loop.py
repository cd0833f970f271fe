"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from .._call.hooks import NOTHING, Sign
from .._call.recorder import record_failure
from .entered import Answered, heed

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .entered import Entered
    from .row import Row

_SENDING: Final = Sign()
"""Stands for the result of a request under way."""


async def run(row: Row, call: Call, scope: Scope, request: Any) -> Any:  # noqa: C901
    """Return what comes of a request, or raise it.

    An :class:`Ending` is made as soon as there is more to it than one good answer.
    """
    outer, retrier, inner, sender = row
    entered: Entered = []
    attempt, ending, result = None, None, NOTHING
    try:
        for hooks in outer:
            permit = hooks.enter(call, scope, request)
            if isinstance(permit, Sign):
                request = await heed(permit, outer, entered, call, scope, request)
                break
            entered.append((hooks, permit))
        attempt = retrier.first_attempt(call, scope, request)
        if attempt is None:
            ending = retrier.begin(row, call, scope, request)
            attempt = await ending.next_attempt()
        while attempt is not None:
            begun: Entered = []
            record = call if attempt is call else attempt.record
            sent = request if ending is None else attempt.to_send
            try:
                for hooks in inner:
                    permit = hooks.enter(call, attempt, sent)
                    if isinstance(permit, Sign):
                        sent = await heed(permit, inner, begun, call, attempt, sent)
                        break
                    begun.append((hooks, permit))
                result = _SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                while begun:
                    hooks, permit = begun.pop()
                    pending = hooks.leave(call, attempt, permit, result, None)
                    if pending is not None:
                        await pending
                if ending is None:
                    if retrier.succeeds(call, attempt):
                        break
                    ending = retrier.begin(row, call, scope, request)
                ending.result = result
            except BaseException as cause:
                ending = ending or retrier.begin(row, call, scope, request)
                ending.note(cause, result)
            result = NOTHING
            attempt = await ending.next_attempt(attempt, begun, record, sent)
        while ending is None and (pending := _leave(entered, call, scope, result)):
            await pending
    except BaseException as cause:
        ending = ending or Ending(row, call, scope, request)
        ending.note(cause, result)
        if attempt is None and ending.cause is not None:
            record_failure(call, scope.record, cause)
        result = NOTHING
    return result if ending is None else await ending.hand_over(entered)


def _leave(
    entered: Entered, call: Call, scope: Scope, result: Any
) -> Awaitable[None] | None:
    """Tell hooks of a result, the last first, up to one that takes a wait for it."""
    while entered:
        hooks, permit = entered.pop()
        pending = hooks.leave(call, scope, permit, result, None)
        if pending is not None:
            return pending
    return None


class Ending:
    """How an attempt ends, and after the last one the call.

    It has the outcome in place of variables, which frames of a traceback have. This one
    makes no further attempt; those of retrying clients do.

    Args:
        row: What the call goes through.
        call: The call.
        scope: What it is made for: the call again, or an attempt.
        request: The request, as the outer hooks have left it.
    """

    __slots__ = ("_at", "_row", "call", "cause", "request", "result", "scope")

    result: Any
    """The result that there is up to now; :data:`.NOTHING` without one."""

    cause: BaseException | None
    """The failure that there is up to now."""

    def __init__(self, row: Row, call: Call, scope: Scope, request: Any) -> None:
        self._row = row
        self.call = call
        self.scope = scope
        self.request = request
        self.result = NOTHING
        self.cause = None
        # Where an attempt failed: NOTHING, when hooks were entered, or _SENDING.
        self._at: Sign | None = None

    def note(self, cause: BaseException, result: Any) -> None:
        """Note what was raised, and what there was in place of a result before."""
        if isinstance(cause, Answered):
            (self.result,) = cause.args
            return
        if isinstance(result, Sign):
            self._at = result
        else:
            self.result = result
        self.fail(cause)

    def fail(self, cause: BaseException) -> None:
        """Note that the outcome is a failure; a response before that is closed."""
        before, self.cause = self.cause, cause
        result, self.result = self.result, NOTHING
        if before is not None and before is not cause and cause.__context__ is None:
            # An exception of the caller's own may refuse to be written on.
            with suppress(Exception):
                cause.__context__ = before
        if result is not NOTHING and self.call.brings_response:
            # It may be no response at all; the hooks further out hear of it yet.
            with suppress(Exception):
                result.close()

    async def next_attempt(
        self,
        attempt: Any = None,
        begun: Entered | None = None,
        record: Record | None = None,
        request: Any = None,
    ) -> Scope | None:
        """End an attempt, and begin the next one; None where the call ends as this.

        Args:
            attempt: The attempt; None before the first.
            begun: The hooks that have yet to be told of its end.
            record: What it recorded its outcome in.
            request: What it sent.

        Raises:
            BaseException: What the call ends with, or what broke into it.
        """
        await self.end_attempt(attempt, begun or [], record, request)
        return None

    async def end_attempt(
        self, attempt: Any, begun: Entered, record: Any, request: Any
    ) -> None:
        """Record how an attempt failed, if it did; tell its hooks of the outcome."""
        at, self._at = self._at, None
        if at is _SENDING:
            sender, call = self._row.sender, self.call
            try:
                # It may bring a result yet.
                self.result = await sender.failed(
                    call, attempt, record, request, self.forget()
                )
            except BaseException as cause:
                self.fail(cause)
        elif at is NOTHING and self.cause is not None:
            record_failure(self.call, attempt.record, self.cause)
        await self._leave(begun, attempt)

    async def hand_over(self, entered: Entered) -> Any:
        """Tell the hooks around the call; return or raise what they have left."""
        await self._leave(entered, self.scope)
        if self.cause is None:
            return self.result
        raise self.forget()

    async def _leave(self, entered: Entered, scope: Scope) -> None:
        """Tell hooks of the outcome; what they raise is the outcome from then on."""
        call = self.call
        while entered:
            hooks, permit = entered.pop()
            try:
                if self.cause is None or isinstance(self.cause, Exception):
                    pending = hooks.leave(call, scope, permit, self.result, self.cause)
                    if pending is not None:
                        await pending
                else:
                    hooks.cancel(call, scope, permit, self.cause)
            except BaseException as error:
                self.fail(error)

    def forget(self) -> BaseException:
        """Return the failure, and forget it."""
        cause: Any = self.cause
        self.cause = None
        try:
            return cause  # type: ignore[no-any-return]
        finally:
            del cause
