"""Trackers of uploads: they end with the call, also where aiohttp never began it."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import connected, retrying, session
from fake_responses import pausing
from races import guarded

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RetryStrategy,
    client_decorator,
    decorate,
    new_response,
    undecorate,
)
from aioretry_smithy.testing import (
    FaultInjectingClient,
    InjectedFault,
    ScriptedTransport,
)

pytestmark = pytest.mark.skipif(
    not hasattr(aiohttp, "UploadTracker"), reason="a newer aiohttp"
)


@client_decorator
async def answer_instead(delegate, ctx, request):
    """Answer as a cache does."""
    return new_response(request, 203)


@client_decorator
async def fall_back(delegate, ctx, request):
    """Answer where the call has failed."""
    try:
        return await delegate.execute(ctx, request)
    except aiohttp.ClientError:
        return new_response(request, 203)


@client_decorator
async def break_down(delegate, ctx, request):
    """Have a bug."""
    raise LookupError


@client_decorator
async def track_no_more(delegate, ctx, request):
    """Send another request in place of the caller's."""
    return await delegate.execute(ctx, request.replace(upload_tracker=None))


async def no_token():
    raise LookupError


def open_circuit(**settings):
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return guarded(breaker, **settings)


def too_dear():
    limit = RateLimit(1, cost=lambda ctx, request: 5.0)
    return RateLimitingClient.new_decorator(limit)


def injecting(fault):
    return FaultInjectingClient.new_decorator(fault)


AGAIN = retrying(RetryStrategy.on_server_error_status(), max_total_attempts=3)
WAYS = {
    "circuit": lambda: [open_circuit()],
    "circuit, retried": lambda: [open_circuit(), AGAIN],
    "circuit, fallback": lambda: [open_circuit(), fall_back],
    "circuit, hedged": lambda: [open_circuit(), HedgingClient.new_decorator(0.1)],
    "rate": lambda: [too_dear()],
    "cache": lambda: [answer_instead],
    "cache, retried": lambda: [answer_instead, AGAIN],
    "bug": lambda: [break_down],
    "token": lambda: [RefreshingClient.new_decorator(no_token, hosts=["http://h"])],
    "injected status": lambda: [injecting(InjectedFault.status(503))],
    "injected failure": lambda: [injecting(InjectedFault.error(ConnectionError))],
    "injected, retried": lambda: [injecting(InjectedFault.status(503)), AGAIN],
    "script": lambda: [ScriptedTransport([200])],
    "script, retried": lambda: [ScriptedTransport([503, 503, 200]), AGAIN],
    "another request": lambda: [ScriptedTransport([200]), track_no_more],
    "deadline": lambda: [pausing(9.0)],
}


async def outcome_of(tracker):
    """Wait for the end of an upload."""
    async with asyncio.timeout(1.0):
        await tracker.upload_complete


async def put(client, tracker, **options):
    return await client.put("/orders", data=b"1", upload_tracker=tracker, **options)


@pytest.mark.parametrize("decorators", WAYS.values(), ids=WAYS)
async def test_upload_that_never_began_was_aborted(decorators):
    """Whoever waits for its end hears of it when the call ends."""
    tracker = aiohttp.UploadTracker()
    client = connected("http://h", *decorators(), timeout=aiohttp.ClientTimeout(1.0))
    async with client:
        with suppress(aiohttp.ClientError, OSError, LookupError):
            await put(client, tracker)

    with pytest.raises(aiohttp.UploadAbortedError):
        await outcome_of(tracker)


async def test_call_that_is_cancelled_in_a_queue():
    """It ends as soon as the caller gives up."""
    tracker = aiohttp.UploadTracker()
    async with connected("http://h", pausing(9.0)) as client:
        call = asyncio.create_task(put(client, tracker))
        await asyncio.sleep(1.0)
        assert not tracker.upload_complete.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with pytest.raises(aiohttp.UploadAbortedError):
        await outcome_of(tracker)


async def test_tracker_of_a_call_that_ended_is_used_up():
    """As it is where aiohttp itself has ended the call."""
    tracker = aiohttp.UploadTracker()
    async with connected("http://h", answer_instead) as client:
        await put(client, tracker)
        undecorate(client)
        with pytest.raises(RuntimeError, match="already bound"):
            await put(client, tracker)


async def test_what_goes_out_after_the_call_is_not_tracked(wire):
    """A decorator may leave a request behind that a tracker must not break."""
    left = []

    @client_decorator
    async def answer_first(delegate, ctx, request):
        async def send_later():
            await asyncio.sleep(1.0)
            return await delegate.execute(ctx, request)

        left.append(asyncio.create_task(send_later()))
        return new_response(request, 203)

    tracker = aiohttp.UploadTracker()
    async with connected("http://h", answer_first) as client:
        await put(client, tracker)
        response = await left[0]

    assert 200 == response.status
    assert [None] == [options["upload_tracker"] for options in wire.options]


async def test_tracker_of_another_call_is_left_alone(monkeypatch):
    """A mistake of the caller's does not end the upload that it belongs to."""
    tracker = aiohttp.UploadTracker()
    async with aiohttp.ClientSession("http://h") as plain:
        connecting = asyncio.Event()

        async def connect(*arguments, **options):
            connecting.set()
            await asyncio.sleep(9.0)
            raise AssertionError

        monkeypatch.setattr(plain.connector, "connect", connect)
        upload = asyncio.create_task(put(plain, tracker))
        await connecting.wait()
        async with connected("http://h", answer_instead) as client:
            await put(client, tracker)
        assert not tracker.upload_complete.done()
        upload.cancel()
        with pytest.raises(asyncio.CancelledError):
            await upload

    with pytest.raises(aiohttp.UploadAbortedError):
        await outcome_of(tracker)


async def test_what_is_no_tracker_is_passed_on(wire):
    """A mock's object need not have anything."""
    async with session([200], answer_instead) as client:
        response = await put(client, object())

    assert 203 == response.status


async def test_call_of_a_session_that_is_gone():
    """Its function may outlive the session."""
    tracker = aiohttp.UploadTracker()
    client = decorate(aiohttp.ClientSession("http://h"), answer_instead)
    request = vars(client)["_request"]
    await client.close()
    del client
    with pytest.raises(RuntimeError, match="Session is closed"):
        await request("PUT", "/", upload_tracker=tracker)

    with pytest.raises(aiohttp.UploadAbortedError):
        await outcome_of(tracker)
