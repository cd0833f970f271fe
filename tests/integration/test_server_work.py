"""What failures cost servers, and when retries, deadlines and reads come."""

import asyncio
import io
import math
import random
import time
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import ClientTimeout, web
from chains import connected, pass_on, retrying
from coarse_loop import TICK, CoarseLoop
from fault_server import OK, End, Fault, FaultServer, Read, response
from stream_server import StreamServer

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryListener,
    RetryStrategy,
)
from aioretry_smithy._call.servers import is_slow, is_unserved


class Judging(CircuitBreakerStrategy):
    """Notes of each failure whether it is unserved, and whether it is slow."""

    def __init__(self):
        self.judged = []

    def should_report_as_success(self, ctx, cause):
        self.judged.append((is_unserved(ctx, cause), is_slow(ctx, cause)))


async def judged(url, **options):
    """Return the judgements of a request."""
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with connected(url, guard) as client:
        with suppress(aiohttp.ClientError):
            (await client.post("/", **options)).release()
    return judging.judged


UNSERVED, SLOW, SERVED = (True, False), (False, True), (False, False)
"""Whether the server is not at work, and whether it was slow."""
IN_LITTLE_TIME = {"timeout": aiohttp.ClientTimeout(total=0.2)}
WORK = {
    "reset soon": (Fault(send=(0.2,), end=End.RESET), {}, UNSERVED),
    "closed soon": (Fault(send=(0.2,), end=End.CLOSE), {}, UNSERVED),
    "reset late": (Fault(send=(1.5,), end=End.RESET), {}, SLOW),
    "closed late": (Fault(send=(1.5,), end=End.CLOSE), {}, SLOW),
    "502 at once": (Fault(send=(response(502),)), {}, UNSERVED),
    "503 at once": (Fault(send=(response(503),)), {}, UNSERVED),
    "503 late": (Fault(send=(1.2, response(503))), {}, SLOW),
    "busy": (Fault(send=(response(503, b"", "Retry-After: 1"),)), {}, SERVED),
    "silent": (Fault(send=(), end=End.STALL), IN_LITTLE_TIME, SLOW),
    "half a head": (Fault(send=(OK[:9],), end=End.CLOSE), {}, SERVED),
}
"""By name: what the server does, options of the request, and what that cost."""


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "options", "expected"), WORK.values(), ids=WORK)
async def test_failure_tells_what_it_cost(fault, options, expected):
    """It broke or was refused soon, or the server has had its time."""
    async with FaultServer([fault]) as server:
        assert [expected] == await judged(server.url, **options)


async def test_refused_connections():
    """Nobody listens there any more."""
    async with FaultServer() as server:
        url = server.url
    assert [UNSERVED] == await judged(url)


EXACTLY = RetryStrategy.failsafe(Backoff.without_delay())


class Throttling:
    """Sends each client away once, and notes when it did and when that came back."""

    def __init__(self, hint):
        self.hint = hint
        self.sent_away, self.came_back = [], []

    async def answer(self, request):
        if "armeria-retry-count" in request.headers:
            self.came_back.append(time.monotonic())
            return web.Response()
        self.sent_away.append(time.monotonic())
        return web.Response(status=429, headers={"Retry-After": self.hint})


@pytest.mark.parametrize("hint", ["0.0493", "0.05, 9", "0.1007"])
async def test_hint_with_decimals_is_never_waited_for_too_short(serving, hint):
    """Not by a part of a tick either."""
    server = Throttling(hint)
    running = await serving(server.answer)
    async with connected(running.make_url("/"), retrying(EXACTLY)) as session:
        for _ in range(5):
            async with session.get("/orders") as response:
                assert 200 == response.status

    waits = [
        back - away
        for away, back in zip(server.sent_away, server.came_back, strict=True)
    ]
    assert float(hint.partition(",")[0]) <= min(waits)


@pytest.mark.slow
async def test_clients_of_one_429_do_not_come_back_together(serving):
    """Thirty of them, within a time as long as the backoff."""
    server = Throttling("0.5")
    running = await serving(server.answer)
    for_half_a_second = retrying(RetryStrategy.failsafe(Backoff.fixed(0.5)))
    async with connected(running.make_url("/"), for_half_a_second) as session:
        await asyncio.gather(*(session.get(f"/{number}") for number in range(30)))

    assert 30 == len(server.came_back)
    first, last = min(server.came_back), max(server.came_back)
    assert 0.5 <= first - min(server.sent_away)
    assert 0.25 < last - first


CHAINS = pytest.mark.parametrize("around", [(), (pass_on,)], ids=["own", "foreign"])


class Calling(RetryListener):
    """Asks the same server for something else before each retry."""

    def __init__(self):
        self.statuses = []

    async def on_retry(self, ctx, cause, delay):
        if ctx.request.url.path == "/":
            async with self.session.get("/other") as got:
                self.statuses.append(got.status)


@CHAINS
@pytest.mark.parametrize(
    "fault",
    [
        Fault(send=(response(503, b"busy"),), end=End.KEEP),
        Fault(send=(response(503, b"x" * (4 << 20)),), end=End.KEEP),
        Fault(send=(), end=End.RESET),
    ],
    ids=["answer", "large answer", "reset"],
)
async def test_only_connection_of_a_pool_is_free(fault, around):
    """The listener may send a request through the session, as the last one is over."""
    calling, connector = Calling(), aiohttp.TCPConnector(limit=1)
    async with (
        FaultServer([fault]) as server,
        connected(
            server.url,
            *around,
            retrying(0.0, listeners=[calling]),
            *around,
            connector=connector,
        ) as session,
        asyncio.timeout(10.0),
    ):
        calling.session = session
        async with session.get("/") as got:
            log = RequestLog.of(got)

    assert ([200], 200, 2) == (calling.statuses, got.status, log.total_attempts)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
OFFSETS = (0.0, 0.3, 0.5, 0.7, 0.99)
TIMEOUT = 0.13
IN_BODY = 0.33  # the headers have to come before


each_tick = pytest.mark.parametrize("tick", [0.001, TICK], ids=["1ms", "16ms"])
each_offset = pytest.mark.parametrize("offset", OFFSETS)


def run(tick, offset, decorator, *, body=b"", read=False, **limits):
    """Call a server that falls silent, *offset* ticks after a tick."""

    async def handle(reader, writer):
        await reader.read(65536)
        writer.write(body)
        await reader.read()

    async def main():
        async with StreamServer(handle) as server:
            await asyncio.sleep(offset * tick)
            timeout = ClientTimeout(ceil_threshold=math.inf, **limits)
            async with connected(server.url(), decorator, timeout=timeout) as session:
                with pytest.raises(TimeoutError) as caught:  # noqa: PT012
                    response = await session.get("/")
                    assert read
                    await response.read()
            return caught.value

    with asyncio.Runner(loop_factory=lambda: CoarseLoop(tick)) as runner:
        return runner.run(main())


@pytest.mark.slow
@each_tick
@each_offset
def test_call_that_its_deadline_cut_says_so(tick, offset):
    """Not once is it the timeout of an attempt."""
    error = run(
        tick,
        offset,
        # Far from the deadline, or a busy machine lets both pass at once.
        retrying(0.0, max_total_attempts=1000, attempt_timeout=0.2),
        total=0.33,
    )

    log = RequestLog.of(error)
    assert ResponseTimeoutError is type(error)
    assert len(log.children) <= 2


@pytest.mark.slow
@each_tick
@each_offset
def test_call_that_nothing_retries_says_so_too(tick, offset):
    """The timer is aiohttp's, and the error has a name."""
    error = run(tick, offset, DecoratingClient, total=TIMEOUT)

    assert ResponseTimeoutError is type(error)
    assert "the call had 0.130 s" == str(error)


@pytest.mark.slow
@each_tick
@each_offset
@pytest.mark.parametrize(
    "decorator",
    [DecoratingClient, retrying(0.0, max_total_attempts=1000, attempt_timeout=None)],
)
def test_body_that_the_deadline_cuts_says_so(tick, offset, decorator):
    """The caller reads, and learns which limit passed."""
    error = run(tick, offset, decorator, body=HEAD, read=True, total=IN_BODY)

    assert ResponseTimeoutError is type(error)
    assert "the call had 0.330 s, which passed while its body was read" == str(error)
    assert TimeoutError is type(error.__cause__)


@pytest.mark.slow
@each_tick
@each_offset
def test_body_that_the_attempt_cuts_says_so(tick, offset):
    """The time of the last attempt covers its body."""
    error = run(
        tick,
        offset,
        retrying(0.0, max_total_attempts=1000, attempt_timeout=0.3),
        body=HEAD,
        read=True,
        total=60.0,
    )

    said = "attempt 1 had 0.300 s, which passed while its body was read"
    said += " (attempt_timeout=None for a stream)"
    assert (AttemptTimeoutError, said) == (type(error), str(error))


RUNS = 100
AT_ONCE = 10
BODY = random.Random(5).randbytes(1 << 17)
BLOCK = 1 << 14
"""Too little for aiohttp to wait until it is sent, before it reads on."""


class SlowFile(io.RawIOBase):
    """A file on a slow disk: a read waits, then takes what stands at its position.

    The second read is under way when the early answer comes, and still so when the next
    attempt rewinds.
    """

    def __init__(self):
        self._position = 0
        self._reads = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=io.SEEK_SET):
        assert whence == io.SEEK_SET
        self._position = offset
        return offset

    def read(self, size=-1):
        self._reads += 1
        time.sleep(0.03 if self._reads <= 3 else 0.0002)
        data = BODY[self._position :][: BLOCK if size < 0 else min(size, BLOCK)]
        self._position += len(data)
        return data


class KeptOpen(aiohttp.payload.IOBasePayload):
    """A file that aiohttp does not close between attempts, as a naive replay needs."""

    async def close(self):
        pass

    def _close(self):
        pass


def new_server():
    # The pause lets the second read begin; one that has not can still be taken back.
    return FaultServer([Fault(Read.HEAD, (0.01, response(503)))])


async def upload():
    """Meet an early answer with a slow file; return what arrived in the end."""
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    async with (
        new_server() as server,
        connected(server.url, retrying(strategy)) as session,
    ):
        answer = await session.put("/", data=SlowFile())
        assert 200 == answer.status
        assert 2 == RequestLog.of(answer).total_attempts
    (body,) = server.bodies
    return body


@pytest.mark.slow
async def test_no_run_is_corrupt():
    """A hundred replays of a file whose last read is still under way."""
    corrupt = 0
    for _ in range(RUNS // AT_ONCE):
        bodies = await asyncio.gather(*(upload() for _ in range(AT_ONCE)))
        corrupt += sum(body != BODY for body in bodies)

    assert 0 == corrupt


async def sent_twice():
    payload = KeptOpen(SlowFile())
    async with new_server() as server, aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.put(server.url, data=payload):
                pass
    return server.bodies


@pytest.mark.slow
async def test_race_is_met():
    """Without the wait, the same file at the same server does lose bytes."""
    # A busy machine may begin the second read too late.
    tries = [await sent_twice() for _ in range(5)]

    assert not all(BODY in bodies for bodies in tries)
