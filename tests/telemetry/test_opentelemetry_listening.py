"""Who listens, if anybody, and what an SDK measures of calls and attempts."""

import asyncio
import logging
import sys
from functools import partial

import aiohttp
import pytest
from calls import begin
from chains import after, session
from functions import URL, chain, get, get_in_vain
from heard import Heard, Row, check, seconds, traced
from heard import get as ask
from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aioretry_smithy import HedgingClient
from aioretry_smithy._telemetry import spans
from aioretry_smithy._telemetry.client import DURATION_BUCKETS
from aioretry_smithy.opentelemetry import TracingClient
from aioretry_smithy.testing import ScriptedTransport


@pytest.fixture
def set_up_sdk(monkeypatch, heard):
    """A function that sets an SDK up, as nobody has before; it is forgotten then."""

    def set_up(tracer_provider=None, meter_provider=None):
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracer_provider)
        monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", meter_provider)

    set_up()
    return partial(set_up, heard.tracer_provider, heard.meter_provider)


def calls_made(function):
    """Return the functions of telemetry that *function* calls."""
    made = []

    def note(frame, event, argument):
        if event == "call" and "_telemetry" in frame.f_code.co_filename:
            made.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.usefixtures("set_up_sdk")
@pytest.mark.parametrize(
    "providers",
    [
        (None, None),
        (trace.NoOpTracerProvider(), metrics.NoOpMeterProvider()),
        (trace.ProxyTracerProvider(), metrics._internal._ProxyMeterProvider()),
    ],
    ids=["nobody", "no-op", "proxies"],
)
async def test_nothing_is_done_where_nobody_listens(providers):
    """Without an SDK the request passes, and nothing is looked at on its way."""
    tracing = TracingClient.new_decorator(*providers)
    seen = []

    class Leaf:
        async def execute(self, ctx, request):
            seen.append((request, contexts.get_current()))
            return "response"

    client = tracing(Leaf())
    # Without the recorder, which looks at the response.
    vars(client)["delegate"] = Leaf()
    request = object()  # has no method, no URL, no headers to look at
    ctx, before = begin(), contexts.get_current()

    def run():
        with pytest.raises(StopIteration, match="response"):
            client.execute(ctx, request).send(None)

    run()
    # The profile sees who is asked whether anybody listens, and nothing else.
    made = calls_made(run)

    assert {"execute", "log_errors", "begin", "get", "_is_mute"} >= {*made}
    assert [(request, before)] * 2 == seen


async def test_sdk_that_is_set_later_is_heard(set_up_sdk, heard):
    """A session that was built before the SDK was set up is traced from then on."""
    tracing = TracingClient.new_decorator()
    async with chain(tracing, [200, 200]).build() as session:
        async with session.get(URL):
            pass
        assert [] == heard.spans()

        set_up_sdk()
        async with session.get(URL):
            pass

    assert {"call GET", "GET"} == {span.name for span in heard.spans()}
    assert 1 == heard.total("aioretry_smithy.attempts")


async def test_proxies_given_before_the_sdk_is_set_are_no_dead_end(set_up_sdk, heard):
    """A provider from get_tracer_provider(), got too early, stands for a later one."""
    proxies = trace.get_tracer_provider(), metrics.get_meter_provider()
    tracing = TracingClient.new_decorator(*proxies)
    set_up_sdk()
    await get(chain(tracing, [200]))

    assert 2 == len(heard.spans())
    assert 1 == heard.total("aioretry_smithy.attempts")


async def test_providers_that_do_nothing_are_not_replaced(set_up_sdk, heard):
    """No-op providers mean silence, also beside a global SDK."""
    set_up_sdk()
    silent = trace.NoOpTracerProvider(), metrics.NoOpMeterProvider()
    await get(chain(TracingClient.new_decorator(*silent), [200]))

    assert [] == heard.spans()
    assert {} == heard.metrics()


@pytest.mark.parametrize("what", ["spans", "metrics"])
async def test_one_kind_alone(heard, what):
    """Spans do without metrics, and metrics without spans, URLs and headers."""
    silence = {
        "spans": (heard.tracer_provider, metrics.NoOpMeterProvider()),
        "metrics": (trace.NoOpTracerProvider(), heard.meter_provider),
    }
    transport = ScriptedTransport([200])

    await get(chain(TracingClient.new_decorator(*silence[what]), transport))

    assert (2 if what == "spans" else 0) == len(heard.spans())
    assert (0 if what == "spans" else 3) == len(heard.metrics())
    assert (what == "spans") == ("traceparent" in transport.requests[0].headers)
    assert what == "spans" or transport.contexts[0].request is transport.requests[0]


async def test_sdk_that_is_disabled_is_nobody(monkeypatch, heard):
    """OTEL_SDK_DISABLED makes calls pass through."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    tracing = TracingClient.new_decorator(
        TracerProvider(shutdown_on_exit=False), MeterProvider(shutdown_on_exit=False)
    )
    (client,) = [tracing(object())]

    assert client.begin(begin(), object()) is None


async def test_unsampled_spans_propagate_and_count():
    """A span that is not recorded has no attributes at its end; metrics have all."""
    heard = Heard(sampler=ALWAYS_OFF)
    transport = ScriptedTransport([503, 200])

    await get(chain(heard.decorator(), transport))

    assert [] == heard.spans()
    headers = [request.headers["traceparent"] for request in transport.requests]
    assert [0, 0] == [int(header[-2:], 16) & 1 for header in headers]
    assert 2 == len(set(headers))
    assert 2 == heard.total("aioretry_smithy.attempts")
    assert 3 == len(heard.points("http.client.request.duration")) + len(
        heard.points("aioretry_smithy.retries")
    )


async def test_unsampled_spans_alone_cost_nothing_at_their_end(monkeypatch):
    """Without a span to fill and metrics to feed, the outcome is not looked at."""
    heard = Heard(sampler=ALWAYS_OFF)
    looked = []
    monkeypatch.setattr(
        spans.TracedAttempt,
        "_last_attributes",
        lambda *arguments: looked.append(arguments),
    )
    tracing = TracingClient.new_decorator(
        heard.tracer_provider, metrics.NoOpMeterProvider()
    )

    await get(chain(tracing, [200]))

    assert [] == looked


class Broken(SpanProcessor, SpanExporter, TraceContextTextMapPropagator):
    """Has bugs, in one or all of its methods."""

    def __init__(self, *names):
        for name in names:
            setattr(self, name, self.fail)

    def fail(self, *arguments, **options):
        raise RuntimeError("a bug")


class BrokenProvider(trace.TracerProvider):
    """A provider without tracers."""

    def get_tracer(self, *arguments, **options):
        raise RuntimeError("no tracer")


@pytest.mark.parametrize(
    "broken", ["on_start", "on_end", "export", "inject", "provider"]
)
@pytest.mark.parametrize(
    "answer", [200, aiohttp.InvalidURL("x"), asyncio.CancelledError()]
)
async def test_who_listens_cannot_break_a_call(heard, broken, answer, caplog):
    """An error of theirs is in the log, and the call ends as it would have."""
    settings = {"propagator": Broken(broken)} if broken == "inject" else {}
    provider = heard.tracer_provider
    if broken.startswith("on_"):
        provider.add_span_processor(Broken(broken))
    elif broken == "export":
        provider.add_span_processor(SimpleSpanProcessor(Broken(broken)))
    elif broken == "provider":
        provider = BrokenProvider()
    tracing = TracingClient.new_decorator(provider, heard.meter_provider, **settings)
    before = contexts.get_current()
    await get_in_vain(chain(tracing, [answer]), answer)

    assert before is contexts.get_current()
    assert logging.ERROR == max(record.levelno for record in caplog.records) or (
        "could not record a call" in caplog.text
    )
    if broken != "provider":
        assert 1 == heard.total("aioretry_smithy.attempts")
        assert 1 == len(heard.points("aioretry_smithy.call.duration"))


async def test_broken_meter_does_not_cost_the_span(heard, caplog):
    """A span ends, whatever becomes of what is measured."""
    tracing = heard.decorator()
    heard.break_durations(tracing)
    await get(chain(tracing, [200]))

    assert 2 == len(heard.spans())
    assert 2 == caplog.text.count("could not record a call")


@pytest.mark.parametrize("broken", ["on_end", "durations"])
async def test_broken_listener_does_not_cost_hedges(heard, broken, caplog):
    """They are counted, whatever becomes of spans and durations."""
    tracing = heard.decorator()
    if broken == "durations":
        heard.break_durations(tracing)
    else:
        heard.tracer_provider.add_span_processor(Broken(broken))
    chained = tracing, HedgingClient.new_decorator(10.0), tracing
    async with session([503, 200], *chained) as client, client.get(URL):
        pass

    assert 1 == heard.total("aioretry_smithy.hedges")
    assert "could not record a call" in caplog.text


async def test_broken_counter_of_hedges_does_not_cost_durations(heard, caplog):
    """The call is measured, whatever becomes of its hedges."""
    tracing = heard.decorator()
    tracing(object()).telemetry.instruments.get().series["hedges"] = Broken().fail
    chained = tracing, HedgingClient.new_decorator(10.0), tracing
    async with session([200], *chained) as client, client.get(URL):
        pass

    assert 1 == len(heard.points("aioretry_smithy.call.duration"))
    assert "could not record a call" in caplog.text


async def test_headers_that_are_none_are_for_aiohttp_to_complain_of(heard, caplog):
    """Nothing is injected into what cannot be read, and the call goes on to it."""
    transport = ScriptedTransport([200])

    with pytest.raises(TypeError, match="'int' object is not iterable"):
        await get(chain(heard.decorator(), transport), headers=7)

    assert 2 == len(heard.spans())
    assert transport.contexts[0].request is transport.requests[0]


async def test_providers_that_are_shut_down(heard):
    """After its shutdown an SDK hears nothing, and calls go on."""
    heard.tracer_provider.shutdown()
    heard.meter_provider.shutdown()

    await get(chain(heard.decorator(), [503, 200]))

    assert [] == heard.spans()


HTTP_CLIENT_DURATION = {
    "http.request.method": Row(str, "required"),
    "server.address": Row(str, "required"),
    "server.port": Row(int, "required"),
    "error.type": Row(str, "where it failed"),
    "http.response.status_code": Row(int, "where there is a response"),
    "network.protocol.version": Row(str, "recommended"),
}


"""https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#http-client"""


async def test_duration_of_a_span_is_the_measured_one(heard):
    """Span and histogram say the same number, in the buckets of the convention."""
    await ask(traced(heard, [after(0.1, 503), after(0.3, 200)]))

    metric = heard.metrics()["http.client.request.duration"]
    assert "s" == metric.unit
    measured = {
        point.attributes["http.response.status_code"]: point
        for point in metric.data.data_points
    }
    assert {
        span.attributes["http.response.status_code"]: seconds(span)
        for span in heard.attempts
    } == {status: point.sum for status, point in measured.items()}
    assert {span.context.span_id for span in heard.attempts} == {
        exemplar.span_id for point in measured.values() for exemplar in point.exemplars
    }
    for point in measured.values():
        assert DURATION_BUCKETS == point.explicit_bounds
        check(
            dict(point.attributes),
            HTTP_CLIENT_DURATION,
            failed=point.attributes["http.response.status_code"] == 503,
            answered=True,
        )


async def test_counters(heard):
    """Attempts are counted with their outcome, retries without the first attempt."""
    await ask(traced(heard, [503, aiohttp.ServerDisconnectedError(), 200]))

    server = {
        "http.request.method": "GET",
        "server.address": "api.example.com",
        "server.port": 443,
    }
    kind = "aiohttp.client_exceptions.ServerDisconnectedError"
    unavailable = {**server, "http.response.status_code": 503, "error.type": "503"}
    lost = {**server, "error.type": kind}
    fine = {**server, "http.response.status_code": 200}
    attempts = heard.points("aioretry_smithy.attempts")
    assert [(unavailable, 1), (lost, 1), (fine, 1)] == attempts
    assert [(lost, 1), (fine, 1)] == heard.points("aioretry_smithy.retries")
    assert [(server, 1.0)] == heard.points("aioretry_smithy.call.duration")


async def test_exemplars_lead_to_the_span_that_was_measured(heard):
    """Counters and durations alike: of an attempt to it, of a call to that."""
    await ask(traced(heard, [503, 200]))

    call = heard.call.context.span_id
    first, second = (span.context.span_id for span in heard.attempts)
    assert {
        "http.client.request.duration": [first, second],
        "aioretry_smithy.attempts": [first, second],
        "aioretry_smithy.retries": [second],
        "aioretry_smithy.call.duration": [call],
    } == {
        name: [
            exemplar.span_id
            for point in metric.data.data_points
            for exemplar in point.exemplars
        ]
        for name, metric in heard.metrics().items()
    }


async def test_duration_of_a_call_says_why_it_stopped(heard):
    """The stop reason and the error are on the metric of the call."""
    await ask(traced(heard, [404]))

    ((attributes, _),) = heard.points("aioretry_smithy.call.duration")
    assert "no_retry" == attributes["aioretry_smithy.stop_reason"]
    assert "404" == attributes["error.type"]
