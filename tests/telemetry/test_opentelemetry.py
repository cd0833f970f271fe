"""Spans and metrics of calls, against the tables of the semantic conventions."""

import asyncio
from datetime import UTC, datetime

import aiohttp
import pytest
from calls import begin, end
from chains import Always, after, chain, log_of_cancelled, retrying, session, twice
from heard import URL, Heard, Row, attributes_of, check, get, seconds, traced
from opentelemetry import context as contexts
from opentelemetry.trace import SpanKind, StatusCode

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RetryingClient,
    RetryStrategy,
    client_decorator,
    new_response,
)
from aioretry_smithy.opentelemetry import TracingClient
from aioretry_smithy.smithy import AdaptiveRetryStrategy

pytest.importorskip("opentelemetry")
from opentelemetry.context import Context

from aioretry_smithy._telemetry.spans import trace_body

HTTP_CLIENT_SPAN = {
    "http.request.method": Row(str, "required"),
    "server.address": Row(str, "required"),
    "server.port": Row(int, "required"),
    "url.full": Row(str, "required"),
    "error.type": Row(str, "where it failed"),
    "http.request.method_original": Row(str, "where the method is _OTHER"),
    "http.response.status_code": Row(int, "where there is a response"),
    "http.request.resend_count": Row(int, "where it was sent before"),
    "network.protocol.version": Row(str, "recommended"),
    # The connection is often given back before anybody could ask for its other end;
    # where it goes to is known of endpoints with an address alone.
    "network.peer.address": Row(str, "recommended, not made"),
    "network.peer.port": Row(int, "recommended, not made"),
}


"""https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-client-span"""


def check_attempt(span, *, status=None, error=None, resent=0):
    """Hold the span of an attempt against the convention, and what came of it."""
    attributes = attributes_of(span)
    is_unsent = error == "aioretry_smithy.FailFastError"
    assert is_unsent is (attributes.pop("aioretry_smithy.sent", True) is False)
    check(
        attributes,
        HTTP_CLIENT_SPAN,
        failed=error is not None,
        answered=status is not None,
        resent=bool(resent),
    )

    assert SpanKind.CLIENT is span.kind
    assert status == attributes.get("http.response.status_code")
    assert error == attributes.get("error.type")
    assert resent == attributes.get("http.request.resend_count", 0)
    expected = StatusCode.UNSET if error is None else StatusCode.ERROR
    assert expected is span.status.status_code


async def test_success(heard):
    """One attempt and its call, by the table and to the last attribute."""
    await get(traced(heard, [after(0.25, 200)]))

    (attempt,) = heard.attempts
    check_attempt(attempt, status=200)
    assert "GET" == attempt.name
    assert {
        "http.request.method": "GET",
        "server.address": "api.example.com",
        "server.port": 443,
        "url.full": URL,
        "http.response.status_code": 200,
        "network.protocol.version": "1.1",
    } == attributes_of(attempt)
    assert () == attempt.events
    assert 0.25 == seconds(attempt)
    scope = attempt.instrumentation_scope
    assert "aioretry_smithy" == scope.name
    assert "https://opentelemetry.io/schemas/1.23.0" == scope.schema_url
    assert "call GET" == heard.call.name
    assert {
        "server.address": "api.example.com",
        "server.port": 443,
        "aioretry_smithy.attempts": 1,
    } == attributes_of(heard.call)
    assert StatusCode.UNSET is heard.call.status.status_code
    assert () == heard.call.events


async def test_call_whose_answer_was_wanted_again_is_an_error(heard):
    """An error inside a 200 has no status that could tell; why it stopped does."""
    tracing = heard.decorator()
    again = retrying(Always(), max_total_attempts=2)
    await get(chain([200, 200], tracing, again, tracing))

    assert {None} == {span.attributes.get("error.type") for span in heard.attempts}
    assert "max_total_attempts" == heard.call.attributes["error.type"]
    assert StatusCode.ERROR is heard.call.status.status_code
    (point,) = heard.points("aioretry_smithy.call.duration")
    assert "max_total_attempts" == point[0]["error.type"]


async def test_call_that_a_fallback_answers_is_no_error(heard):
    """The reason for the end of its retries stays."""

    @client_decorator
    async def fall_back(delegate, ctx, request):
        (await delegate.execute(ctx, request)).close()
        return new_response(request, 200)

    tracing = heard.decorator()
    again = retrying(max_total_attempts=2)
    await get(chain([503, 503], tracing, again, fall_back, tracing))

    assert "max_total_attempts" == heard.call.attributes["aioretry_smithy.stop_reason"]
    assert "error.type" not in heard.call.attributes
    assert StatusCode.UNSET is heard.call.status.status_code


async def test_spans_have_the_ids_of_the_log(heard):
    """A span leads to the lines of its attempt or its call, and back."""
    log = await get(traced(heard, [503, 200]))

    ids = [span.attributes["aioretry_smithy.id"] for span in heard.spans()]
    assert [log.id, *(attempt.id for attempt in log.children)] == ids


async def test_retry(heard):
    """Attempts are children of their call, and waits are events of it."""
    await get(traced(heard, [after(0.125, 503), 503, 200]))

    first, second, third = heard.attempts
    check_attempt(first, status=503, error="503")
    check_attempt(second, status=503, error="503", resent=1)
    check_attempt(third, status=200, resent=2)
    call = heard.call
    assert {call.context.span_id} == {span.parent.span_id for span in heard.attempts}
    assert {call.context.trace_id} == {span.context.trace_id for span in heard.attempts}
    assert None is first.status.description
    assert () == first.events
    assert {
        "server.address": "api.example.com",
        "server.port": 443,
        "aioretry_smithy.attempts": 3,
    } == attributes_of(call)
    assert [
        ("aioretry_smithy.wait", 1, 0.5, "backoff", first.end_time),
        ("aioretry_smithy.wait", 2, 0.5, "backoff", second.end_time),
    ] == [
        (
            event.name,
            event.attributes["aioretry_smithy.attempt"],
            event.attributes["aioretry_smithy.delay"],
            event.attributes["aioretry_smithy.delay_source"],
            event.timestamp,
        )
        for event in call.events
    ]
    assert first.end_time + 500_000_000 == second.start_time
    assert 1.125 == seconds(call)


async def test_timeout(heard):
    """An attempt that runs out of time has an error and no status."""
    await get(traced(heard, [after(60, 200), 200], attempt_timeout=2.0))

    first, second = heard.attempts
    kind = "aioretry_smithy.AttemptTimeoutError"
    check_attempt(first, error=kind)
    check_attempt(second, status=200, resent=1)
    (event,) = first.events
    assert "exception" == event.name
    message = "attempt 1 had 2.000 s"
    assert {"exception.type": kind, "exception.message": message} == dict(
        event.attributes
    )
    assert first.end_time == event.timestamp
    assert f"AttemptTimeoutError: {message}" == first.status.description
    assert 2.0 == seconds(first)


class Stubborn(RetryStrategy):
    """Retries whatever is no success, an open circuit too."""

    backoff = Backoff.fixed(0.5)

    def should_retry(self, ctx, cause):
        return None if ctx.log.response_status == 200 else self.backoff


async def test_open_circuit(heard):
    """A refusal is an attempt that was not sent: it has no part in resending."""
    breaker = CircuitBreaker("orders", circuit_open_window=0.7)
    breaker.enter_state(CircuitState.OPEN)
    inside = CircuitBreakerClient.new_decorator(breaker)
    await get(traced(heard, [503, 200], inside, strategy=Stubborn()))

    refused, again, first, between, last = heard.attempts
    check_attempt(refused, error="aioretry_smithy.FailFastError")
    check_attempt(again, error="aioretry_smithy.FailFastError")
    check_attempt(first, status=503, error="503")
    check_attempt(between, error="aioretry_smithy.FailFastError", resent=1)
    check_attempt(last, status=200, resent=1)
    message = "circuit breaker 'orders' is open, next trial in 0.700 s"
    assert f"FailFastError: {message}" == refused.status.description
    assert message == refused.events[0].attributes["exception.message"]
    assert 5 == heard.call.attributes["aioretry_smithy.attempts"]
    assert 5 == heard.total("aioretry_smithy.attempts")
    assert 4 == heard.total("aioretry_smithy.retries")


@pytest.mark.parametrize(
    ("when", "attempts", "waits"),
    [(0.25, 1, 0), (1.25, 1, 1), (1.75, 2, 1)],
    ids=["first attempt", "wait", "second attempt"],
)
async def test_cancellation_by_the_caller(heard, when, attempts, waits):
    """A cancelled call has not failed: no status, no error, and it is over."""
    before = contexts.get_current()
    client = traced(heard, [after(1, 503), after(1, 200)]).build()
    await log_of_cancelled(client, when)

    assert before is contexts.get_current()
    last = heard.attempts[-1]
    assert attempts == len(heard.attempts)
    if attempts > waits:
        check_attempt(last, resent=attempts - 1)
        assert () == last.events
    call = heard.call
    assert StatusCode.UNSET is call.status.status_code
    assert "error.type" not in call.attributes
    assert "cancelled" == call.attributes["aioretry_smithy.stop_reason"]
    assert waits == len(call.events)
    assert when == seconds(call)
    if (waits, attempts) == (1, 1):
        # It was to last for 0.5 s, and lasted until the caller had enough.
        assert 0.25 == call.events[0].attributes["aioretry_smithy.delay"]
    ((attributes, _),) = heard.points("aioretry_smithy.call.duration")
    assert "error.type" not in attributes


async def test_unknown_method(heard):
    """An unknown method has its own attribute beside the one word for all."""
    await get(traced(heard, [200]), method="brew")

    (attempt,) = heard.attempts
    check_attempt(attempt, status=200)
    assert "HTTP" == attempt.name
    assert "call HTTP" == heard.call.name
    assert "_OTHER" == attempt.attributes["http.request.method"]
    assert "BREW" == attempt.attributes["http.request.method_original"]
    ((attributes, _),) = heard.points("http.client.request.duration")
    assert "_OTHER" == attributes["http.request.method"]


async def test_one_place_where_nothing_retries(heard):
    """Where nothing retries, the call is an attempt and nothing else."""
    await get(chain([200], heard.decorator()))

    assert [SpanKind.CLIENT] == [span.kind for span in heard.spans()]
    names = {"http.client.request.duration", "aioretry_smithy.attempts"}
    assert names == set(heard.metrics())


async def test_two_sends_in_one_attempt(heard):
    """A decorator that sends twice makes two spans, each with a start of its own."""

    @client_decorator
    async def refresh(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        if response.status != 401:
            return response
        await asyncio.sleep(1)
        return await delegate.execute(ctx, request)

    tracing = heard.decorator()
    answers = [after(0.25, 401), after(0.25, 503), 200]
    await get(chain(answers, tracing, refresh, retrying(), tracing))

    first, second, third = heard.attempts
    check_attempt(first, status=401, error="401")
    check_attempt(second, status=503, error="503", resent=1)
    check_attempt(third, status=200, resent=2)
    assert first.end_time + 1_000_000_000 == second.start_time
    assert [0.25, 0.25] == [seconds(first), seconds(second)]
    assert 2 == heard.call.attributes["aioretry_smithy.attempts"]
    assert 3 == heard.total("aioretry_smithy.attempts")


async def test_two_passes_through_the_retrying_client(heard):
    """Each pass is a call of its own where tracing stands between, waits and all."""
    await get(traced(heard, [503, 200, 503, 200]).decorator(twice))

    calls = heard.spans(SpanKind.INTERNAL)
    assert [2, 2] == [call.attributes["aioretry_smithy.attempts"] for call in calls]
    assert [[1], [3]] == [
        [event.attributes["aioretry_smithy.attempt"] for event in call.events]
        for call in calls
    ]
    assert [0, 1, 2, 3] == [
        span.attributes.get("http.request.resend_count", 0) for span in heard.attempts
    ]


def throttled(heard, *answers):
    """Build a session whose strategy makes its second call wait at once."""
    adaptive = RetryingClient.new_decorator(AdaptiveRetryStrategy())
    return session([429, 429, 200, *answers], adaptive, heard.decorator())


async def test_wait_before_the_first_attempt(heard):
    """The first wait of an adaptive strategy is a wait after attempt 0."""
    async with throttled(heard, 200) as client:
        for _ in range(2):
            async with client.get(URL):
                pass

    last = heard.spans(SpanKind.INTERNAL)[-1]
    (event,) = last.events
    assert 0 == event.attributes["aioretry_smithy.attempt"]
    assert "rate_limit" == event.attributes["aioretry_smithy.delay_source"]
    assert 0 < event.attributes["aioretry_smithy.delay"] <= seconds(last) + 1e-6
    assert last.start_time == pytest.approx(event.timestamp, abs=1000)


async def test_spans_are_of_the_time_of_the_log(heard):
    """A span begins when the log says that the call began."""
    log = await get(traced(heard, [200]))

    started = datetime.fromtimestamp(heard.call.start_time / 1e9, UTC)
    assert abs((started - log.request_started_at).total_seconds()) < 1e-5


@client_decorator
async def refuse(delegate, ctx, request):
    """Let no request pass."""
    raise aiohttp.ClientError("no")


@pytest.mark.parametrize(
    ("retries", "attempts"),
    [([retrying()], 0), ([], 1)],
    ids=["retried", "not retried"],
)
async def test_call_without_an_attempt(heard, retries, attempts):
    """A call that never reached the retrying client has no attempt, no stop reason."""
    tracing = heard.decorator()
    await get(chain([], tracing, *retries, refuse, tracing))

    attributes = heard.call.attributes
    assert attempts == attributes["aioretry_smithy.attempts"]
    assert "aioretry_smithy.stop_reason" not in attributes


async def test_call_cancelled_before_its_first_attempt(heard):
    """A call given up in the first wait has made no attempt."""
    async with throttled(heard) as client:
        await client.get(URL)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await client.get(URL)

    last = heard.spans(SpanKind.INTERNAL)[-1]
    assert 0 == last.attributes["aioretry_smithy.attempts"]
    (event,) = last.events
    assert last.start_time == pytest.approx(event.timestamp, abs=1000)


async def test_each_listener_hears_of_its_own(heard):
    """Two SDKs in one chain: each has all attempts and calls, and its own resends."""
    listeners = heard, Heard()
    decorators = [each.decorator() for each in listeners]
    await get(chain([503, 200], *decorators, retrying(), *decorators))

    for each in listeners:
        first, second = each.attempts
        check_attempt(first, status=503, error="503")
        check_attempt(second, status=200, resent=1)
        assert 2 == each.call.attributes["aioretry_smithy.attempts"]
        assert 2 == each.total("aioretry_smithy.attempts")
        assert 1 == each.total("aioretry_smithy.retries")


@pytest.mark.parametrize("outer", ["the same", "made again", "subclass"])
async def test_same_providers_are_the_same_listener(heard, outer):
    """However the two decorators were made, the outer one sees the call."""

    class Ours(TracingClient):
        """Has something to add."""

    inner = heard.decorator()
    decorators = {
        "the same": inner,
        "made again": heard.decorator(),
        "subclass": Ours.new_decorator(heard.tracer_provider, heard.meter_provider),
    }
    await get(chain([200], inner, decorators[outer]))

    assert 1 == len(heard.attempts)
    assert "call GET" == heard.call.name


class BrokenTracer:
    def start_span(self, *arguments, **options):
        raise RuntimeError("no spans today")


async def test_tracer_that_fails_is_reported(caplog):
    """It breaks neither the call nor what else waits for the end of the body."""
    ctx = begin()
    trace_body(BrokenTracer(), Context(), ctx.call, ctx.record)
    end(ctx, TimeoutError())

    assert ["RuntimeError"] == [
        record.exc_info[0].__name__ for record in caplog.records
    ]
