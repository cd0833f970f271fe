"""Deadlines over sockets, on loops whose clocks have ticks of 1 and of 15.6 ms."""

import asyncio
import math

import pytest
from aiohttp import ClientTimeout
from chains import connected, retrying
from coarse_loop import TICK, CoarseLoop
from stream_server import StreamServer

from aioretry_smithy import (
    AttemptTimeoutError,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
)

pytestmark = pytest.mark.slow

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


@each_tick
@each_offset
def test_call_that_nothing_retries_says_so_too(tick, offset):
    """The timer is aiohttp's, and the error has a name."""
    error = run(tick, offset, DecoratingClient, total=TIMEOUT)

    assert ResponseTimeoutError is type(error)
    assert "the call had 0.130 s" == str(error)


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
