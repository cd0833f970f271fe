"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING
from .passage import Passage

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .row import Row, Sender


async def run(row: Row, call: Call, scope: Scope, request: Any) -> Any:
    """Return what comes of a request, or raise it."""
    if row.retrier is None:
        passage = Passage(row.outer, call, scope, request)
        await _send(passage, row.sender)
    elif row.outer:
        passage = Passage(row.outer, call, scope, request)
        await _retry(passage, row)
    else:
        return await _attempts(row, call, scope, request)
    result, cause = passage.take()
    if cause is None:
        return result
    try:
        raise cause
    finally:
        # It has this frame, which must not have it.
        del cause


async def _retry(passage: Passage, row: Row) -> None:
    """Enter the outer hooks, make attempts, and leave."""
    try:
        waiting = passage.enter()
        if waiting is not None:
            await passage.admit(waiting)
        if passage.result is NOTHING:
            passage.result = await _attempts(
                row, passage.call, passage.scope, passage.request
            )
    except BaseException as cause:
        passage.fail(cause)
    pending = passage.leave()
    if pending is not None:
        await passage.leave_with(pending)


async def _attempts(row: Row, call: Call, scope: Scope, request: Any) -> Any:
    """Make attempts until something says stop; return or raise the last outcome."""
    passage, retrier = None, row.retrier
    attempt = retrier.first_attempt(call, request)
    if attempt is not None:
        # Nobody need be asked before it, nor about a plain success after it.
        passage = Passage(row.inner, call, attempt, attempt.to_send)
        await _send(passage, row.sender)
        if retrier.succeeds(call, attempt, passage.result):
            return passage.result
    retries = retrier.begin(call, scope, request)
    try:
        if passage is None:
            decision = await retries.begin()
        else:
            retries.take_over(attempt)
            decision = await retries.decide(*passage.take())
        while not decision.stops:
            late = await retries.wait(decision)
            if late is None:
                attempt = retries.next_attempt()
                passage = Passage(row.inner, call, attempt, attempt.to_send)
                await _send(passage, row.sender)
                late = await retries.decide(*passage.take())
            decision = late
        await retries.settle()
    except BaseException as error:
        await retries.break_off(error)
        raise
    return retries.hand_over(decision.reason)


async def _send(passage: Passage, sender: Sender) -> None:
    """Enter the hooks, send, and leave."""
    call, scope = passage.call, passage.scope
    try:
        waiting = passage.enter()
        if waiting is not None:
            await passage.admit(waiting)
        if passage.result is NOTHING:
            # A hedge or a resend may put another one in its place meanwhile.
            record, request = scope.record, passage.request
            try:
                # Not by way of a variable: a mock's future would keep the response.
                passage.result = await sender.start(call, scope, request)
            except BaseException as cause:
                passage.cause = cause
            else:
                sender.answered(call, scope, record, passage.result)
            if passage.cause is not None:
                passage.result = await sender.failed(
                    call, scope, record, request, passage.forget()
                )
    except BaseException as cause:
        passage.fail(cause)
    pending = passage.leave()
    if pending is not None:
        await passage.leave_with(pending)
