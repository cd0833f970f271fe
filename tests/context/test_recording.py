"""Responses in the log, with their bodies and what went wrong; places come back."""

import asyncio

import aiohttp
import pytest
from aiohttp.helpers import TimerContext
from calls import REQUEST, begin, begin_body, call_of, end_call, function
from chains import URL
from fake_responses import FakeResponse, FakeStream, FakeTimer, unending

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    client_decorator,
    decorate,
    new_response,
)
from aioretry_smithy._context.recording import record_result, watch_body
from aioretry_smithy.testing import ScriptedTransport


async def test_response_is_recorded_once():
    """Every client on the way may show a response to the log."""
    ctx = begin()
    log = ctx.log
    response = new_response(REQUEST)
    record_result(ctx, response)
    await asyncio.sleep(1.0)
    record_result(ctx, response)
    assert 0.0 == log.duration
    record_result(ctx, new_response(REQUEST, 201))

    assert (1.0, 201) == (log.duration, log.response_status)


@pytest.mark.parametrize(
    ("stream", "fired", "cause"),
    [
        (FakeStream(), False, type(None)),
        (FakeStream(), True, type(None)),
        (FakeStream(1), True, TimeoutError),
        (FakeStream(1, error=aiohttp.ClientPayloadError()), False, None),
        (FakeStream(1, error=aiohttp.SocketTimeoutError()), False, None),
        (FakeStream(1, error=aiohttp.ClientConnectionError()), False, type(None)),
        (FakeStream(1), False, type(None)),
    ],
)
async def test_end_of_a_body_has_a_cause_if_it_failed(stream, fired, cause):
    """A body read whole and one that was left early end without a cause."""
    ctx = begin()
    log = ctx.log
    stream._timer = FakeTimer(fired)
    response = FakeResponse(stream)
    record_result(ctx, response)
    assert not log.is_complete
    await asyncio.sleep(1.0)
    stream.total_bytes = 5
    response.connection.give_back()

    assert (1.0, 5) == (log.total_duration, log.response_length)
    if cause is None:
        assert stream.error is log.response_cause
    else:
        assert isinstance(log.response_cause, cause)


async def test_other_protocols_are_complete_at_the_headers():
    """A web socket's traffic is no body."""
    ctx = begin()
    log = ctx.log
    response = FakeResponse(FakeStream(1), status=101)
    record_result(ctx, response)

    assert log.is_complete
    assert [] == response.connection.callbacks


async def test_body_of_a_response_that_was_replaced_ends_unseen():
    """A decorator has sent twice, and ends the first response after the second."""
    ctx = begin()
    first = FakeResponse(FakeStream())
    record_result(ctx, first)
    record_result(ctx, new_response(REQUEST, 201, body=b"abc"))
    await asyncio.sleep(1.0)
    first.connection.give_back()

    assert (0.0, 3) == (ctx.log.total_duration, ctx.log.response_length)


class Forgetful(DecoratingClient):
    async def execute(self, ctx, request):
        return self.delegate.execute(ctx, request)


class Promise:
    def __await__(self):
        raise AssertionError
        yield


async def hang():
    await asyncio.sleep(9.0)


NONE = "response: None (expected: what the delegate returned"
EXPECTED = "a response: return await delegate.execute(ctx, request)"


@pytest.mark.parametrize(
    ("make", "source", "message"),
    [
        (lambda: None, None, f"{NONE})"),
        (lambda: None, Forgetful, f"{NONE}; Forgetful returned nothing)"),
        (hang, Forgetful, f"Forgetful returned a coroutine (expected: {EXPECTED})"),
        (Promise, Forgetful, f"Forgetful returned a Promise (expected: {EXPECTED})"),
        (dict, Forgetful, f"Forgetful returned a dict (expected: {EXPECTED})"),
        (bytes, Forgetful, f"Forgetful returned a bytes (expected: {EXPECTED})"),
        (object, Forgetful, f"Forgetful returned a object (expected: {EXPECTED})"),
        (hang, None, f"the transport returned a coroutine (expected: {EXPECTED})"),
        (
            lambda: asyncio.create_task(hang()),
            Forgetful,
            f"Forgetful returned a Task (expected: {EXPECTED})",
        ),
    ],
)
async def test_what_is_no_response_is_told(make, source, message):
    """Mostly an ``await`` was forgotten; what that began does not go on."""
    with pytest.raises(TypeError) as caught:
        record_result(begin(), make(), source)
    await asyncio.sleep(0)

    assert message == str(caught.value)


async def test_function_may_return_a_coroutine_but_not_that_of_a_client():
    """Any value is a result, and only the chain has clients."""
    ctx = function("f")
    forgetful = Forgetful(ScriptedTransport([]))
    record_result(ctx, awaited := hang())
    awaited.close()
    with pytest.raises(TypeError, match=r"^Forgetful returned a coroutine"):
        record_result(ctx, forgetful.delegate.execute(ctx, REQUEST), Forgetful)

    assert ctx.log.is_complete


def watched(ctx, start=b""):
    """Let a response arrive, and watch its body; return that and aiohttp's timer."""
    response = unending(REQUEST, start=start)
    timer = TimerContext(asyncio.get_running_loop())
    response.content._timer = timer
    begin_body(ctx, response)
    call = call_of(ctx)
    watch_body(call, response)
    return response.content, timer


@pytest.mark.parametrize("start", [b"", b"ab"], ids=["none", "some"])
@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["before", "meanwhile"])
async def test_limit_that_a_body_runs_into_is_named(start, seconds):
    """Whether time is up before it is read or while it is waited for."""
    ctx = begin(timeout=1.0)
    content, timer = watched(ctx, start)
    asyncio.get_running_loop().call_at(1.0, timer.timeout)
    await asyncio.sleep(2.0 - seconds)
    with pytest.raises(ResponseTimeoutError) as caught:
        await content.read()

    assert "the call had 1.000 s, which passed while its body was read" == str(
        caught.value
    )
    assert caught.value is ctx.log.response_cause


async def test_limit_of_aiohttp_s_own_stays_what_it_is():
    """A decorator has set one that is shorter than that of the call."""
    ctx = begin(timeout=5.0)
    content, timer = watched(ctx)
    asyncio.get_running_loop().call_later(1.0, timer.timeout)
    with pytest.raises(TimeoutError) as caught:
        await content.read()

    assert TimeoutError is type(caught.value)
    assert (1.0, caught.value) == (ctx.log.total_duration, ctx.log.response_cause)


async def test_length_of_a_body_that_breaks_off_is_known_at_once():
    """The log has it with the failure, before anybody has released the response."""
    ctx = begin()
    content, _ = watched(ctx, b"ab")
    error = aiohttp.ClientPayloadError()
    asyncio.get_running_loop().call_later(1.0, content.set_exception, error)
    lengths = []
    call_of(ctx).wait_with(lambda: lengths.append(ctx.log.response_length))
    with pytest.raises(aiohttp.ClientPayloadError):
        await content.read()

    assert [2] == lengths
    assert (1.0, error) == (ctx.log.total_duration, ctx.log.response_cause)


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["before", "meanwhile"])
async def test_length_of_a_body_that_runs_out_of_time_is_known_at_once(seconds):
    """Whatever the timer was asked for when it found out."""
    ctx = begin(timeout=1.0)
    content, timer = watched(ctx, b"ab")
    asyncio.get_running_loop().call_at(1.0, timer.timeout)
    await asyncio.sleep(2.0 - seconds)
    with pytest.raises(ResponseTimeoutError):
        await content.read()

    assert 2 == ctx.log.response_length


async def test_failure_after_the_call_has_its_log():
    """Only the one who reads the body meets it."""
    ctx = begin()
    content, _ = watched(ctx)
    end_call(ctx)
    error = aiohttp.ClientPayloadError()
    asyncio.get_running_loop().call_later(1.0, content.set_exception, error)
    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await content.read()

    assert ctx.log is RequestLog.of(caught.value)
    assert error is ctx.log.response_cause


async def test_error_of_a_stream_leads_to_the_log():
    """Also one that passes through nothing of ours."""
    ctx = begin()
    content, _ = watched(ctx, b"ab")
    content.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await content.readexactly(5)

    assert ctx.log is RequestLog.of(caught.value)
    assert ctx.log.response_cause is None


async def test_body_that_failed_before_it_was_read_is_noticed_then():
    """No wait for it has met the failure, but its error leads to the log."""
    ctx = begin()
    content, _ = watched(ctx)
    error = aiohttp.ClientPayloadError()
    content.set_exception(error)
    with pytest.raises(aiohttp.ClientPayloadError):
        await content.read()
    before = ctx.log.response_cause

    assert ctx.log is RequestLog.of(error)
    assert (None, error) == (before, ctx.log.response_cause)


async def test_error_of_a_body_that_nobody_watches_has_no_log():
    """Such as that of a plain session."""
    content = unending(REQUEST).content
    content.feed_eof()
    with pytest.raises(asyncio.IncompleteReadError) as caught:
        await content.readexactly(5)

    assert RequestLog.of(caught.value, None) is None


async def test_stream_of_another_class_is_left_alone():
    """It need not ask a timer."""
    call = call_of(begin())
    response = FakeResponse(stream := FakeStream())
    before = stream._timer
    watch_body(call, response)

    assert before is stream._timer


@pytest.mark.parametrize("made", [lambda: None, asyncio.Future], ids=["None", "future"])
async def test_place_is_left_after_what_is_no_response(made):
    """A mock of the session's method returns nothing that could be closed."""
    limit = ConcurrencyLimit.fixed(1)

    async def send(*args, **options):
        return made()

    async with aiohttp.ClientSession() as client:
        client._request = send
        decorate(client, ConcurrencyLimitingClient.new_decorator(limit))
        with pytest.raises(TypeError, match="expected"):
            await client.get(URL)

    assert 0 == limit.in_flight


async def test_place_is_left_where_closing_fails():
    """The error of a strategy goes to the caller, whatever closing raises."""
    limit = ConcurrencyLimit.fixed(1)

    class Broken(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise LookupError

    def refuse():
        raise ValueError

    @client_decorator
    async def answer(delegate, ctx, request):
        response = new_response(request, 200)
        response.close = refuse
        return response

    async with aiohttp.ClientSession() as client:
        decorate(
            client,
            answer,
            CircuitBreakerClient.new_decorator(CircuitBreaker("orders"), Broken()),
            ConcurrencyLimitingClient.new_decorator(limit),
        )
        with pytest.raises(LookupError):
            await client.get(URL)

    assert 0 == limit.in_flight
