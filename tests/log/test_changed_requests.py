"""The log shows the request that was sent, where a decorator further in changed it."""

import asyncio
import gc
import io
import logging
import weakref

import aiohttp
import pytest
from balanced import group_of
from chains import NOW, after, chain, log_of, pass_on, retrying, session
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    DecoratingClient,
    HedgingClient,
    LoggingClient,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    client_decorator,
    new_response,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

ASKED = "http://localhost/orders"
EU = "http://eu.example.com/orders"
RETRYING = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=3)


def changing(*changes):
    """Change requests, each in its own way, the last way again and again."""
    left = list(changes)

    @client_decorator
    async def change(delegate, ctx, request):
        made = left.pop(0) if left[1:] else left[0]
        return await delegate.execute(ctx, request.replace(**made))

    return change


class ToEurope(DecoratingClient):
    """Sends everything to another host."""

    async def execute(self, ctx, request):
        return await self.delegate.execute(ctx, request.replace(url=EU))


def asked(log):
    """Return the method and the URL that a log shows."""
    return log.request_method, str(log.request_url)


@pytest.mark.parametrize(
    "decorator", [ToEurope, changing({"url": EU})], ids=["class", "function"]
)
@pytest.mark.parametrize(
    "inside", [[], [pass_on], [CircuitBreakerClient.new_per_host_decorator()]]
)
async def test_attempt_shows_where_it_was_sent(decorator, inside):
    """Whatever stands between the decorator and the transport."""
    log = await log_of(session([503, 200], *inside, decorator, RETRYING), ASKED)

    assert [("GET", EU)] * 2 == [asked(each) for each in log.children]
    assert ("GET", ASKED) == asked(log)
    assert EU == str(log.children[0].request.url)
    assert EU == log.to_dict()["children"][0]["request_url"]
    assert ASKED == log.to_dict()["request_url"]


async def test_tree_has_the_url_of_each_attempt_that_differs():
    """In a column of its own, with the method where that is another one."""
    decorator = changing(
        {"url": EU},
        {"method": "POST", "url": f"{EU}/7", "params": {"a": "1"}},
        {"method": "HEAD"},
        {},
    )
    retries = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=4)
    log = await log_of(session([503, 503, 503, 200], decorator, retries), ASKED)

    assert [
        "GET http://localhost/orders  ->  200 OK  in 0.000 s, 4 attempts",
        "├─ 1  http://eu.example.com/orders             503 Service",
        "├─ 2  POST http://eu.example.com/orders/7?a=1  503 Service",
        "├─ 3  HEAD                                     503 Service",
        "└─ 4                                           200 OK",
    ] == [
        line.partition(" Unav")[0].partition("   0.0")[0].rstrip()
        for line in log.render().splitlines()
    ]


async def test_headers_are_those_that_were_sent():
    """Of the first attempt on the root; the count of attempts is among them."""

    @client_decorator
    async def sign(delegate, ctx, request):
        request = request.with_header("X-Attempt", f"{ctx.attempt}")
        return await delegate.execute(ctx, request)

    answers = [OSError(), TimeoutError(), OSError()]
    log = await log_of(session(answers, sign, RETRYING), ASKED)

    assert [
        {"X-Attempt": "1"},
        {"X-Attempt": "2", "armeria-retry-count": "1"},
        {"X-Attempt": "3", "armeria-retry-count": "2"},
    ] == [dict(each.request_headers) for each in log.children]
    assert {"X-Attempt": "1"} == dict(log.request_headers)


async def test_lines_of_attempts_show_what_was_sent(caplog):
    """Those of a logging client around the decorator; the call's are the caller's."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    lines = LoggingClient.new_decorator()
    decorator = changing({"method": "PUT", "url": EU, "headers": {"A": "1"}})
    await log_of(session([200], decorator, lines, RETRYING, lines), ASKED)
    requests = [line for line in caplog.messages if line.startswith("Request")]

    assert "host=eu.example.com, method=PUT, path=/orders, headers=[A=1]" in requests[0]
    assert "host=localhost, method=GET, path=/orders" in requests[1]


async def test_notes_have_the_url_of_each_attempt_that_differs():
    """On the exception that the caller gets."""
    decorator = changing({"url": EU}, {"method": "PUT"}, {})
    client = session([503, OSError("no"), OSError("no")], decorator, RETRYING)
    async with client:
        with pytest.raises(OSError, match="no") as caught:
            await client.get(ASKED)

    assert [
        f"attempt 1 ({EU}): 503 Service Unavailable",
        "attempt 2 (PUT): OSError: no",
        "attempt 3: OSError: no",
    ] == [note.partition(", 0.0")[0] for note in caught.value.__notes__]


async def test_url_in_a_row_is_masked_cut_and_escaped():
    """As everywhere."""
    url = f"http://user:hush@eu.example.com/?token=hush&a={'x' * 200}"
    decorator = changing({"url": url}, {"method": "GE\nT\x1b"})
    log = await log_of(session([503, 200], decorator, RETRYING), ASKED)
    first, second, third = log.render().splitlines()

    assert all(line.isprintable() for line in (first, second, third))
    assert "hush" not in log.render()
    assert "token=****" in second
    assert "…" in second
    assert len(second) < 150
    assert "GE\\nT\\x1b" in third


async def test_decorator_around_the_retries_changes_the_attempts():
    """The root is what the caller asked for, all the same."""
    log = await log_of(session([503, 200], RETRYING, ToEurope), ASKED)

    assert ("GET", ASKED) == asked(log)
    assert [("GET", EU)] * 2 == [asked(each) for each in log.children]
    assert 2 == log.render().count(EU)


@pytest.mark.parametrize(
    ("changes", "sent", "said"),
    [
        ({"url": EU}, (None, EU), f", changed to {EU}"),
        ({"method": "PUT"}, ("PUT", None), ", changed to PUT"),
        ({"method": "PUT", "url": EU}, ("PUT", EU), f", changed to PUT {EU}"),
        ({"headers": {"A": "1"}}, (None, None), ""),
        ({"url": ASKED, "method": "get"}, (None, None), ""),
        ({"params": {"a": "1"}}, (None, f"{ASKED}?a=1"), f", changed to {ASKED}?a=1"),
    ],
)
async def test_without_retries_the_log_says_what_was_sent_instead(changes, sent, said):
    """URL and method of the call are the caller's."""
    log = await log_of(session([200], changing(changes)), ASKED)
    values = log.to_dict()

    assert ("GET", ASKED) == asked(log)
    assert sent == (values["sent_method"], values["sent_url"])
    assert sent == (log.sent_method, log.sent_url and str(log.sent_url))
    assert f"GET {ASKED}  ->  200 OK  in 0.000 s{said}" == log.render()


async def test_what_was_sent_instead_is_masked():
    """In the tree and in JSON."""
    decorator = changing({"url": f"{EU}?token=hush"})
    log = await log_of(session([200], decorator), ASKED)

    assert f"{EU}?token=****" == log.to_dict()["sent_url"]
    assert "hush" not in log.render()


async def test_nothing_was_changed_where_nothing_reached_the_transport():
    """A breaker further in refused it; a decorator answered in its place."""
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    refusing = CircuitBreakerClient.new_decorator(breaker)

    @client_decorator
    async def answer(delegate, ctx, request):
        return new_response(request, 200)

    for inside in refusing, answer:
        log = await log_of(session([], inside, ToEurope), ASKED)

        assert (None, False) == (log.sent_url, log.sent)


async def test_last_request_of_an_attempt_counts():
    """A decorator may send another one before, such as for a token."""

    @client_decorator
    async def log_in(delegate, ctx, request):
        token = request.replace(method="POST", url="http://localhost/token")
        (await delegate.execute(ctx, token)).close()
        return await delegate.execute(ctx, request)

    log = await log_of(session([200, 404], log_in, RETRYING), ASKED)

    assert ("GET", ASKED) == asked(log.children[0])
    assert "token" not in log.render()


async def test_call_under_way_shows_what_is_sent():
    """From the moment that it is."""
    seen = []

    async def look(ctx, request):
        seen.append(ctx.log)
        await asyncio.sleep(1.0)
        assert ("GET", EU) == asked(ctx.log)
        return 200

    await log_of(session([503, look], ToEurope, RETRYING), ASKED)

    assert "armeria-retry-count" in seen[0].request_headers


async def test_each_hedge_shows_what_was_sent():
    """They are requests of their own."""
    decorator = changing({"url": EU}, {"url": f"{EU}/2"})
    hedging = HedgingClient.new_decorator(0.5)
    answers = [after(5.0, 200), after(0.1, 200)]
    log = await log_of(session(answers, decorator, hedging), ASKED)

    assert [("GET", EU), ("GET", f"{EU}/2")] == [asked(each) for each in log.children]
    assert ("GET", ASKED) == asked(log)


async def test_endpoint_is_no_change():
    """It has its own column; what a decorator changes beside it is one."""

    @client_decorator
    async def deeper(delegate, ctx, request):
        if ctx.attempt == 1:
            request = request.replace(url=request.url / "7")
        return await delegate.execute(ctx, request)

    transport = ScriptedTransport([503, 200])
    builder = chain(transport, deeper, RETRYING, base_url=group_of("ab"))
    log = await log_of(builder.build(), "/orders")

    assert "http://a.example/orders" == str(log.request_url)
    assert [
        "GET http://a.example/orders  ->  200 OK  in 0.000 s, 2 attempts",
        "├─ 1  a.example  http://a.example/orders/7  503 Service Unavailable",
        "└─ 2  b.example                             200 OK",
    ] == [line.partition("   0.0")[0].rstrip() for line in log.render().splitlines()]


async def test_decorator_that_answers_late_changes_nothing():
    """What it left running is no part of the call any more."""
    left = []

    @client_decorator
    async def leave(delegate, ctx, request):
        async def send():
            await asyncio.sleep(1.0)
            await delegate.execute(ctx, request.replace(url=EU))

        left.append(asyncio.create_task(send()))
        return new_response(request, 200)

    client = session([200], leave)
    async with client, client.get(ASKED) as response:
        log = RequestLog.of(response)
        await left[0]

    assert log.sent_url is None


@pytest.mark.parametrize("decorators", [[], [RETRYING]], ids=["once", "retrying"])
async def test_body_is_not_kept(decorators):
    """The log that is left has the request without it."""
    bodies = []

    @client_decorator
    async def fill(delegate, ctx, request):
        body = io.BytesIO(b"orders")
        bodies.append(weakref.ref(body))
        request = request.replace(url=EU, method="PUT", data=body)
        return await delegate.execute(ctx, request)

    log = await log_of(session([200], fill, *decorators), ASKED)
    gc.collect()

    assert [None] == [body() for body in bodies]
    assert f"PUT {EU}" in log.render()


async def test_function_shows_the_name_that_it_was_called_by():
    """Likewise: of the attempt; the call has the name that it was made under."""

    @client_decorator
    async def rename(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(name="reports.eu"))

    retries = RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[KeyError], backoff=NOW), max_total_attempts=2
    )
    logs = []
    for decorators in [rename, retries], [rename]:

        @rpc(*decorators, name="reports")
        async def fail():
            raise KeyError(7)

        with pytest.raises(KeyError) as caught:
            await fail()
        logs.append(RequestLog.of(caught.value))
    first, second = logs

    assert ["reports", "reports.eu", "reports.eu"] == [
        first.name,
        *(each.name for each in first.children),
    ]
    assert 2 == first.render().count("reports.eu")
    assert "attempt 2 of reports.eu: KeyError: 7" in caught_notes(first)
    assert second.render().startswith("reports  ->  KeyError: 7")
    assert second.render().endswith(", changed to reports.eu")
    assert (None, None) == (second.sent_method, second.sent_url)


def caught_notes(log):
    """Return the notes on what a call ended with."""
    return "\n".join(getattr(log.response_cause, "__notes__", ()))


async def test_request_that_cannot_be_sent_is_shown_as_it_was_made():
    """An invalid URL is reported by aiohttp; the log does not raise."""
    log = await log_of(session([200], changing({"url": "http://[/"}), RETRYING), ASKED)

    assert isinstance(log.response_cause, aiohttp.InvalidURL)
    assert "http://[/" in log.render()
    assert URL(ASKED) == log.request_url
