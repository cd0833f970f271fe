"""Current spans, headers that go out, silence, and failures of telemetry."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import random
import sys
from functools import partial

import aiohttp
import chains
import pytest
from calls import begin
from heard import Heard
from multidict import CIMultiDict
from opentelemetry import baggage, metrics, propagate, trace
from opentelemetry import context as contexts
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aioretry_smithy import (
    HttpRequest,
    SessionBuilder,
    client_decorator,
    new_response,
)
from aioretry_smithy._telemetry import traced
from aioretry_smithy.opentelemetry import TracingClient
from aioretry_smithy.testing import ScriptedTransport

URL = "https://api.example.com/orders"
SUPPRESS = contexts._SUPPRESS_HTTP_INSTRUMENTATION_KEY
CALLERS_OWN = {
    "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "TraceState": "vendor=1",
    "X-Shop": "7",
}


@pytest.fixture
def set_up_sdk(monkeypatch, heard):
    """A function that sets an SDK up, as nobody has before; it is forgotten then."""

    def set_up(tracer_provider=None, meter_provider=None):
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracer_provider)
        monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", meter_provider)

    set_up()
    return partial(set_up, heard.tracer_provider, heard.meter_provider)


def chain(tracing, answers, *, inside=True, outside=True, **settings) -> SessionBuilder:
    """Tracing in one or both places around a retrying client."""
    parts = [tracing] * inside, [chains.retrying(chains.SAFELY)], [tracing] * outside
    return chains.chain(answers, *itertools.chain(*parts), **settings)


async def get(builder, **options):
    async with builder.build() as session, session.get(URL, **options):
        pass


def traceparent(span) -> str:
    context = span.context
    flags = f"{int(context.trace_flags):02x}"
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags}"


async def test_each_attempt_carries_its_own_context(heard):
    """The server gets the context of the attempt; the caller's headers stay."""
    transport = ScriptedTransport([503, 200])
    headers = dict(CALLERS_OWN)

    await get(chain(heard.decorator(), transport), headers=headers)

    assert CALLERS_OWN == headers
    for ctx in transport.contexts:
        # What goes through the decorators between the two places is the caller's.
        assert CALLERS_OWN["Traceparent"] == ctx.request.headers["traceparent"]
    for request, span in zip(transport.requests, heard.attempts, strict=True):
        assert [traceparent(span)] == request.headers.getall("traceparent")
        assert "tracestate" not in request.headers
        assert "7" == request.headers["X-Shop"]


async def test_state_of_the_sessions_trace_does_not_go_out(heard):
    """Beside our traceparent, that of the session's headers would be of another."""
    transport = ScriptedTransport([200])
    await get(chains.chain(transport, heard.decorator(), headers=CALLERS_OWN))

    (request,) = transport.requests
    sent = request.merged_headers(CIMultiDict(CALLERS_OWN))
    assert [traceparent(heard.attempts[0])] == sent.getall("traceparent")
    assert [""] == sent.getall("tracestate")
    assert "7" == sent["X-Shop"]


async def test_state_of_the_present_trace_goes_out(heard):
    """A vendor's state goes on with the trace, in place of other state."""
    state = trace.TraceState([("vendor", "2")])
    parent = trace.SpanContext(1, 2, True, trace.TraceFlags(1), state)
    token = contexts.attach(trace.set_span_in_context(trace.NonRecordingSpan(parent)))
    transport = ScriptedTransport([200])
    await get(chains.chain(transport, heard.decorator(), headers=CALLERS_OWN))

    contexts.detach(token)
    assert ["vendor=2"] == transport.requests[0].headers.getall("tracestate")


async def test_call_is_propagated_where_no_attempt_is_traced(heard):
    """With tracing outside alone, the server gets the context of the call."""
    transport = ScriptedTransport([503, 200])

    await get(chain(heard.decorator(), transport, inside=False))

    (call,) = heard.spans()
    assert [traceparent(call)] * 2 == [
        request.headers["traceparent"] for request in transport.requests
    ]


async def test_baggage_of_the_caller_stays(heard):
    """Headers that the propagator has nothing to say about are left alone."""
    transport = ScriptedTransport([200])

    await get(chain(heard.decorator(), transport), headers={"baggage": "a=1"})

    assert "a=1" == transport.requests[0].headers["baggage"]


async def test_baggage_of_the_context_goes_out(heard):
    """The propagator sees the context in which the call was made."""
    transport = ScriptedTransport([200])
    token = contexts.attach(baggage.set_baggage("shop", "7"))

    await get(chain(heard.decorator(), transport))

    contexts.detach(token)
    assert "shop=7" == transport.requests[0].headers["baggage"]


@pytest.mark.parametrize("where", ["argument", "global"])
async def test_propagator_is_chosen(heard, where):
    """A propagator is given, or it is the global one of the moment."""

    class Marks(TraceContextTextMapPropagator):
        def inject(self, carrier, context=None, setter=None):
            span = trace.get_current_span(context)
            carrier["X-Span"] = f"{span.get_span_context().span_id:x}"

    settings = {"propagator": Marks()} if where == "argument" else {}
    transport = ScriptedTransport([200])
    builder = chain(heard.decorator(**settings), transport)
    usual = propagate.get_global_textmap()
    try:
        if where == "global":
            propagate.set_global_textmap(Marks())
        await get(builder, headers=CALLERS_OWN)
    finally:
        propagate.set_global_textmap(usual)

    (request,) = transport.requests
    assert f"{heard.attempts[0].context.span_id:x}" == request.headers["X-Span"]
    assert CALLERS_OWN["TraceState"] == request.headers["tracestate"]


async def test_propagator_without_a_word_changes_nothing(heard):
    """A request that gets no header is the very one that came in."""

    class Silent(TraceContextTextMapPropagator):
        def inject(self, carrier, context=None, setter=None):
            """Say nothing."""

    transport = ScriptedTransport([200])

    await get(chain(heard.decorator(propagator=Silent()), transport))

    assert transport.contexts[0].request is transport.requests[0]


async def test_span_is_current_while_the_attempt_runs(heard):
    """Spans that are made further in are children of the attempt."""
    seen = []

    async def look(ctx, request):
        seen.append(trace.get_current_span().get_span_context().span_id)
        await asyncio.sleep(0)
        seen.append(trace.get_current_span().get_span_context().span_id)
        return 200

    await get(chain(heard.decorator(), [look]))

    (attempt,) = heard.attempts
    assert [attempt.context.span_id] * 2 == seen


async def test_context_is_hushed_in_attempts_alone(heard):
    """Other instrumentations are silent in an attempt, and not in a call around it."""
    seen = []

    @client_decorator
    async def note(delegate, ctx, request):
        seen.append(bool(contexts.get_value(SUPPRESS)))
        return await delegate.execute(ctx, request)

    tracing = heard.decorator()
    around = note, tracing, note, chains.retrying(), tracing, note
    await get(chains.chain([200], *around))

    assert [False, False, True] == seen


async def get_in_vain(builder, answer):
    """Make a call that ends with an answer, or is ended by it."""
    if answer == 200:
        await get(builder)
    else:
        with pytest.raises(type(answer)):
            await get(builder)


@pytest.mark.parametrize(
    "answer",
    [200, aiohttp.InvalidURL("x"), asyncio.CancelledError(), SystemExit(3)],
    ids=["success", "failure", "cancellation", "exit"],
)
async def test_context_is_given_back(heard, answer):
    """After a call the caller's context is what it was, however it ended."""
    before = contexts.get_current()
    await get_in_vain(chain(heard.decorator(), [answer]), answer)

    assert before is contexts.get_current()


async def test_contexts_do_not_leak_between_tasks(heard):
    """A hundred calls at once: every attempt belongs to the call of its own task."""
    tracing = heard.decorator()

    async def answer(ctx, request):
        await asyncio.sleep(ctx.attributes.setdefault("sleep", 0.01))
        mine = trace.get_current_span().get_span_context().span_id
        await asyncio.sleep(0.01)

        assert mine == trace.get_current_span().get_span_context().span_id
        return 503 if ctx.attempt == 1 else 200

    tracer = heard.tracer_provider.get_tracer("test")
    builder = chain(tracing, ScriptedTransport([answer] * 200))
    async with builder.build() as session:

        async def one(number):
            with tracer.start_as_current_span(f"task {number}"):
                async with session.get(f"{URL}/{number}"):
                    pass

        await asyncio.gather(*map(one, range(100)))

    by_id = {span.context.span_id: span for span in heard.spans()}
    assert 200 == len(heard.attempts)
    for attempt in heard.attempts:
        call = by_id[attempt.parent.span_id]
        task = by_id[call.parent.span_id]
        number = attempt.attributes["url.full"].rpartition("/")[2]
        assert f"task {number}" == task.name


async def test_cancellations_leave_no_span_open(heard):
    """Three hundred calls cut anywhere: all that began has ended, in its own time."""
    chance = random.Random(6)
    open_spans = set()

    class Balance(SpanProcessor):
        def on_start(self, span, parent_context=None):
            open_spans.add(span.context.span_id)

        def on_end(self, span):
            open_spans.remove(span.context.span_id)

    heard.tracer_provider.add_span_processor(Balance())

    async def answer(ctx, request):
        await asyncio.sleep(chance.random())
        return chance.choice([200, 503])

    builder = chain(heard.decorator(), ScriptedTransport([answer] * 3000))
    async with builder.build() as session:

        async def one():
            before = contexts.get_current()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 3), session.get(URL):
                    pass

            assert before is contexts.get_current()

        await asyncio.gather(*(one() for _ in range(300)))

    by_id = {span.context.span_id: span for span in heard.spans()}
    assert set() == open_spans
    assert 300 == len(by_id) - len(heard.attempts)
    for attempt in heard.attempts:
        call = by_id[attempt.parent.span_id]
        assert call.start_time <= attempt.start_time
        assert attempt.end_time <= call.end_time


async def test_session_inside_an_attempt_is_traced(heard):
    """A token fetched in the course of an attempt, by another session, has spans."""
    tracing = heard.decorator()
    inner = chain(tracing, [200])

    @client_decorator
    async def authorize(delegate, ctx, request):
        async with inner.build() as session, session.post(URL):
            pass
        return await delegate.execute(ctx, request)

    await get(chains.chain([200], authorize, tracing))

    by_name = {span.name: span for span in heard.spans()}
    assert {"GET", "call POST", "POST"} == set(by_name)
    assert by_name["GET"].context.span_id == by_name["call POST"].parent.span_id
    assert by_name["call POST"].context.span_id == by_name["POST"].parent.span_id


@pytest.mark.parametrize(
    "key",
    [SUPPRESS, contexts._SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation"],
    ids=["http", "all", "by name"],
)
async def test_silence_is_kept_where_it_is_asked_for(heard, key):
    """Requests of an exporter through a traced session make no spans."""
    transport = ScriptedTransport([200])
    token = contexts.attach(contexts.set_value(key, True))

    await get(chain(heard.decorator(), transport))

    contexts.detach(token)
    assert [] == heard.spans()
    assert {} == heard.metrics()
    assert "traceparent" not in transport.requests[0].headers


def calls_made(function) -> list[str]:
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
    client.delegate = Leaf()  # without the joint, which looks at the response
    request = object()  # has no method, no URL, no headers to look at
    ctx, before = begin(), contexts.get_current()

    def run():
        with pytest.raises(StopIteration, match="response"):
            client.execute(ctx, request).send(None)

    run()
    # The profile sees who is asked whether anybody listens, and nothing else.
    made = calls_made(run)

    assert not client.is_heard()
    assert {"enter", "is_heard", "get", "_is_mute"} >= set(made)
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

    assert not client.is_heard()


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
        traced.TracedAttempt,
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
    async with chain(tracing, [200, 200]).build() as session:
        async with session.get(URL):
            pass
        instruments = tracing(object())._telemetry.instruments.get()
        instruments.request_duration = instruments.call_duration = None
        async with session.get(URL):
            pass

    assert 4 == len(heard.spans())
    assert "could not record a call" in caplog.text


async def test_headers_that_are_none_are_for_aiohttp_to_complain_of(heard, caplog):
    """Nothing is injected into what cannot be read, and the call goes on."""
    transport = ScriptedTransport([200])

    await get(chain(heard.decorator(), transport), headers=7)

    assert 2 == len(heard.spans())
    assert transport.contexts[0].request is transport.requests[0]


async def test_providers_that_are_shut_down(heard):
    """After its shutdown an SDK hears nothing, and calls go on."""
    heard.tracer_provider.shutdown()
    heard.meter_provider.shutdown()

    await get(chain(heard.decorator(), [503, 200]))

    assert [] == heard.spans()


async def test_call_that_is_thrown_away_ends_its_spans(heard, caplog):
    """A coroutine that nobody awaits to its end leaves no context, and no complaint."""

    async def forever(ctx, request):
        await asyncio.get_running_loop().create_future()

    before = contexts.get_current()
    async with chain(heard.decorator(), [forever, forever]).build() as session:
        elsewhere = contextvars.copy_context()
        for run in (elsewhere.run, lambda function, *given: function(*given)):
            call = session._request("GET", URL)
            run(call.send, None)
            call.close()

    assert before is contexts.get_current()
    assert 4 == len(heard.spans())
    assert "" == caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tracer_provider", 7),
        ("meter_provider", "global"),
        ("propagator", object()),
        ("tracer_provider", TracerProvider),
        ("meter_provider", MeterProvider),
        ("propagator", TraceContextTextMapPropagator),
    ],
)
def test_bad_arguments(name, value):
    """A provider that cannot do its part is refused where the decorator is made."""
    with pytest.raises(ValueError, match=rf"^{name}: .* \(expected: None"):
        TracingClient.new_decorator(**{name: value})


def test_description_says_what_each_place_sees(heard):
    """The chain shows which of the two sees calls."""
    described = chain(heard.decorator(), [200]).describe()

    assert "TracingClient(sees='calls')" in described.splitlines()[0]
    assert "TracingClient(sees='attempts')" in described.splitlines()[2]


async def test_response_without_a_version(heard):
    """A response that was made by hand may lack a version."""

    def answer(ctx, request):
        response = new_response(HttpRequest("GET", URL))
        response.version = None
        return response

    await get(chain(heard.decorator(), [answer]))

    assert "network.protocol.version" not in heard.attempts[0].attributes
