"""Spans and metrics of functions, hedges, waits for connections and endpoints."""

import asyncio
from itertools import pairwise

import pytest
from calls import connecting
from chains import after, retrying, session
from functions import lookups, observed
from heard import attributes_of
from opentelemetry.trace import SpanKind, StatusCode
from races import hedging, race

from aioretry_smithy import rpc
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


HEDGE = "aioretry_smithy.hedge"


SUPERSEDED = "aioretry_smithy.superseded"


def seconds(heard, span):
    """Return when a span of an attempt began and ended, from the start of the call."""
    start = heard.call.start_time
    return (span.start_time - start) / 1e9, (span.end_time - start) / 1e9


async def test_spans_of_a_race_overlap(heard):
    """The hedge says what it is, and the one that lost what became of it."""
    tracing = heard.decorator()
    chain = tracing, hedging(0.5), retrying(0.25), tracing
    await race([after(9.0, 200), after(0.25, 200)], *chain)

    first, hedge = heard.attempts
    assert [(0.0, 0.75), (0.5, 0.75)] == [seconds(heard, s) for s in (first, hedge)]
    assert (None, True) == (first.attributes.get(HEDGE), hedge.attributes.get(HEDGE))
    assert (True, None) == tuple(x.attributes.get(SUPERSEDED) for x in (first, hedge))
    assert StatusCode.UNSET is first.status.status_code
    assert "error.type" not in first.attributes
    assert 1 == hedge.attributes["http.request.resend_count"]
    assert 2 == heard.call.attributes["aioretry_smithy.attempts"]
    assert {heard.call.context.span_id} == {s.parent.span_id for s in heard.attempts}


async def test_a_wait_ends_where_the_next_race_begins(heard):
    """Not where its hedge was sent."""
    tracing = heard.decorator()
    chain = tracing, hedging(0.5), retrying(0.25), tracing
    await race([after(1.0, 503), after(0.25, 502), after(0.1, 200)], *chain)

    (wait,) = heard.call.events
    assert 1 == wait.attributes["aioretry_smithy.attempt"]
    assert 1.0 == (wait.timestamp - heard.call.start_time) / 1e9


NAME = "aioretry_smithy.connection.wait_time"


CONNECTION = "aioretry_smithy.connection."


def connection_of(span):
    """Return the attributes of a span about its connection."""
    return {
        name.removeprefix(CONNECTION): value
        for name, value in span.attributes.items()
        if name.startswith(CONNECTION)
    }


async def test_each_attempt_is_measured_by_part(heard):
    """What did not happen is neither in a span nor in the metric."""
    tracing = heard.decorator()
    waits = connecting({"queued": 0.5, "dns": 0.25}, {"reused": True})
    async with session([503, 200], waits, tracing, retrying(), tracing) as client:
        await client.get("http://example.com/")

    first, second = heard.attempts
    assert {"queued": 0.5, "dns": 0.25, "reused": False} == connection_of(first)
    assert {"reused": True} == connection_of(second)
    assert {} == connection_of(heard.call)
    server = {"server.address": "example.com", "server.port": 80}
    assert [
        ({**server, f"{CONNECTION}part": "queued"}, 0.5),
        ({**server, f"{CONNECTION}part": "dns"}, 0.25),
    ] == heard.points(NAME)
    assert "s" == heard.metrics()[NAME].unit


async def test_nothing_is_told_without_timings(heard):
    """The instrument is there, and has no points."""
    async with session([200], connecting(None), heard.decorator()) as client:
        await client.get("http://example.com/")

    assert {} == connection_of(heard.attempts[0])
    assert [] == heard.points(NAME)
