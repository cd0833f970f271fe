"""Spans and counts of the parts of a download belong to their call."""

import asyncio
from contextvars import ContextVar

import pytest
from chains import NOW, connected, retrying
from download_server import FILE, Answer, DownloadServer, broken_at
from races import hedging
from until import is_ours, nothing_to_collect

from aioretry_smithy import ResumingClient, RetryStrategy, client_decorator

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.trace import SpanKind

SERVER = SpanKind.SERVER
RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))


def late(asked):
    """Answer a part so late that it is hedged; the hedge comes at once."""
    is_late = "range" in asked.headers and "armeria-retry-count" not in asked.headers
    return Answer(pause=0.0, wait=asyncio.Event() if is_late else None, end=True)


@pytest.mark.parametrize("inside", [[], [RETRYING]], ids=["alone", "around retries"])
async def test_parts_are_spans_of_their_call(heard, inside):
    """Also where it is read in a span of somebody else's."""
    tracing, tracer = heard.decorator(), heard.tracer_provider.get_tracer("reader")
    chain = tracing, *inside, RESUMING, tracing
    async with (
        DownloadServer(*broken_at(5_000, 9_000)) as server,
        connected(None, *chain) as session,
    ):
        response = await session.get(server.url)
        with tracer.start_as_current_span("reading", kind=SERVER):
            body = await response.read()

    assert FILE == body
    assert 3 == len(heard.attempts)
    (call,) = [
        each.context
        for each in heard.spans(SpanKind.INTERNAL)
        if each.name.startswith("call ")
    ]
    assert {call.span_id} == {each.parent.span_id for each in heard.attempts}
    assert {call.trace_id} == {each.context.trace_id for each in heard.attempts}


async def test_parts_are_spans_within_that_of_the_caller(heard):
    """Who has made the call, where no decorator makes a span of it."""
    tracer = heard.tracer_provider.get_tracer("reader")
    async with (
        DownloadServer(*broken_at(5_000)) as server,
        connected(None, heard.decorator(), RESUMING) as session,
    ):
        with tracer.start_as_current_span("calling", kind=SERVER) as calling:
            response = await session.get(server.url)
        await response.read()

    parents = {each.parent.span_id for each in heard.attempts}
    assert {calling.get_span_context().span_id} == parents


async def test_the_reader_keeps_its_own_variables():
    """A part sees those of the call, and what it sets stays there."""
    seen, variable = [], ContextVar("variable", default="none")

    @client_decorator
    async def looking(delegate, ctx, request):
        seen.append(variable.get())
        variable.set(f"set {len(seen)}")
        return await delegate.execute(ctx, request)

    async with (
        DownloadServer(*broken_at(5_000, 9_000)) as server,
        connected(None, looking, RESUMING) as session,
    ):
        variable.set("calling")
        response = await session.get(server.url)
        variable.set("reading")
        await response.read()

    assert ["calling", "set 1", "set 2"] == seen
    assert "reading" == variable.get()


async def test_parts_that_failed_leave_nothing_to_collect():
    """Their exceptions have frames that must not have them."""
    failures = []

    @client_decorator
    async def failing(delegate, ctx, request):
        if request.headers.get("Range") and failures:
            await asyncio.sleep(0)
            raise failures.pop()
        return await delegate.execute(ctx, request)

    async def ask(session, url):
        failures.append(OSError())
        async with session.get(url) as response:
            return await response.read()

    async with (
        DownloadServer(Answer(stop=5_000), Answer(end=True)) as server,
        connected(None, failing, RESUMING) as session,
    ):
        await ask(session, server.url)
        with nothing_to_collect(is_ours):
            server.answers.insert(0, Answer(stop=5_000))
            assert FILE == await ask(session, server.url)
            await asyncio.sleep(0.05)


async def hedged_download(tracing):
    """Read a file whose second part is hedged."""
    answers = [Answer(stop=5_000), late, late]
    chain = tracing, hedging(0.05), RESUMING, tracing
    async with (
        DownloadServer(*answers) as server,
        connected(None, *chain) as session,
        session.get(server.url) as response,
    ):
        return await response.read()


async def test_hedges_of_parts_are_counted(shown):
    """When the stream has ended, with those of its call."""
    body = await hedged_download(shown.metrics().client())

    assert FILE == body
    assert [1, 1, 0] == shown.totals("hedges", "hedges_won", "hedges_refused")


async def test_metrics_that_fail_at_the_end_of_a_stream_break_nothing(
    registry, monkeypatch, caplog
):
    """The reader gets the body, and the error is in the log."""
    prometheus = pytest.importorskip("aioretry_smithy.prometheus")
    counter = pytest.importorskip("prometheus_client").Counter

    def inc(self, amount=1, exemplar=None):
        if amount and "hedges" in self._name:
            raise ValueError("full")

    monkeypatch.setattr(counter, "inc", inc)
    body = await hedged_download(prometheus.MetricsClient.new_decorator(registry))

    assert FILE == body
    assert "could not record a call" in caplog.text
