"""Readers of resumed downloads, what reports say of them, and one version only."""

import asyncio
import gc
import weakref
from unittest import mock

import aiohttp
import pytest
from chains import NOW, SAFELY, connected, response_of, retrying, session
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    RETRYING,
    Answer,
    DownloadServer,
    broken_at,
    download,
)
from hypothesis import given
from hypothesis import strategies as st
from made_lines import keeping
from stream_server import StreamServer

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RequestLog,
    ResumingClient,
    client_decorator,
    decorate,
)


async def _until(condition):
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


async def test_the_caller_may_close_while_a_part_is_asked_for():
    """A reader in another task ends as with aiohttp, and nothing is left open."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with (
        DownloadServer(*answers) as server,
        connected(None, RETRYING, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await reading
        log = RequestLog.of(response)

        assert not session.connector._acquired
    assert "CancelledError" == log.children[1].response_cause_type
    assert (True, None) == (log.is_complete, log.response_cause)


async def test_a_response_that_is_dropped_frees_its_connection():
    """A pool of one serves the next call then."""
    async with DownloadServer(*broken_at(5_000), Answer(end=True)) as server:
        connector = aiohttp.TCPConnector(limit=1)
        async with connected(None, RESUMING, connector=connector) as session:
            response = await session.get(server.url)
            await response.content.readexactly(5_001)
            del response
            gc.collect()
            async with asyncio.timeout(5.0), session.get(server.url) as response:
                assert FILE == await response.read()


async def test_a_closed_session_is_not_resumed():
    """Its error goes out."""
    async with DownloadServer(Answer(stop=5_000, end=HOLD)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await session.close()
        with pytest.raises(RuntimeError, match="closed"):
            async with asyncio.timeout(5.0):
                await response.content.read()

    assert 1 == len(server.asked)


async def test_a_session_that_is_closed_before_a_part_fails_it():
    """As any call of it would."""
    async with DownloadServer(Answer(stop=5_000)) as server:
        session = connected(None, RESUMING)
        response = await session.get(server.url)
        await response.content.readexactly(5_000)
        await _until(lambda: response.connection.closed)
        await session.close()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()
        with pytest.raises(RuntimeError, match="Session is closed"):
            await response.content.read()


@pytest.mark.parametrize("kind", [TimeoutError, None])
async def test_a_decorator_may_not_heed_that_the_caller_has_closed(kind):
    """The reader ends as with aiohttp all the same, and is not cancelled."""
    waiting = asyncio.Event()

    @client_decorator
    async def stubborn(delegate, ctx, request):
        if not request.headers.get("Range"):
            return await delegate.execute(ctx, request)
        waiting.set()
        try:
            await asyncio.sleep(5.0)
        except asyncio.CancelledError:
            if kind is not None:
                raise kind from None
        return await delegate.execute(ctx, request)

    async def read(response):
        with pytest.raises(aiohttp.ClientConnectionError, match="closed"):
            await response.content.readexactly(6_000)
        return asyncio.current_task().cancelling()

    answers = [Answer(stop=5_000), Answer(end=True)]
    async with (
        DownloadServer(*answers) as server,
        connected(None, stubborn, RESUMING) as session,
    ):
        response = await session.get(server.url)
        reading = asyncio.create_task(read(response))
        await waiting.wait()
        response.close()

        assert 0 == await reading
        assert not session.connector._acquired


async def test_a_reader_that_is_cancelled_beside_a_closing_caller_is_cancelled():
    """Its own cancellation is not taken for the end of the response."""
    answers = [Answer(stop=5_000), Answer(wait=asyncio.Event())]
    async with DownloadServer(*answers) as server, connected(None, RESUMING) as session:
        response = await session.get(server.url)
        reading = asyncio.create_task(response.content.readexactly(6_000))
        await server.until(asked=2)
        response.close()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_the_connection_of_the_response_is_that_of_the_part():
    """Who asks for it sees the one that is in use."""
    async with (
        DownloadServer(Answer(stop=5_000, end=HOLD)) as server,
        connected(None, RESUMING) as session,
    ):
        async with session.get(server.url) as response:
            connection = response.connection
            peer = connection.transport.get_extra_info("peername")

            assert not connection.closed
            assert "Connection<" in repr(connection)
            assert f"http://{peer[0]}:{peer[1]}" == server.origin
            assert connection.protocol is not None
        assert connection.closed


async def test_nothing_of_a_whole_download_waits_for_the_garbage_collector():
    """Once the caller drops the response, all of it is gone."""
    gc.collect()
    gc.disable()
    try:
        async with (
            DownloadServer(*broken_at(5_000)) as server,
            connected(None, RESUMING) as session,
        ):
            async with session.get(server.url) as response:
                await response.read()
            known = weakref.ref(response)
            del response

            assert known() is None
    finally:
        gc.enable()


NEVER = ResumingClient.new_decorator(request_filter=lambda request: False)
KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Dropping(StreamServer):
    """Answers so many requests of a connection, and closes it on the next one."""

    def __init__(self, answered=0):
        self.answered = answered
        self.asked = 0
        super().__init__(self._answer)

    async def _answer(self, reader, writer):
        for number in range(self.answered + 1):
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            if number < self.answered:
                writer.write(KEPT)


@pytest.mark.parametrize("decorator", [RESUMING, NEVER])
@pytest.mark.parametrize("method", ["PUT", "GET"])
async def test_with_a_connector_of_others_it_is_sent_again_once(decorator, method):
    """Whose connections may have been used before; each request has a log."""
    connector = aiohttp.TCPConnector()
    borrowing = aiohttp.ClientSession(connector=connector, connector_owner=False)
    async with Dropping() as server, connector, borrowing:
        decorate(borrowing, decorator)
        with pytest.raises(aiohttp.ServerDisconnectedError) as error:
            await borrowing.request(method, server.url())
        log = RequestLog.of(error.value)

        assert 2 == server.asked
    assert 2 == log.total_attempts
    assert ["stale_connection", None] == [each.delay_source for each in log.children]


async def test_a_resend_has_a_log():
    """On a connection of the pool that was broken."""
    own = aiohttp.ClientSession()
    async with Dropping(answered=1) as server, own:
        decorate(own, RESUMING)
        for _ in "ab":
            async with own.put(server.url()) as response:
                await response.read()
        log = RequestLog.of(response)

    assert ["stale_connection", None] == [each.delay_source for each in log.children]
    assert (200, 2, None) == (log.response_status, log.total_attempts, log.stop_reason)


async def test_what_is_an_attempt_already_stays_one():
    """That of a decorator outside."""

    @client_decorator
    async def deriving(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    response = await response_of(session([200], NEVER, deriving))

    assert 1 == RequestLog.of(response).total_attempts


async def summary(tmp_path, *answers, decorators=(RETRYING, RESUMING)):
    """Download a file, and report on it."""
    with keeping(tmp_path) as kept:
        async with DownloadServer(*answers) as server:
            await download(server.url, *decorators, kept.lines)
        found = kept.answers()
        assert found["summary"] == kept.read()["summary"]
    return found


async def test_parts_are_no_retries(tmp_path):
    """The rest of a body is asked for, and nothing is tried again."""
    found = await summary(tmp_path, *broken_at(5_000, 9_000))

    shown = found["summary"]
    assert (3, 0) == (shown["attempts"], shown["retries"])
    assert 2 == shown["resumes"]
    assert (1, 0) == (shown["successes_without_retries"], shown["successes_by_retries"])
    outcomes = ["200, ClientPayloadError", "206, ClientPayloadError"]
    assert [(outcome, 1, 0) for outcome in outcomes] == [
        (failure["outcome"], failure["attempts"], failure["retried"])
        for failure in found["failures"]
    ]
    assert 0 == found["timeline"]["moments"][0]["retries"]


async def test_parts_alone(tmp_path):
    """The same where nothing else sends again."""
    found = await summary(tmp_path, *broken_at(5_000), decorators=[RESUMING])

    shown = found["summary"]
    assert (2, 0, 1) == (shown["attempts"], shown["retries"], shown["resumes"])


async def test_a_part_that_is_tried_again_is_a_retry(tmp_path):
    """It is asked for twice, and one of these is the rest of the body."""
    answers = [Answer(stop=5_000), Answer(status=503), Answer()]
    found = await summary(tmp_path, *answers)

    shown = found["summary"]
    assert (3, 1, 1) == (shown["attempts"], shown["retries"], shown["resumes"])
    assert 1 == shown["successes_by_retries"]


async def test_each_part_of_a_download_may_wait():
    """Bytes have come since the last wait, so the server was there."""
    breaker = CircuitBreaker("files", circuit_open_window=0.1)

    @client_decorator
    async def while_it_is_away(delegate, ctx, request):
        breaker.enter_state(CircuitState.OPEN)
        return await delegate.execute(ctx, request)

    chain = (
        CircuitBreakerClient.new_decorator(breaker, wait_for_ready=0.25),
        while_it_is_away,
        ResumingClient.new_decorator(),
    )
    async with DownloadServer(*broken_at(5_000, 10_000, 15_000)) as server:
        body, log = await download(server.url, *chain)

    assert FILE == body
    assert 4 == len(log.children)


FIRST = bytes(range(256)) * 12
OTHER = FIRST[::-1]
LENGTH = len(FIRST)

positions = st.integers(0, LENGTH)
sizes = st.sampled_from([0, 1, 100, 1_000])

HONEST = ["whole", "short", "open"]
LIES = {
    "tag": lambda start: {"changes": {"ETag": '"v2"'}},
    "weak tag": lambda start: {"changes": {"ETag": 'W/"v1"'}},
    "no tag": lambda start: {"changes": {"ETag": None}},
    "again": lambda start: {"status": 200},
    "time": lambda start: {
        "changes": {"Last-Modified": "Sun, 06 Nov 1994 08:49:38 GMT"}
    },
    "type": lambda start: {"changes": {"Content-Type": "text/html"}},
    "encoding": lambda start: {"changes": {"Content-Encoding": "aes128gcm"}},
    "range": lambda start: {
        "changes": {"Content-Range": f"bytes {start + 1}-{LENGTH}/{LENGTH}"}
    },
    "no range": lambda start: {"changes": {"Content-Range": None}},
    "missing": lambda start: {"status": 404},
    "broken": lambda start: {"status": 500},
}
LIES_ABOUT_THE_LENGTH = {
    "total": lambda start: {
        "changes": {"Content-Range": f"bytes {start}-{LENGTH - 1}/{LENGTH + 1}"}
    },
    "end": lambda start: {
        "status": 416,
        "changes": {"Content-Range": f"bytes */{start}"},
    },
    "unsaid end": lambda start: {"status": 416, "changes": {"Content-Range": None}},
}


def honest(kind, stop, chunk):
    """Make a part of the first version, which may break off."""

    def answer(asked):
        start, end, changes = asked.start, LENGTH, {}
        if start == LENGTH:
            changes = {"Content-Range": f"bytes */{LENGTH}", "Content-Length": "0"}
            return Answer(status=416, body=b"", changes=changes)
        if kind == "short":
            end = min(LENGTH, start + 1 + stop // 3)
        total = "*" if kind == "open" else LENGTH
        changes["Content-Range"] = f"bytes {start}-{end - 1}/{total}"
        if not chunk:
            changes["Content-Length"] = str(end - start)
        breaks = None if stop >= end else max(start, stop)
        return Answer(
            stop=breaks,
            body=FIRST[:end],
            chunk=chunk,
            changes=COMMON | changes,
            end=True if breaks is None else None,
        )

    return answer


COMMON = {
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Content-Type": "application/octet-stream",
}


def lying(lie, chunk):
    """Make a part of another version, with a header that contradicts the first one."""

    def answer(asked):
        settings = lie(asked.start)
        changes = COMMON | settings.pop("changes", {})
        return Answer(body=OTHER, chunk=chunk, changes=changes, **settings)

    return answer


@st.composite
def servers(draw):
    """Draw what a server answers, and whether it is honest.

    It breaks off and sends short parts; in the end there may be a lie.
    """
    chunk = draw(sizes)
    first = Answer(
        stop=draw(positions.filter(lambda at: at < LENGTH)),
        body=FIRST,
        chunk=chunk,
        changes=COMMON,
    )
    parts = st.builds(honest, st.sampled_from(HONEST), positions, sizes)
    answers = [first, *draw(st.lists(parts, max_size=6))]
    lies = LIES if chunk else LIES | LIES_ABOUT_THE_LENGTH
    lie = draw(st.none() | st.sampled_from([*lies]))
    if lie is None:
        return [*answers, honest("whole", LENGTH, 0)], True
    return [*answers, lying(lies[lie], draw(sizes))], False


async def read(answers, *decorators):
    got, failure = bytearray(), None
    connector = aiohttp.TCPConnector(limit=1)
    async with (
        DownloadServer(*answers) as server,
        connected(None, *decorators, connector=connector) as session,
        asyncio.timeout(20.0),
        session.get(server.url) as response,
    ):
        try:
            async for piece in response.content.iter_any():
                got += piece
        except aiohttp.ClientPayloadError as error:
            failure = error
    return bytes(got), failure


@pytest.mark.slow
@given(servers(), st.booleans())
def test_no_download_differs_from_the_whole(server, has_retries):
    """It is the first version to the byte, or ends with an error within it.

    It comes whole where no answer contradicts an earlier one.
    """
    answers, is_honest = server
    resuming = ResumingClient.new_decorator(max_resumes_without_progress=100)
    retries = [retrying(SAFELY)] if has_retries else []
    # Parts that bring nothing are followed at once.
    with mock.patch.object(Backoff, "of_default", return_value=NOW):
        got, failure = asyncio.run(read(answers, *retries, resuming))

    assert FIRST.startswith(got)
    assert FIRST == got or failure is not None
    assert FIRST == got or not is_honest
