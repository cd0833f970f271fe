"""Where a failure comes from, by the frames that it came through."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioretry_smithy import (
    CircuitBreaker,
    ClientRequestContext,
    FailFastError,
    HttpRequest,
    RetrySafety,
    UnprocessedRequestError,
    is_unprocessed,
    new_response,
    retry_safety,
)
from aioretry_smithy._call.origin import judge_origin, waited_in_pool
from aioretry_smithy._call.recording import record_response

CALL = "calls.pop(0)(*([calls] if calls else []))"


def function(module, name, body):
    """Make a function that looks as if it stood in another module."""
    variables = {"__name__": module}
    exec(f"def {name}(calls):\n    {body}", variables)
    return variables[name]


def raised(cause, *functions):
    """Raise an exception in functions that call each other, and catch it."""
    future = asyncio.get_running_loop().create_future()
    future.set_exception(cause)
    # Written in C, so it adds no frame of its own.
    calls = [*functions, future.result]
    with pytest.raises(type(cause)):
        calls.pop(0)(*([calls] if calls else []))
    return cause


def new_log():
    return ClientRequestContext(HttpRequest("GET", "http://localhost/")).log


REQUEST = function("aiohttp.client", "_request", f"history = (); req = None; {CALL}")
SENDING = function(
    "aiohttp.client", "_request", f"history = (); req = _connect = 1; {CALL}"
)
RENAMED = function("aiohttp.client", "_request", f"hops = (); req = 1; {CALL}")
TIMER = function("aiohttp.helpers", "__exit__", CALL)
BODY = [
    SENDING,
    function("aiohttp.client_reqrep", "write_bytes", CALL),
    function("aiohttp.payload", "write_with_length", CALL),
]
WIRE = function("aiohttp.http_writer", "write", CALL)
OTHERS = function("shop.orders", "read", CALL)


@pytest.mark.parametrize(
    ("functions", "safety"),
    [
        ([], RetrySafety.MAYBE),
        ([REQUEST], RetrySafety.NO),
        ([REQUEST, OTHERS], RetrySafety.NO),
        ([REQUEST, TIMER], RetrySafety.MAYBE),
        ([SENDING], RetrySafety.MAYBE),
        (BODY, RetrySafety.NO),
        ([*BODY, OTHERS], RetrySafety.NO),
        ([*BODY, OTHERS, WIRE], RetrySafety.NO),
        ([*BODY, WIRE], RetrySafety.MAYBE),
        (BODY[:2], RetrySafety.MAYBE),
    ],
)
async def test_frames_tell_the_caller_from_the_transport(functions, safety):
    """A timeout says by itself nothing about whose it is."""
    cause = raised(TimeoutError(), *functions)
    judge_origin(cause, new_log())

    assert safety is retry_safety(cause)


async def test_what_aiohttp_renames_is_taken_for_a_redirect():
    """The safe side: a POST does not go out again."""
    cause = raised(aiohttp.ConnectionTimeoutError(), RENAMED)
    judge_origin(cause, new_log())

    assert not is_unprocessed(cause)


@pytest.mark.parametrize(
    ("earlier", "unprocessed"),
    [
        (None, True),
        (200, False),
        (TimeoutError(), False),
        (UnprocessedRequestError(), True),
        (FailFastError(CircuitBreaker("x")), True),
    ],
)
async def test_an_earlier_send_in_the_same_attempt_counts(earlier, unprocessed):
    """Refused twice is unprocessed; what the server may have seen once is not."""
    log, cause = new_log(), UnprocessedRequestError("no place")
    if isinstance(earlier, int):
        record_response(log, new_response(log.request, earlier))
    elif earlier is not None:
        log._record_failure(earlier)
    judge_origin(cause, log)

    assert unprocessed is is_unprocessed(cause)


async def test_the_failure_itself_is_no_earlier_send():
    """It may have been recorded before it is judged."""
    log, cause = new_log(), UnprocessedRequestError("no place")
    log._record_failure(cause)
    judge_origin(cause, log)

    assert is_unprocessed(cause)


def test_failure_that_is_its_own_cause_waited_nowhere():
    """A chain without an end is not followed for ever."""
    cause = TimeoutError()
    cause.__cause__ = cause

    assert False is waited_in_pool(cause)


def test_wait_of_an_earlier_request_is_not_this_one_s():
    """The context may be the failure of another request, which went elsewhere."""
    code = compile(
        "def _wait_for_available_connection(): raise KeyError", "connector", "exec"
    )
    module = {"__name__": "aiohttp.connector"}
    exec(code, module)
    with pytest.raises(KeyError) as earlier:
        module["_wait_for_available_connection"]()
    later = TimeoutError()
    later.__context__ = earlier.value

    assert waited_in_pool(earlier.value)
    assert not waited_in_pool(later)
