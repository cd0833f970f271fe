"""Contexts of spans, and URLs in spans without what is secret."""

import asyncio
import contextvars

import aiohttp
import chains
import pytest
import yarl
from functions import URL, chain, get, get_in_vain
from heard import attributes_of, traced
from heard import get as ask
from multidict import CIMultiDict
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as contexts
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aioretry_smithy import HttpRequest, client_decorator, new_response
from aioretry_smithy.opentelemetry import TracingClient
from aioretry_smithy.testing import ScriptedTransport

SUPPRESS = contexts._SUPPRESS_HTTP_INSTRUMENTATION_KEY


CALLERS_OWN = {
    "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "TraceState": "vendor=1",
    "X-Shop": "7",
}


def traceparent(span):
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


@pytest.mark.parametrize(
    ("url", "shown", "host", "port"),
    [
        (
            "https://ada:love@Example.com/a?token=1&page=2",
            "https://REDACTED:REDACTED@example.com/a?token=REDACTED&page=2",
            "example.com",
            443,
        ),
        ("http://ada@[::1]:8080/", "http://REDACTED:REDACTED@[::1]:8080/", "::1", 8080),
        ("http://localhost/?sig=x", "http://localhost/?sig=REDACTED", "localhost", 80),
        ("http://localhost/a****@b", "http://localhost/a****@b", "localhost", 80),
        (
            "http://b\u00fccher.example/",
            "http://xn--bcher-kva.example/",
            "xn--bcher-kva.example",
            80,
        ),
    ],
)
async def test_credentials_are_redacted(heard, url, shown, host, port):
    """The URL is whole but for what the log would hide, in the convention's words."""
    await ask(traced(heard, [200]), url)

    (attempt,) = heard.attempts
    assert shown == attempt.attributes["url.full"]
    assert (host, port) == (
        attempt.attributes["server.address"],
        attempt.attributes["server.port"],
    )


async def test_parameters_are_part_of_the_url(heard):
    """Parameters go out in the URL, so they are shown, or hidden, there."""
    await ask(traced(heard, [200]), params={"page": "2", "api_key": "x"})

    (attempt,) = heard.attempts
    assert f"{URL}?page=2&api_key=REDACTED" == attempt.attributes["url.full"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("/orders", "aiohttp.client_exceptions.InvalidUrlClientError"),
        ("http://[", "aiohttp.client_exceptions.InvalidUrlClientError"),
        (7, "TypeError"),
    ],
    ids=str,
)
async def test_what_is_no_url_has_no_server(heard, url, error):
    """A URL that aiohttp refuses costs the attributes that nobody can know."""
    await ask(traced(heard, [200]), url)

    (attempt,) = heard.attempts
    assert {
        "http.request.method": "GET",
        "error.type": error,
        "aioretry_smithy.sent": False,
    } == attributes_of(attempt)
    assert "server.address" not in heard.call.attributes


async def test_letters_of_a_host_are_small(heard):
    """A URL that is taken as it is names the same server as any other."""
    await ask(traced(heard, [200]), yarl.URL("http://Example.COM/", encoded=True))

    assert "example.com" == heard.attempts[0].attributes["server.address"]


async def test_messages_of_errors_are_masked(heard):
    """Neither the status nor the event shows the secrets of a failure's text."""
    error = aiohttp.ClientError("GET http://ada:love@example.com/?token=abc")
    await ask(traced(heard, [error], max_total_attempts=1))

    for span in heard.spans():
        (event,) = span.events[-1:]
        message = "GET http://****@example.com/?token=****"
        assert message == event.attributes["exception.message"]
        assert f"ClientError: {message}" == span.status.description
        assert "exception.stacktrace" not in event.attributes
