"""Spans and metrics of the calls of functions."""

import asyncio
from itertools import pairwise

import pytest
from chains import retrying, session
from functions import lookups, observed
from heard import attributes_of
from opentelemetry.trace import SpanKind, StatusCode

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerRpcClient,
    CircuitState,
    SessionBuilder,
    rpc,
)
from aioretry_smithy.opentelemetry import TracingRpcClient

URL = "https://api.example.com/orders"
SECRET = "S3CR3T"


def tracing_of(heard):
    return TracingRpcClient.new_decorator(heard.tracer_provider, heard.meter_provider)


def traced(heard, *inside, **settings):
    return observed(tracing_of(heard), *inside, **settings)


def of(spans, name):
    return [span for span in spans if span.name == name]


def parent_of(span):
    return span.parent and span.parent.span_id


async def test_call_and_attempts_are_internal_spans(heard):
    """One around all, and one for each attempt, to the last attribute."""
    assert 7 == await traced(heard)(lookups(LookupError("none"), 7))()
    spans = heard.spans(SpanKind.INTERNAL)
    call, failed, answered = of(spans, "call fetch") + of(spans, "fetch")

    assert 3 == len(heard.spans())
    assert {
        "aioretry_smithy.name": "fetch",
        "aioretry_smithy.attempts": 2,
    } == attributes_of(call)
    assert {
        "aioretry_smithy.name": "fetch",
        "aioretry_smithy.attempt": 1,
        "error.type": "LookupError",
    } == attributes_of(failed)
    assert {
        "aioretry_smithy.name": "fetch",
        "aioretry_smithy.attempt": 2,
    } == attributes_of(answered)
    assert [None, call.context.span_id, call.context.span_id] == [
        parent_of(span) for span in (call, failed, answered)
    ]
    assert (StatusCode.ERROR, StatusCode.UNSET) == (
        failed.status.status_code,
        answered.status.status_code,
    )
    assert ["aioretry_smithy.wait"] == [event.name for event in call.events]
    assert 1_500_000_000 == call.end_time - call.start_time


async def test_calls_inside_are_within_the_span_of_their_attempt(heard):
    """HTTP calls and other functions, at any depth."""
    tracing = heard.decorator()
    client = session([503, 200], tracing, retrying(0.5), tracing)

    @traced(heard, name="load")
    async def load():
        async with client.get(URL):
            pass

    @traced(heard, name="fetch")
    async def fetch():
        await asyncio.sleep(0.1)
        await load()

    async with client:
        await fetch()
    names = ["call fetch", "fetch", "call load", "load", "call GET", "GET"]
    chain = [of(heard.spans(), name)[0] for name in names]

    assert [None, *(span.context.span_id for span in chain[:-1])] == [
        parent_of(span) for span in chain
    ]
    assert 2 == len(heard.attempts)
    for outer, inner in pairwise(chain):
        assert outer.start_time <= inner.start_time <= inner.end_time <= outer.end_time
    assert 100_000_000 == chain[2].start_time - chain[0].start_time


def test_spans_fit_whatever_the_clock_of_the_machine_does(heard, monkeypatch):
    """The times of a call inside count from the start of the call around it."""
    now = iter([1_000.0, 0.0])
    monkeypatch.setattr("time.time", lambda: next(now))

    @traced(heard, name="outer")
    async def outer():
        await traced(heard, name="inner")(lookups(1, seconds=0.0))()

    # A virtual clock is never set.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(outer())

    inner = of(heard.spans(), "call inner")[0]
    assert 1_000_000_000_000 <= inner.start_time < 1_060_000_000_000


async def test_call_without_retries_is_an_attempt(heard):
    """One place in the chain is enough for it."""
    await rpc(tracing_of(heard), name="fetch")(lookups(1))()
    (span,) = heard.spans()

    assert "fetch" == span.name
    assert 1 == span.attributes["aioretry_smithy.attempt"]


async def test_failed_call_says_why_it_stopped(heard):
    """As a call of HTTP does."""
    with pytest.raises(LookupError):
        await traced(heard, max_total_attempts=1)(lookups(LookupError()))()
    call = of(heard.spans(), "call fetch")[0]

    assert "max_total_attempts" == call.attributes["aioretry_smithy.stop_reason"]
    assert "LookupError" == call.attributes["error.type"]


async def test_call_that_a_circuit_breaker_refuses_was_not_sent(heard):
    """The function was never called."""
    breaker = CircuitBreaker("reports")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    guard = CircuitBreakerRpcClient.new_decorator(breaker)
    await asyncio.gather(traced(heard, guard)(lookups(1))(), return_exceptions=True)
    attempt = of(heard.spans(), "fetch")[0]

    assert attempt.attributes["aioretry_smithy.sent"] is False
    assert "aioretry_smithy.FailFastError" == attempt.attributes["error.type"]


async def test_metrics_tell_calls_by_their_names(heard):
    """Their names are apart from those of HTTP, whose sums would count twice."""
    await traced(heard)(lookups(LookupError("none"), 7))()
    name, error = {"aioretry_smithy.name": "fetch"}, {"error.type": "LookupError"}

    assert [({**name, **error}, 1), (name, 1)] == heard.points(
        "aioretry_smithy.rpc.attempts"
    )
    assert [(name, 1)] == heard.points("aioretry_smithy.rpc.retries")
    assert [({**name, **error}, 0.25), (name, 0.25)] == heard.points(
        "aioretry_smithy.rpc.attempt.duration"
    )
    assert [(name, 1.5)] == heard.points("aioretry_smithy.rpc.call.duration")
    assert 4 == len(heard.metrics())


@pytest.mark.slow
async def test_names_in_metrics_are_bounded(heard):
    """A program that makes up names does not fill the memory; spans have them."""
    for number in range(1026):
        await rpc(tracing_of(heard), name=f"fetch {number}")(lookups(1, seconds=0))()
    points = heard.points("aioretry_smithy.rpc.attempts")

    assert 1025 == len(points)
    assert ({"aioretry_smithy.name": "_OTHER"}, 2) == points[-1]
    assert "fetch 1025" == heard.spans()[-1].name


async def test_secrets_are_hidden(heard):
    """In names, and in failures of calls inside that another chain would show."""
    name = f"http://user:{SECRET}@host/"
    with pytest.raises(LookupError):
        await traced(heard, name=name, max_total_attempts=1)(
            lookups(LookupError(name))
        )()
    told = [span.to_json() for span in heard.spans()]
    told += [str(heard.points(metric)) for metric in heard.metrics()]

    assert [] == [text for text in told if SECRET in text]
    assert "****" in told[0]


@pytest.mark.parametrize(
    ("decorate", "expected"),
    [
        (
            lambda heard: rpc(heard.decorator())(lookups()),
            r"TracingClient.*for functions.*TracingRpcClient",
        ),
        (
            lambda heard: SessionBuilder().decorator(tracing_of(heard)).build(),
            r"TracingRpcClient.*for sessions.*TracingClient",
        ),
    ],
    ids=["function", "session"],
)
async def test_each_kind_of_chain_has_its_class(heard, decorate, expected):
    """The refusal says which class to take."""
    with pytest.raises(ValueError, match=expected):
        decorate(heard)
