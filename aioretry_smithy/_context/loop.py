"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.call import OF_ALL
from .._call.hooks import NOTHING
from .._call.recorder import record_failure
from .ending import SENDING, Ending
from .entered import enter, heed, leave

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request
    from .row import Row


async def run(row: Row, call: Call, scope: Scope, request: Request) -> Any:  # noqa: C901
    """Return what comes of a request, or raise it.

    An :class:`.Ending` is made as soon as there is more to it than one good answer.
    """
    outer, retrier, inner, sender, told_of_calls, told_of_attempts = row
    attempt: Scope | None = None
    ending, result, entered = None, NOTHING, [*told_of_calls]
    try:
        if outer and (sign := enter(outer, entered, call, scope, request)):
            request = await heed(sign, outer, entered, call, scope, request)
        if retrier.starts_at_once and call.care < OF_ALL:
            attempt, call.attempt_began = call, call.started
        elif (attempt := retrier.first_attempt(call, scope, request)) is None:
            ending = retrier.begin(sender, call, scope, request)
            attempt = await ending.next_attempt()
        while attempt is not None:
            begun = [*told_of_attempts]
            record = call if attempt is call else attempt.record
            sent = request if ending is None else attempt.to_send
            try:
                if inner and (sign := enter(inner, begun, call, attempt, sent)):
                    sent = await heed(sign, inner, begun, call, attempt, sent)
                result = SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                while pending := leave(begun, call, attempt, result):
                    await pending
                if ending is None:
                    if retrier.succeeds(call, attempt, sent):
                        break
                    ending = retrier.begin(sender, call, scope, request)
                ending.result = result
            except BaseException as cause:
                ending = ending or retrier.begin(sender, call, scope, request)
                ending.note(cause, result)
            result = NOTHING
            attempt = await ending.next_attempt(attempt, begun, record, sent)
        while ending is None and (pending := leave(entered, call, scope, result)):
            await pending
    except BaseException as cause:
        ending = ending or Ending(sender, call, scope, request)
        ending.note(cause, result)
        if attempt is None and ending.cause is not None:
            record_failure(call, scope.record, cause)
        result = NOTHING
    return result if ending is None else await ending.hand_over(entered)
