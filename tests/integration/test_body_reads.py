"""Reads of a body in threads, which go on when an attempt is cancelled."""

import asyncio
import io
import threading

from calls import begin, call_of, close_bodies
from fake_responses import Sink

from aioretry_smithy import HttpRequest
from aioretry_smithy._bodies.request_body import prepare


async def test_read_that_a_cancelled_attempt_left_running_is_waited_for(tmp_path):
    """Otherwise it would move the file under the next attempt's feet."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(io.BufferedReader):
        def read(self, size=-1):
            if not entered.is_set():
                entered.set()
                leave.wait(10)
            return super().read(size)

    (tmp_path / "file").write_bytes(b"0123456789")
    data = Slow(io.FileIO(tmp_path / "file"))
    request = HttpRequest("POST", "http://example.com/", data=data)
    ctx, sink = begin(request), Sink()
    attempt = asyncio.create_task(prepare(call_of(ctx), data).write(Sink()))
    await asyncio.to_thread(entered.wait, 10)
    attempt.cancel()
    await asyncio.wait([attempt])
    second = asyncio.create_task(prepare(call_of(ctx), data).write(sink))
    await asyncio.sleep(0.01)
    waiting = not second.done()
    leave.set()
    await second
    await close_bodies(ctx)
    data.close()

    assert waiting
    assert b"0123456789" == sink.sent
