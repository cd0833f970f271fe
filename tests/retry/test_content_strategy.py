"""Strategies that look at bodies: what they are shown, and what the caller gets."""

import asyncio

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from chains import NOW, URL, Answering, bad_argument, now, response_of
from chains import retrying_session as session
from fake_responses import unending

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryDecision,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy._bodies.response_content import buffer, read_head
from aioretry_smithy.testing import ScriptedTransport, ask


class WhileBusy(RetryStrategyWithContent):
    """Keeps what it was shown; retries failures, and bodies that say so."""

    def __init__(self, backoff=NOW, max_content_length=1024):
        self.backoff = backoff
        self.max_content_length = max_content_length
        self.seen = []

    def should_retry(self, ctx, cause, content):
        self.seen.append((ctx.log.response_status, cause, content))
        return self.backoff if content is None or b"busy" in content else None


class WhileBusyLater(WhileBusy):
    async def should_retry(self, ctx, cause, content):
        await asyncio.sleep(0.0)
        return super().should_retry(ctx, cause, content)


def body(text, status=200):
    return status, {}, text


class Foreign:
    """A body of a response class of the user's: no stream of aiohttp's."""

    def __bool__(self):
        return False


def foreign(response, read):
    """Replace aiohttp's stream by an object of the user's."""
    response.content = Foreign()
    response.read = read
    return response


def stalling(ctx, request):
    return unending(request)


@pytest.mark.parametrize("kind", [WhileBusy, WhileBusyLater])
async def test_body_decides(kind):
    """The same status is retried or not by what the body says."""
    strategy = kind()
    answers = [body(b"busy"), body(b"so busy"), body(b"done")]
    response = await response_of(session(answers, strategy))

    assert "done" == await response.text()
    assert [b"busy", b"so busy", b"done"] == [seen[2] for seen in strategy.seen]
    assert RequestLog.of(response).stop_reason is None


async def test_failed_attempt_has_no_content():
    """A strategy is shown the failure or the body, never both."""
    failure = aiohttp.ServerDisconnectedError()
    strategy = WhileBusy()
    response = await response_of(session([failure, body(b"down", 503)], strategy))

    assert [(None, failure, None), (503, None, b"down")] == strategy.seen
    assert RetryStopReason.NO_RETRY == RequestLog.of(response).stop_reason


@pytest.mark.parametrize("limit", [1, 4, 5, 6, 1024])
async def test_strategy_sees_the_beginning(limit):
    """Never more than it asked for, and the caller gets all of it."""
    strategy = WhileBusy(max_content_length=limit)
    async with session([body(b"12345")], strategy) as client:
        response = await client.get(URL)

        assert [b"12345"[:limit]] == [seen[2] for seen in strategy.seen]
        assert b"12345" == await response.content.read()
        assert b"" == await response.content.read()


@pytest.mark.parametrize("buffer_response", [False, True])
async def test_body_that_a_decorator_has_read(buffer_response):
    """A body that was read inside is shown as the response kept it."""

    @client_decorator
    async def read(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await response.read()
        response.release()  # reading again now raises, though the text is there
        return response

    strategy = WhileBusy(max_content_length=4)
    answers = [body(b"busy!"), body(b"done!")]
    client = session(answers, strategy, read, buffer_response=buffer_response)
    response = await response_of(client)

    assert [b"busy", b"done"] == [seen[2] for seen in strategy.seen]
    assert "done!" == await response.text()


async def test_body_that_a_decorator_has_begun():
    """A strategy is shown what is left, and so is the caller."""

    @client_decorator
    async def skip(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        await response.content.read(2)
        return response

    strategy = WhileBusy(max_content_length=2)
    async with session([body(b"123456")], strategy, skip) as client:
        response = await client.get(URL)

        assert [b"34"] == [seen[2] for seen in strategy.seen]
        assert b"3456" == await response.content.read()


async def test_body_that_a_decorator_has_thrown_away():
    """A body that nobody can read any more is a failed attempt."""

    @client_decorator
    async def forget(delegate, ctx, request):
        async with await delegate.execute(ctx, request) as response:
            return response

    strategy = WhileBusy()
    client = session([body(b"1"), body(b"2")], strategy, forget, max_total_attempts=2)
    with pytest.raises(aiohttp.ClientConnectionError) as caught:
        await response_of(client)

    log = RequestLog.of(caught.value)
    assert [None, None] == [seen[2] for seen in strategy.seen]
    assert all(attempt.response_cause for attempt in log.children)


@pytest.mark.parametrize("strategy", [WhileBusy(), RetryStrategy.failsafe(NOW)])
async def test_body_that_stalls_is_an_attempt_that_timed_out(strategy):
    """The time of the attempt holds while its body is read, with any transport."""
    async with session(
        [stalling, body(b"done")], strategy, attempt_timeout=3.0, buffer_response=True
    ) as client:
        response = await client.get(URL)
        ended = now()

    first, last = RequestLog.of(response).children
    assert 3.0 == ended == first.total_duration
    assert AttemptTimeoutError is type(first.response_cause)
    assert (200, None) == (last.response_status, last.response_cause)


async def test_failure_of_a_body_is_the_cause_that_the_strategy_gets():
    """The strategy is shown the very failure that the log has."""
    strategy = WhileBusy()
    response = await response_of(
        session([stalling, body(b"done")], strategy, attempt_timeout=3.0)
    )

    (_, cause, content), _ = strategy.seen
    assert content is None
    first = RequestLog.of(response).children[0]
    assert repr(cause) == repr(first.response_cause)


async def test_deadline_cuts_a_body_that_is_looked_at():
    """The deadline of the call holds for bodies too, and is not retried."""
    strategy = WhileBusy()
    with pytest.raises(ResponseTimeoutError) as caught:
        await response_of(session([stalling], strategy, timeout=5.0))

    log = RequestLog.of(caught.value)
    assert [] == strategy.seen
    assert ResponseTimeoutError is type(caught.value.__cause__)
    assert (RetryStopReason.DEADLINE, 5.0) == (log.stop_reason, log.total_duration)


async def test_cancellation_while_looking_closes_the_response():
    """A cancellation while a body is awaited leaves nothing behind."""
    responses = []

    def keeping(ctx, request):
        responses.append(stalling(ctx, request))
        return responses[0]

    async with session([keeping], WhileBusy()) as client:
        with capture_logs() as logs:
            task = asyncio.create_task(client.get(URL))
            await asyncio.sleep(1.0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    assert responses[0].closed
    assert RetryStopReason.CANCELLED == logs[0].stop_reason


async def test_body_of_a_refused_response_can_be_read():
    """``raise_for_status`` comes once, at the end, and finds the body whole."""
    seen = []

    async def refuse(response):
        seen.append((response.status, await response.text()))
        response.raise_for_status()

    strategy = WhileBusy(max_content_length=3)
    strategy.should_retry = lambda ctx, cause, content: (
        NOW if content == b"bus" else None
    )
    with pytest.raises(aiohttp.ClientResponseError):
        await response_of(
            session([body(b"busy", 503), body(b"gone", 503)], strategy),
            raise_for_status=refuse,
        )

    assert [(503, "gone")] == seen


async def test_answer_must_be_a_backoff():
    """A slip in a strategy is told, as with plain ones."""
    strategy = WhileBusy(backoff=0.5)
    with pytest.raises(
        ValueError, match=r"should_retry: 0.5 \(expected: a Backoff, a RetryD"
    ):
        await response_of(session([body(b"busy")], strategy))


def test_description_names_the_settings():
    """The text shows the settings, and nothing derived from them."""
    decorator = RetryingClient.new_decorator(
        RetryStrategy.never(), buffer_response=True, max_total_attempts=2
    )

    assert (
        "RetryingClient(strategy=RetryStrategy.never(), max_total_attempts=2, "
        "attempt_timeout=None, limiter=None, use_retry_after=True, "
        "max_retry_after=60.0, stop_after_delay=None, buffer_response=True, "
        "retry_count_header='armeria-retry-count')"
    ) == decorator(None).describe()


async def test_buffered_response_reads_in_every_way():
    """From memory by ``read()``, also after its end, and by its stream."""
    answers, never = [body(b"1\n2\n")] * 2, RetryStrategy.never()
    async with session(answers, never, buffer_response=True) as client:
        async with client.get(URL) as response:
            lines = [line async for line in response.content]
            assert b"" == await response.read()
        async with client.get(URL) as unread:
            pass

        assert [b"1\n", b"2\n"] == lines
        assert "1\n2\n" == await unread.text()


async def test_body_of_an_unknown_kind_is_read_as_a_whole():
    """A response class of the user's has ``read()``, and need have no more."""

    async def read():
        return b"busy!"

    async def fail():
        raise aiohttp.ClientPayloadError

    strategy = WhileBusy(max_content_length=4)
    answers = [
        lambda ctx, request: foreign(new_response(request), read),
        lambda ctx, request: foreign(new_response(request), fail),
        body(b"done"),
    ]
    await response_of(session(answers, strategy, buffer_response=True))

    assert [b"busy", None, b"done"] == [seen[2] for seen in strategy.seen]


async def test_body_put_back_as_one_piece_can_be_looked_at():
    """HTTP chunks that end inside of a piece do not shift what comes after."""
    response = new_response(await _request())
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(ResponseHandler(loop), 2**16, loop=loop)
    content.begin_http_chunk_receiving()
    for data in (b"1234", b"5678"):
        content.feed_data(data)
        content.end_http_chunk_receiving()
    content.feed_eof()
    response.content = content
    await buffer(response)
    response._body = None

    assert b"123" == await read_head(response, 3)
    assert [(b"1234", True), (b"5678", True)] == [
        part async for part in content.iter_chunks()
    ]


@pytest.mark.parametrize("status", [101, 200])
async def test_other_protocols_are_never_read(status):
    """The bytes after a 101 are no body: neither looking nor buffering touches them."""
    response = new_response(await _request(), status, body=b"frames")
    await buffer(response)

    assert (b"" if status == 101 else b"frames") == await read_head(response, 10)
    assert b"frames" == await response.content.read()


async def _request():
    transport = ScriptedTransport([200])
    await response_of(session(transport, RetryStrategy.never()))
    return transport.requests[0]


async def test_plain_strategy_waits_for_no_body():
    """A stream that goes on is handed over at its headers."""
    await response_of(session([stalling], RetryStrategy.never()))

    assert 0.0 == now()


class AnsweringLater(Answering):
    async def should_retry(self, ctx, cause):
        return super().should_retry(ctx, cause)


PLAIN = [Answering, AnsweringLater]


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("answer", [Backoff.fixed(1.0), RetryDecision.no_retry()])
async def test_content_is_for_those_who_are_reached(plain, answer):
    """A strategy that is not reached is not asked."""
    inside = WhileBusy()
    backoff = await ask(plain(answer) | inside, content=b"busy")

    assert RetryDecision.of(answer).backoff is backoff
    assert [] == inside.seen


@pytest.mark.parametrize("length", [0, -1, 1.5, "1", None, True])
def test_chain_refuses_a_length_that_is_none(length):
    """It is told where the chain is made, even if it is not the longest."""
    with bad_argument("max_content_length", length, "an int >= 1"):
        WhileBusy() | WhileBusy(max_content_length=length)


async def test_chain_in_a_session():
    """A plain strategy and one that looks at content share a call."""
    pause = Backoff.fixed(1.0)
    chain = RetryStrategy.failsafe(pause) | WhileBusy(Backoff.fixed(0.25))
    answers = [body(b"", 503), body(b"busy"), body(b"", 503), body(b"done")]
    response = await response_of(session(answers, chain))
    log = RequestLog.of(response)

    assert "done" == await response.text()
    assert [1.0, 0.25, 1.0, None] == [attempt.delay for attempt in log.children]
