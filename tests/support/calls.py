"""Contexts and logs of calls that a test makes by hand.

Only this module knows how a context is made and what writes into its log.
"""

import asyncio

import aiohttp
import yarl
from chains import URL
from multidict import CIMultiDict, CIMultiDictProxy

from aioretry_smithy import (
    HttpRequest,
    RequestLog,
    RpcRequest,
    client_decorator,
    new_response,
)
from aioretry_smithy._call import recorder
from aioretry_smithy._call.call import CallDefaults
from aioretry_smithy._call.outcome import Answered
from aioretry_smithy._call.record import ConnectionTimes, Race, Upload
from aioretry_smithy._call.recorder import record_failure
from aioretry_smithy._context.context import CallContext
from aioretry_smithy._context.recording import fail_body, record_result
from aioretry_smithy._log.request_log import annotate
from aioretry_smithy._text.mask import DEFAULT_MASK
from aioretry_smithy._text.printable import BodyHead

REQUEST = HttpRequest("GET", "http://example.com/")


def begin(request=REQUEST, *, inside=None, **options):
    """Begin a call, which may be made inside another one or an attempt of it.

    Further attempts come of ``derive()``. The options are those of a context, such as
    ``timeout``, ``default_headers`` and ``mask``.
    """
    ctx = _begin(request, **options)
    if inside is not None:
        inside._call.add_nested_call(inside._record, ctx.call)
    return ctx


def _begin(request, timeout=None, default_headers=None, mask=DEFAULT_MASK):
    loop, defaults = asyncio.get_running_loop(), CallDefaults(mask, default_headers)
    return CallContext(request, loop, timeout, defaults)


def function(name, inside=None, timeout=None):
    """Begin the call of a function."""
    ctx = begin(RpcRequest(name), inside=inside, timeout=timeout)
    call_of(ctx).brings_response = False
    return ctx


def http(url, inside=None, method="GET", **options):
    """Begin an HTTP call."""
    return begin(HttpRequest(method, url), inside=inside, **options)


def ended(status=None, *, cause=None, headers=None, method="GET", url=URL):
    """Return the context of an attempt that was answered, or that failed.

    Without an outcome it is under way; the body of a response has not ended.
    """
    request = HttpRequest(method, url)
    ctx = begin(request).derive(request)
    if status is not None:
        begin_body(ctx, status, headers=headers)
    elif cause is not None:
        end(ctx, cause)
    return ctx


def end(ctx, outcome=None, delay=None, *, sent=True, refused=False, **options):
    """End a call or an attempt.

    Args:
        ctx: Its context.
        outcome: An exception, a response or the status of one; None where a function
            returned.
        delay: Seconds of a wait after it, for the log alone.
        sent: Whether a server has seen it.
        refused: Whether a circuit breaker has refused it.
        **options: Those of :func:`new_response`, beside a status.
    """
    call, record = ctx.call, ctx.record
    record.was_sent, record.was_refused = sent, refused
    if isinstance(outcome, BaseException):
        record_failure(ctx, outcome)
    elif outcome is None:
        recorder.record_return(call, record)
    else:
        record_result(ctx, _response(ctx, outcome, options))
    if delay is not None:
        note_delay(ctx, delay, "backoff")


def send(scope, request):
    """Send a request for a call or an attempt, perhaps another one than it has."""
    recorder.note_request(scope, request)


async def attempted(ctx, seconds=0.0, outcome=200, delay=None, **options):
    """Make an attempt of a call that takes so long, and wait after it."""
    child = ctx.derive(ctx.request, **options)
    await asyncio.sleep(seconds)
    end(child, outcome, delay)
    await asyncio.sleep(delay or 0.0)
    return child


def begin_body(ctx, outcome=200, **options):
    """Let a response arrive whose body is to come."""
    call, record = ctx.call, ctx.record
    record.was_sent = True
    response = _response(ctx, outcome, options)
    record.outcome = Answered(call.loop.time(), response, response.headers)


def end_body(ctx, length=0, cause=None):
    """Let a body end, or fail."""
    call, record = ctx.call, ctx.record
    recorder.note_length(record.outcome, length)
    if cause is None:
        recorder.record_end_of_body(call, record.outcome)
    else:
        fail_body(call, record.outcome, cause)


def _response(ctx, outcome, options):
    if isinstance(outcome, int):
        return new_response(ctx.request, outcome, **options)
    return outcome


def was_refused(ctx):
    """Say whether a circuit breaker has refused a call or an attempt."""
    return ctx.record.was_refused


def note_delay(ctx, seconds, source):
    """Note a wait after an attempt, or, of a call, one before its first attempt."""
    record = ctx.record
    record.delay, record.delay_source = seconds, source


def end_call(ctx, attempt=None, stop_reason=None):
    """Give the caller what the last attempt of a call came to, or its own outcome."""
    call = ctx.call
    if attempt is not None:
        call.outcome = attempt.record.outcome
    call.stop_reason = stop_reason
    recorder.end_call(call)


def leave(ctx, error, *, is_from_inside=False):
    """Let an exception leave a call; it may have left another one inside before."""
    annotate(ctx.call, error, keep=is_from_inside)


def drop_calls(log, number):
    """Let a log with calls inside have more of them, which are not kept."""
    log._record.calls_inside.dropped = number


def preview(ctx, sent="", received=b""):
    """Keep the beginning of what was sent and of a response that has arrived."""
    if sent:
        ctx.record.request_preview = sent
    if received:
        head = BodyHead("text/plain", 20)
        head.add(received)
        ctx.record.outcome.preview = head


def upload(ctx, length, seconds):
    """Let a body of so many bytes be sent, for so long."""
    sent = ctx.record.upload = Upload(length)
    sent.ended = None if seconds is None else ctx.log.started + seconds


def connect(ctx, *, reused=False, **parts):
    """Let a call or an attempt have waited for its connection: part by part."""
    record = ctx.record
    now = record.started
    times = record.connection = ConnectionTimes(now)
    for part, seconds in parts.items():
        times.wait_for(part, now)
        now += seconds
    times.wait_for(None, now)
    times.reused = reused


def connecting(*waits):
    """Let each request have waited for its connection; None where nothing is timed."""
    left = [*waits]

    @client_decorator
    async def wait(delegate, ctx, request):
        parts = left.pop(0)
        if parts is not None:
            connect(ctx, **parts)
        return await delegate.execute(ctx, request)

    return wait


def call_of(ctx):
    """Return the state of a call."""
    return ctx.call


def bodies_of(ctx):
    """Return the bodies that a call keeps, to send them again."""
    return ctx.call.own_resources().bodies


async def close_bodies(ctx):
    """Close the bodies of a call, as at its end."""
    await ctx.call.own_resources().close_bodies()


def growing(ctx):
    """Let another attempt begin each time that they are read."""

    class GrowingLog(RequestLog):
        __slots__ = ()

        @property
        def children(self):
            attempts = super().children
            ctx.derive(ctx.request)
            return attempts

    log = ctx.log
    log.__class__ = GrowingLog
    return log


async def report():
    """Make a call with calls on two more levels, which takes four seconds."""
    outer = function("fetch_report", timeout=10.0)
    first = outer.derive(outer.request, timeout=3.0)
    await _day(first.log)
    rows = function("Store.load_rows", first.log)
    attempt = rows.derive(rows.request)
    await _query(attempt.log, 500)
    end(attempt, ValueError("no rows"), delay=0.4)
    await asyncio.sleep(0.4)
    attempt = rows.derive(rows.request)
    await _query(attempt.log, 200)
    end(attempt)
    end_call(rows, attempt)
    end(first, LookupError("of yesterday"), delay=1.2)
    await asyncio.sleep(1.2)
    second = outer.derive(outer.request, timeout=3.0)
    await _day(second.log)
    end(second)
    end_call(outer, second)
    return outer.log


async def _day(inside):
    call = http("https://api.example.com/day?token=S3CR3T", inside)
    for status in 502, 200:
        attempt = call.derive(call.request)
        await asyncio.sleep(0.3)
        end(attempt, status, delay=0.3 if status == 502 else None)
        await asyncio.sleep(attempt.log.delay or 0.0)
    end_call(call, attempt)


async def _query(inside, status):
    call = http("https://user:S3CR3T@db.example.com/query", inside, "POST")
    await asyncio.sleep(0.1)
    end(call, status)


def race(after=None):
    """Return the part of a request in a race, which began so long after the first."""
    return Race(after)


def record_of(ctx):
    """Return the call of a context, and the record that counts for it."""
    return ctx.call, ctx.record


INFO = aiohttp.RequestInfo(
    yarl.URL("http://example.com/"),
    "GET",
    CIMultiDictProxy(CIMultiDict()),
    yarl.URL("/"),
)


def raised(status, headers=None, kind=aiohttp.ClientResponseError):
    """Make an exception as aiohttp does for a status."""
    given = headers
    return kind(INFO, (), status=status, headers=given)


@client_decorator
async def raising(delegate, ctx, request):
    """Raise for each status of 400 and above, as middlewares of many clients do."""
    response = await delegate.execute(ctx, request)
    response.raise_for_status()
    return response
