"""Answers that bring a file, or a part of it, piece by piece, and break."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimeoutHandle
from story_script import after

from aioretry_smithy import new_response

FILE = b"".join(b"line %05d\n" % number for number in range(30))
TOTAL = len(FILE)
TAG = '"v1"'
NO_MORE = 416
PIECE = 50
"""Bytes that come at a time."""

PAUSE = 0.25
"""Seconds between them."""

CUT = aiohttp.ClientPayloadError("cut")
HOLD = object()
"""In place of an end: no further byte comes."""


class Line(asyncio.Transport):
    """A connection that is there, and carries nothing."""

    def is_closing(self):
        return False

    def close(self):
        pass

    abort = pause_reading = resume_reading = close


@dataclass(frozen=True)
class Part:
    """What is sent for one request for the file, or for the rest of it.

    Args:
        stop: Where it ends, a position in the file.
        end: A failure at the end, or ``HOLD``.
        status: The status; unless given 200 or 206, as was asked.
        changes: Headers in place of the usual ones; None leaves one out.
        also: More headers.
        chunked: Whether it comes in HTTP chunks.
        wait: Seconds before the headers.
        pause: Seconds between pieces.
    """

    stop: int | None = None
    end: Any = None
    status: int | None = None
    changes: dict[str, str | None] = field(default_factory=dict)
    also: tuple[tuple[str, str], ...] = ()
    chunked: bool = False
    wait: float = 0.0
    pause: float = PAUSE

    def __call__(self, ctx, request):
        return self._answer(ctx, request)

    async def _answer(self, ctx, request):
        await asyncio.sleep(self.wait)
        asked = request.headers.get("Range")
        start = int((asked or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        status = self.status or (200 if asked is None else 206)
        headers = {"ETag": TAG, "Content-Length": str(max(0, TOTAL - start))}
        if self.chunked:
            headers["Transfer-Encoding"] = "chunked"
            del headers["Content-Length"]
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{TOTAL - 1}/{TOTAL}"
        headers = {**headers, **self.changes}.items()
        given = [(name, value) for name, value in headers if value] + [*self.also]
        response = new_response(request, status, headers=given)
        if status == NO_MORE:
            # Each Python has words of its own for it.
            response.reason = "Range Not Satisfiable"
        response.content = stream = new_stream(ctx.remaining())
        stream.on_eof(response._response_eof)
        if self.chunked:
            stream.begin_http_chunk_receiving()
        self._play(stream, FILE[start : self.stop])
        return response

    def _play(self, stream, data):
        """Let the first piece of a body come, and the others one after another."""
        later = asyncio.get_running_loop().call_later
        later(self.pause if data else 0.0, self._feed, stream, data)

    def _feed(self, stream, data):
        piece, rest = data[:PIECE], data[PIECE:]
        if stream.exception() is not None:
            return
        if piece:
            stream.feed_data(piece)
        if piece and self.chunked:
            stream.end_http_chunk_receiving()
        if rest:
            self._play(stream, rest)
        elif self.end is None:
            stream.feed_eof()
        elif self.end is not HOLD:
            stream.set_exception(type(self.end)(*self.end.args))


def new_stream(seconds):
    """Make a body without an end yet, which may be read for so long."""
    loop = asyncio.get_running_loop()
    line = ResponseHandler(loop)
    line.connection_made(Line())
    limit = TimeoutHandle(loop, seconds, math.inf)
    stream = aiohttp.StreamReader(line, 2**16, timer=limit.timer(), loop=loop)
    started = limit.start()
    if started is not None:
        stream.on_eof(started.cancel)
    return stream


def broken(*positions, end=CUT, **settings):
    """Break at each of these positions, before it holds."""
    parts = [Part(stop=each, end=end, **settings) for each in positions]
    return [*parts, Part(**settings)]


def first_at_150(*others, **settings):
    """Break at first, then answer so."""
    return [Part(150, CUT, **settings), *others]


def lie(status=206, also=(), **changes):
    """Answer a request for the rest with what is none of it."""
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return first_at_150(Part(status=status, changes=named, also=also))


def reset():
    key = SimpleNamespace(host="shop.test", port=80, ssl=True)
    return aiohttp.ClientConnectorError(key, OSError(111, "Connect call failed"))


def raising(make):
    def answer(ctx, request):
        raise make()

    return answer


OLD = {
    "ETag": None,
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Date": "Sun, 06 Nov 1994 08:50:37 GMT",
}
RECENT = {**OLD, "Date": "Sun, 06 Nov 1994 08:49:38 GMT"}
LATER = {"Retry-After": "2"}

PARTS = {
    "whole": [Part()],
    "whole at once": [Part(pause=0.0)],
    "in chunks": [Part(chunked=True)],
    "breaks": broken(150),
    "breaks at once": broken(150, pause=0.0),
    "breaks thrice": broken(100, 101, 220),
    "breaks in chunks": broken(100, 200, chunked=True),
    "breaks at the beginning": broken(0, 0),
    "breaks at the end": broken(TOTAL),
    "is reset": broken(100, end=ConnectionResetError("reset")),
    "is disconnected": broken(100, end=aiohttp.ServerDisconnectedError()),
    "is silent": broken(100, end=aiohttp.SocketTimeoutError("silent")),
    "fails otherwise": broken(100, end=LookupError("otherwise")),
    "brings nothing": broken(*[100] * 9),
    "brings nothing at first": broken(100, 100, 100, 200),
    "ends early": [Part(150, CUT), Part(200, changes={"Content-Range": None})],
    "ends too early": first_at_150(Part(200), Part()),
    "503 for a part": first_at_150(503, Part()),
    "503 for all parts": first_at_150(503),
    "429 with a hint": first_at_150((429, LATER, b"later"), Part()),
    "404 for a part": first_at_150(404),
    "401 for a part": first_at_150(401, Part()),
    "cut before a part": first_at_150(aiohttp.ServerDisconnectedError, Part()),
    "refused before a part": first_at_150(raising(reset), Part()),
    "mistake before a part": first_at_150(raising(lambda: LookupError("mine")), Part()),
    "slow part": first_at_150(Part(wait=2.0)),
    "silent part": first_at_150(after(60.0)),
    "stalls": [Part(150, HOLD)],
    "part stalls": first_at_150(Part(200, HOLD)),
    "503 first": [503, *broken(150)],
    "cut first": [aiohttp.ServerDisconnectedError, *broken(150)],
    "no length": broken(150, 250, changes={"Content-Length": None}),
    "Last-Modified": broken(150, changes=OLD),
    "Last-Modified, recent": broken(150, changes=RECENT),
    "weak tag": broken(150, changes={"ETag": 'W/"v1"'}),
    "encoded": broken(150, changes={"Content-Encoding": "br2"}),
    "no ranges": broken(150, changes={"Accept-Ranges": "none"}),
    "an error page": [Part(150, CUT, status=404)],
    "a part at first": [Part(150, CUT, status=206)],
    "part: the whole again": lie(200),
    "part: another tag": lie(ETag='"v2"'),
    "part: no tag": lie(ETag=None),
    "part: two tags": lie(also=(("ETag", '"v2"'),)),
    "part: another type": lie(Content_Type="text/html"),
    "part: encoded": lie(Content_Encoding="br2"),
    "part: no range": lie(Content_Range=None),
    "part: a later start": lie(Content_Range="bytes 151-329/330"),
    "part: another length": lie(Content_Range="bytes 150-300/330"),
    "part: another total": lie(Content_Range="bytes 150-329/331"),
    "part: unknown total": lie(Content_Range="bytes 150-329/*"),
    "part: too long": lie(Content_Range="bytes 150-309/*", Content_Length=None),
    "part: 416 in between": lie(416, Content_Range="bytes */330"),
    "part: 416 at the end": [
        Part(TOTAL, CUT, changes={"Content-Length": None}),
        Part(status=416, changes={"Content-Range": "bytes */330"}),
    ],
    "part: 416 that says nothing": [
        Part(TOTAL, CUT, changes={"Content-Length": None}),
        Part(status=416),
    ],
}
"""By name: the answers to the requests of a download."""
