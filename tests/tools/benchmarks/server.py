"""The server of the benchmarks, in a process of its own so that its CPU is its own.

``/ok`` is answered with 200, ``/once`` with 503 and then 200, each other path with 503,
503 and then 200. It prints its port and serves until its input ends, which it does too
when the client is killed.
"""

import asyncio
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
FAILURES = {b"/ok": 0, b"/once": 1}
FAILURES_ELSEWHERE = 2


class Answers(asyncio.Protocol):
    """Answers what a client sends, which always is one whole request."""

    def __init__(self, seen):
        self._seen = seen

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._transport.write(self._answer_to(data.split(b" ", 2)[1]))

    def _answer_to(self, path):
        self._seen[path] += 1
        if self._seen[path] <= FAILURES.get(path, FAILURES_ELSEWHERE):
            return BUSY
        del self._seen[path]
        return OK


async def serve():
    seen = Counter()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answers(seen), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


@contextmanager
def serving():
    """Run the server in another process; its URL, without a slash at the end."""
    command = [sys.executable, __file__]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


if __name__ == "__main__":
    asyncio.run(serve())
