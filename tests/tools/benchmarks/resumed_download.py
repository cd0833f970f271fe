"""Download a large file over a connection that breaks again and again.

    python tests/tools/benchmarks/resumed_download.py
    python tests/tools/benchmarks/resumed_download.py --size 400 --breaks 5

It prints how many bytes the server sent for each byte of the file, the memory that came
to the process with it, and how many parts there are in the log.
"""

import argparse
import asyncio
import contextlib
import hashlib
import resource
import tracemalloc
from dataclasses import dataclass
from time import perf_counter

import aiohttp

from aioretry_smithy import RequestLog, ResumingClient, SessionBuilder

MB = 1_000_000
BLOCK = hashlib.sha512().digest() * 1024
"""What the file repeats: 64 kB."""


class BreakingServer:
    """Sends a file, and breaks off after so many bytes each time.

    Args:
        size: The bytes of the file.
        breaks: After how many bytes of an answer.
    """

    def __init__(self, size, breaks):
        self.size = size
        self.breaks = breaks
        self.sent = self.requests = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return f"http://{host}:{port}/file"

    async def __aexit__(self, *error):
        self._server.close()

    async def _answer(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            self.requests += 1
            at = int(head.partition("range: bytes=")[2].partition("-")[0] or 0)
            span = f"Content-Range: bytes {at}-{self.size - 1}/{self.size}\r\n"
            status = f"206 Partial Content\r\n{span}" if at else "200 OK\r\n"
            length = f"Content-Length: {self.size - at}\r\n"
            writer.write(f'HTTP/1.1 {status}{length}ETag: "v1"\r\n\r\n'.encode())
            end = min(self.size, at + self.breaks)
            while at < end:
                start = at % len(BLOCK)
                piece = BLOCK[start : start + end - at]
                writer.write(piece)
                await writer.drain()
                at += len(piece)
                self.sent += len(piece)
        writer.close()


@dataclass(frozen=True)
class Result:
    """What came of a download."""

    is_same: bool
    sent: int
    parts: int
    parts_in_log: int
    peak: int
    """The most memory that Python held at once meanwhile."""

    seconds: float


async def download(size, breaks, *, traced=True):
    """Download a file of so many bytes, which breaks after so many."""
    server = BreakingServer(size, breaks)
    builder = SessionBuilder.standard(connector=aiohttp.TCPConnector(limit=1))
    builder.decorator(ResumingClient.new_decorator()).response_timeout(None)
    at, is_same, started = 0, True, perf_counter()
    async with server as url, builder.build() as session:
        if traced:
            tracemalloc.start()
        async with session.get(url) as response:
            async for piece in response.content.iter_chunked(1 << 16):
                start = at % len(BLOCK)
                is_same &= (BLOCK * 2)[start : start + len(piece)] == piece
                at += len(piece)
            log = RequestLog.of(response)
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    return Result(
        is_same and at == size,
        server.sent,
        log.total_attempts or 0,
        len(log.children),
        peak,
        perf_counter() - started,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000, help="of the file, in MB")
    parser.add_argument("--breaks", type=int, default=50, help="after so many MB")
    arguments = parser.parse_args()
    size = arguments.size * MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = asyncio.run(download(size, arguments.breaks * MB, traced=False))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{arguments.size} MB, the same: {result.is_same}")
    print(f"sent: {result.sent / size:.3f} times its bytes")
    print(f"parts: {result.parts}, in the log: {result.parts_in_log}")
    print(f"memory: {(after - before) / 1024:.1f} MB more, with the server")
    print(f"time: {result.seconds:.1f} s")


if __name__ == "__main__":
    main()
