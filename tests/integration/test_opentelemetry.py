"""Spans of real requests: what the server saw, and what others make of the same."""

import asyncio
import itertools
from importlib.metadata import version

import aiohttp
import pytest
from aiohttp import web

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.instrumentation.aiohttp_client")

from chains import SAFELY, connected, decorated, retrying
from heard import Heard
from opentelemetry import context as contexts
from opentelemetry.instrumentation._semconv import _StabilityMode
from opentelemetry.instrumentation.aiohttp_client import create_trace_config
from opentelemetry.trace import NoOpTracerProvider
from packaging.version import Version

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryStrategyWithContent,
    SessionBuilder,
)
from aioretry_smithy.opentelemetry import TracingClient


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def others():
    """Collect the spans of OpenTelemetry's own instrumentation of aiohttp."""
    return Heard()


class Site:
    """A server with a few habits, and the contexts that came to it."""

    def __init__(self):
        self.parents = []
        self.bodies = []
        self.failures = 0
        self.silence = 0.1

    async def answer(self, request):
        self.parents.append(request.headers.get("traceparent", "").split("-")[2])
        self.bodies.append(await request.read())
        if request.path == "/moved":
            raise web.HTTPFound("/")
        if request.path == "/slow":
            await asyncio.sleep(30)
        if request.path == "/late" and self.failures:
            self.failures -= 1
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.sleep(self.silence)
            await response.write(b"not yet")
            return response
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        return web.Response(text="fine")


@pytest.fixture
async def site(serving):
    site = Site()
    site.server = await serving(site.answer)
    return site


def chain(
    site, tracing, *, inside=True, outside=True, attempt_timeout=None, **arguments
):
    around = retrying(SAFELY, max_total_attempts=3, attempt_timeout=attempt_timeout)
    builder = SessionBuilder(site.server.make_url("/"), **arguments)
    places = [tracing] * inside, [around], [tracing] * outside
    return decorated(builder, *itertools.chain(*places))


def ids(spans):
    return [f"{span.context.span_id:016x}" for span in spans]


async def test_server_sees_the_span_of_each_attempt(site, heard):
    """503, 503, 200: three spans, three requests, and each knows the other."""
    site.failures = 2
    async with (
        chain(site, heard.decorator()).build() as session,
        session.post(
            "/orders", data=b"seven", headers={"Idempotency-Key": "7"}
        ) as response,
    ):
        assert "fine" == await response.text()

    assert ids(heard.attempts) == site.parents
    assert [b"seven"] * 3 == site.bodies
    assert [503, 503, 200] == [
        span.attributes["http.response.status_code"] for span in heard.attempts
    ]
    for span in heard.attempts:
        assert "POST" == span.name
        assert "127.0.0.1" == span.attributes["server.address"]
        assert site.server.port == span.attributes["server.port"]
        assert str(site.server.make_url("/orders")) == span.attributes["url.full"]
        assert "1.1" == span.attributes["network.protocol.version"]
        assert heard.call.start_time <= span.start_time
        assert span.end_time <= heard.call.end_time


async def test_redirect_is_part_of_its_attempt(site, heard):
    """Redirects are followed inside one attempt, so they share its one span."""
    async with chain(site, heard.decorator()).build() as session, session.get("/moved"):
        pass

    (attempt,) = heard.attempts
    assert [*ids([attempt])] * 2 == site.parents
    assert 200 == attempt.attributes["http.response.status_code"]
    assert attempt.attributes["url.full"].endswith("/moved")


class Patient(RetryStrategyWithContent):
    """Reads the body before it says that it is to be tried again."""

    backoff = Backoff.fixed(0.05)

    async def should_retry(self, ctx, cause, content):
        return self.backoff if content == b"not yet" else None


async def test_wait_begins_after_a_slow_body(site, heard):
    """A body that is read for the decision delays the wait, and is no part of it."""
    site.failures, site.silence = 1, 0.5
    tracing = heard.decorator()
    async with (
        connected(
            site.server.make_url("/"), tracing, retrying(Patient()), tracing
        ) as session,
        session.get("/late"),
    ):
        pass

    first, second = heard.attempts
    (event,) = heard.call.events
    assert 0.05 == event.attributes["aioretry_smithy.delay"]
    assert first.end_time + 200_000_000 < event.timestamp
    # As long as that, and not as long as the body took.
    assert 45_000_000 < second.start_time - event.timestamp < 500_000_000


needs_silent_instrumentation = pytest.mark.skipif(
    Version(version("opentelemetry-instrumentation-aiohttp-client"))
    < Version("0.60b0"),
    reason="an older instrumentation cannot be suppressed",
)


@needs_silent_instrumentation
async def test_no_second_span_beside_the_instrumentation(site, heard, others):
    """Inside, an attempt of ours silences the instrumentation, for as long as it is."""
    site.failures = 2
    trace_config = create_trace_config(tracer_provider=others.tracer_provider)
    async with aiohttp.ClientSession(trace_configs=[trace_config]) as plain:
        builder = chain(site, heard.decorator(), trace_configs=[trace_config])
        async with builder.build() as session, session.get("/"):
            pass
        assert [] == others.spans()

        async with plain.get(site.server.make_url("/")):
            pass

    assert 3 == len(heard.attempts)
    assert [*ids(heard.attempts), *ids(others.spans())] == site.parents
    assert 1 == len(others.spans())


DURATION = "http.client.request.duration"


@needs_silent_instrumentation
async def test_metrics_without_tracing_silence_nobody(site, heard, others):
    """Without a tracer of ours, the instrumentation measures the duration as well."""
    trace_config = instrumentation(others)
    tracing = TracingClient.new_decorator(NoOpTracerProvider(), heard.meter_provider)
    builder = chain(site, tracing, trace_configs=[trace_config])
    async with builder.build() as session, session.get("/"):
        pass

    for each in (heard, others):
        (point,) = each.metrics()[DURATION].data.data_points
        assert 1 == point.count
    assert 1 == len(others.spans())


def instrumentation(heard):
    """Make OpenTelemetry's instrumentation with the stable metrics."""
    return create_trace_config(
        tracer_provider=heard.tracer_provider,
        meter_provider=heard.meter_provider,
        sem_conv_opt_in_mode=_StabilityMode.HTTP,
    )


async def test_instrumentation_under_the_span_of_the_call(site, heard, others):
    """With tracing outside alone, its spans are the attempts, children of the call."""
    site.failures = 2
    trace_config = create_trace_config(tracer_provider=others.tracer_provider)
    builder = chain(site, heard.decorator(), inside=False, trace_configs=[trace_config])
    async with builder.build() as session, session.get("/"):
        pass

    assert [] == heard.attempts
    assert 3 == len(others.spans())
    assert ids(others.spans()) == site.parents
    assert {heard.call.context.span_id} == {
        span.parent.span_id for span in others.spans()
    }


async def test_caller_reads_the_body_outside_of_the_span(site, heard):
    """The span ends at the headers; the body is read in the caller's own context."""
    before = contexts.get_current()
    async with (
        chain(site, heard.decorator()).build() as session,
        session.get("/") as response,
    ):
        assert 2 == len(heard.spans())
        assert before is contexts.get_current()
        await response.read()


async def test_body_that_runs_out_of_time_has_a_span(site, heard):
    """It begins at the headers, ends at the failure, and says which limit it was."""
    site.failures, site.silence = 1, 30.0
    builder = chain(site, heard.decorator(), timeout=aiohttp.ClientTimeout(total=0.5))
    async with builder.build() as session:
        response = await session.get("/late")
        with pytest.raises(TimeoutError):
            await response.read()
    *_, body = sorted(heard.spans(), key=lambda span: span.end_time)
    said = "ResponseTimeoutError: the call had 0.500 s, which passed while its body"

    assert "response body" == body.name
    assert body.status.description.startswith(said)
    assert 0.03 < (body.end_time - body.start_time) / 1e9 < 5
    assert "aioretry_smithy.ResponseTimeoutError" == body.attributes["error.type"]
    (attempt,) = RequestLog.of(response).children
    assert attempt.id == body.attributes["aioretry_smithy.id"]
