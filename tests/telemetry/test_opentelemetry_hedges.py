"""Spans and metrics show hedges."""

from chains import after, retrying
from opentelemetry.trace import StatusCode
from races import hedging, race

from aioretry_smithy import RetryBudget

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


async def test_hedges_are_counted_by_call(heard):
    """A hedge is no retry."""
    tracing = heard.decorator()
    budget = RetryBudget(capacity=1.0)
    decorator = hedging(0.5, max_hedges=2, limiter=budget)
    answers = [after(2.0, 503), after(9.0, 503)]
    await race([after(9.0, 200), 200], tracing, hedging(0.5), tracing)
    await race(answers, tracing, decorator, tracing, cancel_after=1.25)

    assert [2, 1, 1] == [
        heard.total(f"aioretry_smithy.hedges{kind}")
        for kind in ("", ".won", ".refused")
    ]
    assert 4 == heard.total("aioretry_smithy.attempts")
    assert 0 == heard.total("aioretry_smithy.retries")


async def test_a_wait_ends_where_the_next_race_begins(heard):
    """Not where its hedge was sent."""
    tracing = heard.decorator()
    chain = tracing, hedging(0.5), retrying(0.25), tracing
    await race([after(1.0, 503), after(0.25, 502), after(0.1, 200)], *chain)

    (wait,) = heard.call.events
    assert 1 == wait.attributes["aioretry_smithy.attempt"]
    assert 1.0 == (wait.timestamp - heard.call.start_time) / 1e9
