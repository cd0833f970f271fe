"""A read that a given-up attempt left running in a thread spoils no other attempt."""

import asyncio
import io
import random
import time

import aiohttp
import pytest
from chains import connected, retrying
from fault_server import Fault, FaultServer, Read, response

from aioretry_smithy import Backoff, RequestLog, RetryStrategy

pytestmark = pytest.mark.slow

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


async def test_race_is_met():
    """Without the wait, the same file at the same server does lose bytes."""
    # A busy machine may begin the second read too late.
    tries = [await sent_twice() for _ in range(5)]

    assert not all(BODY in bodies for bodies in tries)
