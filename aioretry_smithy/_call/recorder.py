"""Write outcomes into the records of a call, and judge the failures among them.

A record that is settled keeps its outcome, and what is recorded twice counts once. Who
waits for the end of a call is woken. Single facts, such as was_refused, are set by
the clients that know them.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Literal

import aiohttp

from .._errors import ResponseTimeoutError
from .._failures.failure import Failure, failure_of, judge, note_wait_in_pool
from .._failures.frames import (
    REQUEST,
    Trace,
    broken_connection_is_made,
    is_of_user_code,
    was_answered,
)
from .._failures.kept_cause import LOG_KEY, KeptCause, drop_frames
from .outcome import Ended, Outcome, Request
from .record import Race, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multidict import CIMultiDict

    from .call import Call, Context, Exchange


def attach(call: Call, source: object) -> None:
    """Let :meth:`RequestLog.of` find the log of *call* from a response."""
    try:
        setattr(source, LOG_KEY, call)
    except (AttributeError, TypeError):
        # One of a user's class may refuse, and there is no other place.
        return


def attach_to_error(call: Call, error: BaseException) -> None:
    """Let :meth:`RequestLog.of` find the log of *call* from an exception."""
    # One of the user's own may refuse to be written on.
    vars(error)[LOG_KEY] = call


def attached_to(source: object) -> Any:
    """Return the call attached to *source*, or None."""
    return getattr(source, "__dict__", {}).get(LOG_KEY)


def record_return(call: Call, record: Record) -> None:
    """Record that a function returned; its value is not kept."""
    outcome = record.outcome
    if not record.is_final and (outcome.ended is None or outcome.cause is not None):
        record.outcome = Ended(call.loop.time())
        if call.waiters:
            call.wake()


def record_failure(ctx: Context, cause: BaseException) -> None:
    """Classify a caught failure, and record that there is no response."""
    call, record = ctx.call, ctx.record
    if record.is_final or cause_of(record) is cause:
        return
    judge(cause)
    if record.outcome.sent_headers is not None:
        record.sent_headers = record.outcome.sent_headers
    kept = KeptCause(cause) if call.is_over else cause
    answer = _cut_answer(call, record, cause)
    record.outcome = Ended(call.loop.time(), kept)
    if answer is not None:
        record.outcome.keep_answer(answer)
    if call.waiters:
        call.wake()


def _cut_answer(call: Call, record: Record, cause: BaseException) -> Outcome | None:
    """Return the answer whose body was cut by the deadline that a failure reports."""
    outcome = (call.sent[-1] if record is call and call.sent else record).outcome
    if outcome.status is None or not isinstance(cause, ResponseTimeoutError):
        return None
    cut = outcome.cause
    cut = cut.get() if isinstance(cut, KeptCause) else cut
    return outcome if isinstance(cut, ResponseTimeoutError) else None


def record_race(call: Call) -> None:
    """Record the end of a race, if the outcome is that of an earlier request."""
    if not call.is_final:
        call.race = Race(ended=call.loop.time())


def record_superseded(record: Record) -> None:
    """Record that a different hedge had a good answer."""
    record.race = record.race or Race()
    record.race.is_superseded = True


def record_injected(record: Record) -> None:
    """Record that the outcome so far is an injected fault."""
    if record.outcome.ended is not None and not record.is_final:
        record.outcome.is_injected = True


def record_unwanted(record: Record) -> None:
    """Record that a strategy wanted a further attempt after the last outcome."""
    if record.outcome.ended is not None:
        record.outcome.is_unwanted = True


def note_length(outcome: Outcome, length: int) -> None:
    """Note how many bytes of a body came, unless that was known."""
    if outcome.ended is not None and outcome.length is None:
        outcome.length = length


def record_end_of_body(call: Call, outcome: Outcome) -> None:
    """Record that the body of a response ended."""
    if outcome.body_ended is None and outcome.ended is not None:
        outcome.body_ended = call.loop.time()
        if call.waiters:
            call.wake()


def record_failed_body(call: Call, outcome: Outcome, cause: BaseException) -> bool:
    """Judge why reading a body failed, and record it; say whether that counts."""
    if outcome.ended is None or outcome.body_ended is not None:
        return False
    if with_outcome(call, outcome) is None:
        return False
    judge(cause)
    outcome.body_ended = call.loop.time()
    outcome.cause = KeptCause(cause) if call.is_over else cause
    if call.waiters:
        call.wake()
    return True


def with_outcome(call: Call, outcome: Outcome) -> Record | None:
    """Return the record that has an outcome: that of the call, or of a request."""
    records: tuple[Record, ...] = (call, *call.sent)
    return next((each for each in records if each.outcome is outcome), None)


def cause_of(record: Record) -> BaseException | None:
    """Return the failure of a call or a request, or of reading the body."""
    cause = record.status_error or record.outcome.cause
    return cause.get() if isinstance(cause, KeptCause) else cause


def note_request(ctx: Context, request: Request) -> None:
    """Record the sent request, if a decorator has replaced the original."""
    record = ctx.record
    if record.is_final:
        return
    if not request.looks_like(record.begun_request):
        record.sent_request = request.without_body()
    elif record.sent_request is not None:
        # Another one was sent before it.
        record.sent_request = None


def note_defaults(
    call: Call, record: Record, headers: CIMultiDict[str], request: Request
) -> None:
    """Note the headers of the session where they changed before *request* is sent.

    They are those of the first request until another one is sent with others. Nobody
    else has these *headers*.
    """
    if headers != call.default_headers:
        if record.number in {None, 1}:
            call.own_headers = headers
        else:
            record.sent_headers = request.merged_headers(headers)


def begin_after_wait(
    call: Call,
    record: Record,
    waited: float,
    source: Literal["rate_limit", "endpoint", "circuit_breaker"] = "rate_limit",
) -> None:
    """Note that a request begins now, after a wait for its turn, endpoint or circuit.

    The wait belongs to the request before, before the first one to the call. A wait
    for a hedge, or for what is sent again within an attempt, belongs to nobody.
    """
    if record.was_sent:
        return
    now = call.loop.time()
    if record.number is None or record.first_sent is not None:
        record.first_sent = now
    before: Record = call
    if record.number is not None:
        # The sum of floats may be later than now.
        record.started = min(record.started + waited, now)
        if record.deadline is not None:
            record.deadline += waited
        if record.is_hedge:
            return
        if record.number > 1:
            before = _waited_after(
                [each for each in call.sent if each.number < record.number]
            )
    before.delay = (before.delay or 0.0) + waited
    before.delay_source = source


def _waited_after(requests: Sequence[Exchange]) -> Exchange:
    """Return the record, of the last request or a hedge, that has the later wait."""
    backwards = reversed(requests)
    return next(
        each for each in backwards if each.delay is not None or not each.is_hedge
    )


def follow_stale(call: Call, stale: Record) -> Exchange:
    """Begin the request that is sent in place of one with a broken connection."""
    drop_frames(cause_of(stale))
    sent = _follow(call, stale, 0.0, "stale_connection")
    sent.is_raced = stale.is_raced
    return sent


def follow_rejected(call: Call, rejected: Record, waited: float) -> Exchange:
    """Begin the resent request with a new token, after the wait for the token."""
    return _follow(call, rejected, waited, "token")


def _follow(
    call: Call,
    stale: Record,
    delay: float,
    source: Literal["stale_connection", "token"],
) -> Exchange:
    """Begin a request that replaces a failed request of the same attempt."""
    stale.delay, stale.delay_source, stale.is_final = delay, source, True
    sent = begin_beside(call, stale)
    sent.route = stale.route
    if stale.race is not None:
        sent.race = Race(stale.race.after)
    call.resends += 1
    return sent


def begin_beside(call: Call, record: Record) -> Exchange:
    """Begin a second request in an attempt whose first request has an outcome."""
    sent = call.begin_request(record.begun_request)
    sent.began, sent.deadline = record.attempt_started, record.deadline
    sent.request_preview, sent.first_sent = record.request_preview, record.first_sent
    sent.preview_length = record.preview_length
    return sent


def end_call(call: Call, raised: BaseException | None = None) -> None:
    """End a call: release its exceptions, their frames and the caller's objects.

    What is *raised* next keeps its frames.
    """
    call.is_over = call.is_final = True
    call.session = call.resources = None
    call.request = call.request.without_body()
    outcome = call.outcome
    if outcome.cause is not None:
        if isinstance(outcome.cause, BaseException):
            attach_to_error(call, outcome.cause)
        outcome.cause = KeptCause.of(outcome.cause, raised)
    if call.retry_error is not None:
        call.retry_error = KeptCause.of(call.retry_error, raised)
    for sent in call.sent:
        if sent.outcome.cause is not None or not sent.is_final:
            _let_go(sent, raised)
    if call.holdings is not None:
        call.holdings.end()
    if call.waiters:
        call.wake()


def _let_go(record: Record, raised: BaseException | None) -> None:
    outcome = record.outcome
    if outcome.cause is not None:
        outcome.cause = KeptCause.of(outcome.cause, raised)
    if outcome.ended is not None:
        record.is_final = True


_TIMER = ("aiohttp.helpers", "__exit__")
_POOL = ("aiohttp.connector", "_wait_for_available_connection")
_TUNNEL = ("aiohttp.connector", "_create_proxy_connection")
_TLS = ("aiohttp.connector", "_start_tls_connection")
_WRITING = ("aiohttp.client_reqrep", "write_bytes")
# Modules that pass on the chunks of a body count as the body, too.
_BODY = {
    "aiohttp.multipart",
    "aiohttp.payload",
    "aioretry_smithy._bodies.replayable_payload",
    "aioretry_smithy._session.request_classes",
}
_WIRE = {"aiohttp.base_protocol", "aiohttp.http_writer"}


def judge_request(cause: BaseException, record: Record) -> None:
    """Judge which side a failure came from, and whether a server saw the request."""
    failure, trace = judge(cause), Trace(cause)
    failure.reached_server |= record.was_sent
    # If aiohttp renames its method some day, the wait counts as one for the server.
    if failure.kind.is_timeout and trace.has(_POOL):
        note_wait_in_pool(cause)
    _judge_side(failure, cause, trace)
    if not record.was_sent:
        from_aiohttp = trace.has(REQUEST)
        was_sent = trace.went_out() if from_aiohttp else not failure.is_unprocessed
        record.was_sent = was_sent


def _judge_side(failure: Failure, cause: BaseException, trace: Trace) -> None:
    """Judge which side a failure came from, by what aiohttp had begun to do."""
    frames = [*dropwhile(lambda each: each[0] != REQUEST, trace.links[0])]
    if not frames:
        # Raised by a mock or by us, before aiohttp.
        return
    (_, frame), *inside = frames
    request = frame.f_locals.get("req")
    # aiohttp keeps the answered hops in "history". If that is renamed some day, a
    # redirect is assumed, which is the safe side.
    if frame.f_locals.get("history", True) or was_answered(request):
        failure.reached_server = True
    if not isinstance(cause, Exception):
        return
    is_early = request is None and [place for place, _ in inside[:1]] != [_TIMER]
    if is_early or _comes_from_body(trace):
        failure.raised_by_caller = True
    else:
        failure.of_no_server |= is_of_user_code(cause, inside)
        failure.connection_made = broken_connection_is_made(cause)
        if isinstance(cause, aiohttp.ClientError | OSError):
            _judge_connecting(failure, trace)


def _judge_connecting(failure: Failure, trace: Trace) -> None:
    """Note if there was no connection yet, to the server or to a proxy before it."""
    places = [place for place, _ in trace.connecting()]
    if places:
        failure.connection_made = False
        failure.broke_at_proxy = _TUNNEL in places and _TLS not in places


def judge_attempt(ctx: Context, cause: BaseException) -> None:
    """Note whether a server has seen something of an attempt that failed.

    Whoever refused the rest: a decorator of the caller's own may have sent the request
    before, or have made attempts inside this one; a function may have made calls.
    """
    failure = judge(cause)
    if failure.is_unprocessed and _was_sent(ctx.call, ctx.record, cause):
        failure.reached_server = True


def _was_sent(call: Call, record: Record, cause: BaseException) -> bool:
    number = record.number
    if number is None and call.sent:
        # Each attempt was judged by itself.
        return False
    inner = call.sent_after(number)
    if call.brings_response:
        was_sent = record.was_sent or any(each.was_sent for each in inner)
        return was_sent or call.dropped.may_be_sent_after(number or 0)
    # That the function ran says nothing: it may be what refused.
    inside = record.calls_inside
    # Nobody knows of the calls that were not kept.
    return any(_ran_before(each, cause) for each in inner) or (
        inside is not None
        and (inside.dropped > 0 or any(each.was_sent_at_all for each in inside.kept))
    )


def _ran_before(record: Record, cause: BaseException) -> bool:
    earlier = cause_of(record)
    if earlier is None or earlier is cause:
        return False
    failure = failure_of(earlier)
    return not (failure.kind.is_refusal or failure.is_unprocessed)


def _comes_from_body(trace: Trace) -> bool:
    for link in trace.links[:2]:
        places = [place for place, _ in link]
        if _WRITING in places:
            inside = places[places.index(_WRITING) + 1 :]
            # The first module that the payloads called: the user's body, or the wire.
            called = [module for module, _ in inside if module not in _BODY]
            return bool(inside) and called[:1] not in ([wire] for wire in _WIRE)
    return False
