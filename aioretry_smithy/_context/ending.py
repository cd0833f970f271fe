"""End an attempt or a call that did not go well at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from .._call.attempt import Attempt
from .._call.hooks import NOTHING, Sign
from .._call.recorder import record_failure
from .entered import Answered

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .entered import Entered
    from .retries import Retries
    from .row import Row

SENDING: Final = Sign()
"""Stands for the result of a request under way."""


class Ending:
    """How an attempt ends, and after the last one the call.

    It has the outcome in place of variables, which frames of a traceback have.

    Args:
        row: What the call goes through.
        call: The call.
        scope: What it is made for: the call again, or an attempt.
        request: The request, as the outer hooks have left it.
    """

    __slots__ = (
        "_at",
        "_call",
        "_request",
        "_retries",
        "_row",
        "_scope",
        "cause",
        "result",
    )

    result: Any
    """The result that there is up to now; :data:`.NOTHING` without one."""

    cause: BaseException | None
    """The failure that there is up to now."""

    def __init__(self, row: Row, call: Call, scope: Scope, request: Any) -> None:
        self._row = row
        self._call = call
        self._scope = scope
        self._request = request
        self.result = NOTHING
        self.cause = None
        # Where an attempt failed: NOTHING, when hooks were entered, or SENDING.
        self._at: Sign | None = None
        self._retries: Retries | None = None

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
        if result is not NOTHING and self._call.brings_response:
            # It may be no response at all; the hooks further out hear of it yet.
            with suppress(Exception):
                result.close()

    async def first_attempt(self) -> Attempt | None:
        """Begin the first attempt where somebody has to be asked before it."""
        row = self._row
        self._retries = row.retrier.begin(self._call, self._scope, self._request, None)
        return await self._retries.next_attempt(self)

    async def next_attempt(
        self, attempt: Any, begun: Entered, record: Record, request: Any
    ) -> Attempt | None:
        """End an attempt, and begin the next one; None where the call ends as this.

        Args:
            attempt: The attempt.
            begun: The hooks that have yet to be told of its end.
            record: What it recorded its outcome in.
            request: What it sent.
        """
        call = self._call
        if call.attempt_began is not None:
            attempt = Attempt.of_call(call, call.attempt_began)
            record = attempt.record
        if self.cause is not None:
            await self._record(attempt, record, request)
        await self._leave(begun, attempt)
        if self._retries is None:
            retrier = self._row.retrier
            self._retries = retrier.begin(call, self._scope, self._request, attempt)
        return await self._retries.next_attempt(self)

    async def hand_over(self, entered: Entered, attempt: Scope | None) -> Any:
        """Tell the hooks around the call; return or raise what they have left.

        Without an *attempt* they have refused it.
        """
        if attempt is None and self.cause is not None:
            record_failure(self._call, self._scope.record, self.cause)
        await self._leave(entered, self._scope)
        if self.cause is None:
            return self.result
        raise self.forget()

    async def _record(self, attempt: Scope, record: Record, request: Any) -> None:
        """Record how an attempt failed; the sender may bring a result yet."""
        call, at = self._call, self._at
        self._at = None
        if at is SENDING:
            sender = self._row.sender
            try:
                self.result = await sender.failed(
                    call, attempt, record, request, self.forget()
                )
            except BaseException as cause:
                self.fail(cause)
        elif at is NOTHING and self.cause is not None:
            record_failure(call, attempt.record, self.cause)

    async def _leave(self, entered: Entered, scope: Scope) -> None:
        """Tell hooks of the outcome; what they raise is the outcome from then on."""
        call = self._call
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
