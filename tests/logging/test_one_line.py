"""The line of a call that people read."""

import asyncio
import logging.handlers
import re

import aiohttp
import pytest
from chains import after, log_of, log_of_cancelled, retrying, session
from token_strategies import Plain

from aioretry_smithy import (
    EndpointGroup,
    HedgingClient,
    LogFormatter,
    LoggingClient,
    LoggingRpcClient,
    RateLimit,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    SessionBuilder,
    client_decorator,
    rpc,
)
from aioretry_smithy.smithy import RetryError
from aioretry_smithy.testing import (
    FaultInjectingClient,
    InjectedFault,
    ScriptedTransport,
)

URL = "http://example.com/orders"
GET = f"GET {URL}"
DEBUG, INFO, WARNING = 10, 20, 30
THRICE = retrying(max_total_attempts=3)


@pytest.fixture
def written(logger):
    """A function that tells what was written: levels, and lines without an id."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [
        (record.levelno, re.sub(r", id=[a-z2-7]{8}-\d+(\.\d+)?", "", text))
        for record in handler.buffer
        for text in [record.getMessage()]
    ]


@pytest.fixture
def line(logger):
    """A logging client that writes such lines."""
    return LoggingClient.new_decorator(logger, formatter=LogFormatter.line())


@pytest.mark.parametrize(
    ("answers", "level", "words"),
    [
        ([after(1.0, 200)], DEBUG, "200 OK, 1 attempt in 1.00 s"),
        (
            [after(0.412, 503)] * 3,
            WARNING,
            "503 Service Unavailable, 3 attempts in 2.24 s (max_total_attempts)",
        ),
        ([404], WARNING, "404 Not Found, 1 attempt in 0.000 s (no_retry)"),
        (
            [aiohttp.ServerDisconnectedError()] * 3,
            WARNING,
            (
                "ServerDisconnectedError: Server disconnected, "
                "3 attempts in 1.00 s (max_total_attempts)"
            ),
        ),
    ],
)
async def test_line_of_a_call(written, line, answers, level, words):
    """Its outcome, what it took, and why it stopped without success."""
    await log_of(session(answers, THRICE, line), URL)

    assert [(level, f"{GET} -> {words}")] == written()


async def test_line_of_an_attempt_says_which_it_is(written, line):
    """There is one for each, with its own time, and none for its request."""
    await log_of(session([after(0.2, 503), after(0.1, 200)], line, THRICE), URL)

    assert [
        (WARNING, f"{GET} -> 503 Service Unavailable, attempt 1 in 0.200 s"),
        (DEBUG, f"{GET} -> 200 OK, attempt 2 in 0.100 s"),
    ] == written()


async def test_line_of_a_hedge_says_that_it_is_one(written, line):
    """And that of the loser, that another one had an answer."""
    hedging = HedgingClient.new_decorator(0.5)
    await log_of(session([after(9.0, 200), after(0.1, 200)], line, hedging), URL)

    assert {
        (DEBUG, f"{GET} -> superseded, attempt 1 in 0.600 s"),
        (DEBUG, f"{GET} -> 200 OK, hedge, attempt 2 in 0.100 s"),
    } == {*written()}


async def test_line_has_all_words_of_a_failure(written, line):
    """There is no other line that has them, as there is for a tree."""
    words = "the certificate of the server has expired " * 3
    await log_of(session([aiohttp.ClientError(words)], line), URL)

    assert [(WARNING, f"{GET} -> ClientError: {words} in 0.000 s")] == written()


async def test_words_that_are_a_page_are_cut(written, line):
    """A server may send megabytes."""
    await log_of(session([aiohttp.ClientError("x" * 9999)], line), URL)

    ((_, text),) = written()
    assert f"{GET} -> ClientError: {'x' * 226}… in 0.000 s" == text


async def test_line_says_why_a_retry_was_refused(written, line):
    """In the words of what refused it."""

    class Tenant(Plain):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            raise RetryError("tenant 7 has used up its allowance")

    await log_of(session([503], retrying(Tenant()), line), URL)

    end = "(no_retry: tenant 7 has used up its allowance)"
    answer = "503 Service Unavailable, 1 attempt in 0.000 s"
    assert [(WARNING, f"{GET} -> {answer} {end}")] == written()


async def test_line_of_what_was_not_sent_says_so(written, line):
    """With the name of what refused it."""

    def limit(key):
        return RateLimit(1, burst=1, cost=lambda ctx, request: 2)

    builder = SessionBuilder.standard(rate=limit, logging=line)
    await log_of(builder.build(), URL)

    ((level, text),) = written()
    assert WARNING == level
    assert text.endswith(
        "a cost of 2 is above the burst of 1, not sent, 1 attempt in 0.000 s (refused)"
    )


async def test_line_names_the_endpoint_that_answered(written, line):
    """Where there was a choice."""
    group = EndpointGroup.of("http://a:8080")
    chain = ScriptedTransport([200, 200]), line
    builder = SessionBuilder.standard(group, inside=chain, logging=line)
    await log_of(builder.build(), "/orders")

    assert [
        (DEBUG, "GET http://a:8080/orders -> 200 OK, attempt 1 in 0.000 s at a:8080"),
        (DEBUG, "GET http://a:8080/orders -> 200 OK, 1 attempt in 0.000 s at a:8080"),
    ] == written()


async def test_line_names_what_a_decorator_has_sent_instead(written, line):
    """Of the call; that of the attempt is about it."""

    @client_decorator
    async def moved(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(url="http://new.example/"))

    await log_of(session([200], line, moved), URL)
    await log_of(session([200], moved, line), URL)

    assert [
        (DEBUG, f"{GET} -> 200 OK in 0.000 s, changed to http://new.example/")
    ] * 2 == written()


async def test_line_hides_secrets_and_escapes_what_begins_new_ones(written, line):
    """As all views do."""
    cause = ValueError("token=hush\n\x1b[31mWARNING forged")
    await log_of(session([cause], line), f"{URL}?token=hush&name=a%0Ab")

    ((_, text),) = written()
    assert "hush" not in text
    assert ["GET http://example.com/orders?token=****&name=a%0Ab"] == text.splitlines()[
        0
    ].split(" -> ")[:1]
    assert 1 == len(text.splitlines())
    assert "\x1b" not in text


async def test_line_of_a_body_that_failed_has_both(logger, written):
    """The status, and the failure with the time until then."""
    line = LoggingClient.new_decorator(
        logger, formatter=LogFormatter.line(), log_after="body"
    )
    cut = FaultInjectingClient.new_decorator(InjectedFault.cut_body(after=2, rate=1.0))
    async with (
        session([(200, b"whole")], cut, line) as client,
        client.get(URL) as response,
    ):
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

    ((level, text),) = written()
    assert WARNING == level
    assert re.fullmatch(f"{GET} -> 200 OK, ClientPayloadError: .* in 0.000 s", text)


async def test_line_of_a_cancelled_call_is_at_its_level(written, line):
    """It is no failure."""

    async def silence(ctx, request):
        await asyncio.sleep(60)

    await log_of_cancelled(session([silence], THRICE, line), 1.5)

    ((level, text),) = written()
    assert DEBUG == level
    assert text.endswith(" -> CancelledError, 1 attempt in 1.50 s (cancelled)")


async def test_line_of_a_function_has_its_name(logger, written):
    """As it has no URL."""
    line = LoggingRpcClient.new_decorator(logger, formatter=LogFormatter.line())
    twice = RetryingRpcClient.new_decorator(RetryRule(exceptions=[KeyError]), 1)

    @rpc(line, twice, line, name="orders.fetch")
    async def fetch():
        raise KeyError("day")

    with pytest.raises(KeyError):
        await fetch()

    assert [
        "orders.fetch -> KeyError: 'day', attempt 1 in 0.000 s",
        "orders.fetch -> KeyError: 'day', 1 attempt in 0.000 s (max_total_attempts)",
    ] == [text for _, text in written()]


async def test_line_of_a_call_whose_retries_are_off_says_so(written, line, monkeypatch):
    """Or nobody would know why there was one attempt."""
    monkeypatch.setenv("AIORETRY_SMITHY_NO_RETRIES", "1")
    await log_of(session([503], THRICE, line), URL)

    ((_, text),) = written()
    assert text.endswith("retries are off (AIORETRY_SMITHY_NO_RETRIES)")


async def test_line_of_a_sampled_call_says_its_rate(logger, written):
    """In the word of the other formatters."""
    line = LoggingClient.new_decorator(
        logger,
        formatter=LogFormatter.line(),
        success_sampling_rate=0.25,
        random=lambda: 0.2,
    )
    await log_of(session([200], line), URL)

    assert [(DEBUG, f"{GET} -> 200 OK in 0.000 s, samplingRate=0.25")] == written()


async def test_line_of_a_call_under_way_has_no_time():
    """A handler of the caller's may ask for one at any time."""
    seen = []

    async def look(ctx, request):
        seen.append(LogFormatter.line().format_response(ctx.log))
        seen.append(LogFormatter.line().format_response(ctx.log.root))
        raise aiohttp.ClientError

    await log_of(session([look], retrying(max_total_attempts=1)), URL)

    assert [
        f"{GET} -> no response yet, attempt 1",
        f"{GET} -> no response yet, 1 attempt",
    ] == [text.partition(", id=")[0] for text in seen]


async def test_standard_chain_writes_one_line_for_a_failed_call(caplog):
    """On the logger of the library, and none for a success."""
    transport = ScriptedTransport([503])
    builder = SessionBuilder.standard(inside=[transport], max_total_attempts=1)
    await log_of(builder.build(), URL)
    good = SessionBuilder.standard(inside=[ScriptedTransport([200])])
    await log_of(good.build(), URL)

    (record,) = [each for each in caplog.records if each.levelno > DEBUG]
    words = "503 Service Unavailable, 1 attempt in 0.000 s (max_total_attempts)"
    assert ("aioretry_smithy", WARNING) == (record.name, record.levelno)
    assert record.getMessage().startswith(f"{GET} -> {words}, id=")
    assert isinstance(record.request_log, RequestLog)
