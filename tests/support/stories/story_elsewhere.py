"""Calls sent again, to another endpoint too, and answers that bring parts of a file."""

from __future__ import annotations

import asyncio
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import aiohttp
from addressed import PoolAt
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimeoutHandle
from chains import drawing
from fault_server import End, Fault, answer, cut, response
from pool_server import RESET
from story import errors_of_loop, told_of, told_request
from story_calls import generated
from story_chains import breaking, chain, logging_with, plain, retrying
from story_decorators import watching
from story_groups import FailingChoice, looked_at, settings_of
from story_hedges import limited
from story_service import after, drawn_alike
from story_text import LimiterWitness, Witness, settled, told_log
from story_text import plain as as_values

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    IdempotencyKeyClient,
    RefreshingClient,
    ResumingClient,
    capture_logs,
    new_response,
    request_options,
)

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
    end: object = None
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


@dataclass(frozen=True)
class Stale:
    """What happens to the connections between two calls, and what is asked then."""

    method: str = "GET"
    make: Callable | None = None
    """Makes the body."""
    how: Fault = RESET
    """How the first server breaks a connection that is used again."""
    all_break: bool = False
    """Whether the second one does so too."""
    scripts: tuple[tuple[str, Fault], ...] = ()
    """What each server does next with a request to ``/x``, by its name."""
    pin: str | None = None
    path: str = "/x"
    calls: int = 1


def endpoint_at(name, server):
    """Return a server as an endpoint with a name of its own."""
    url = f"http://{name}.test:{server.url.port}/{name}"
    return Endpoint(url, address=server.url.host)


async def group(witness, servers, **settings):
    """Make a group of the servers, each with a name of its own."""
    urls = [endpoint_at(*each) for each in servers.items()]
    return looked_at(witness, EndpointGroup.of(*urls, **settings_of(witness, settings)))


async def in_turn(witness, servers):
    return await group(
        witness, servers, selection=EndpointSelectionStrategy.round_robin()
    )


async def failing(witness, servers):
    return await group(witness, servers, selection=FailingChoice)


async def or_else(witness, servers):
    first, second = [
        await group(witness, {name: each}, name=name) for name, each in servers.items()
    ]
    return looked_at(witness, first.or_else(second))


async def alone(witness, servers):
    return await group(witness, {"a": servers["a"]})


async def no_group(witness, servers):
    return servers["a"].url


def told_anew(scenario, parts, base):
    """Describe calls to two servers, the connections of which break in between."""

    async def tell():
        witness = Witness()
        async with PoolAt("127.0.0.1", 0) as a, PoolAt("127.0.0.2", 0) as b:
            servers = {"a": a, "b": b}
            ports = {server.url.port: name for name, server in servers.items()}
            with (
                witness.listening(0),
                capture_logs() as witness.logs,
                errors_of_loop(witness),
                drawing(),
                drawn_alike(),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                where = await base(witness, servers)
                async with chain(*parts).open(witness, base_url=where) as session:
                    result = await played(scenario, witness, servers, session)
                await asyncio.sleep(0)
                state = [each() for each in witness.states]
        wire = {
            name: [told_request(each) for each in server.requests]
            for name, server in servers.items()
        }
        story = {
            "result": result,
            "wire": wire,
            "seen": witness.seen,
            "state": state,
            "logs": [told_log(log) for log in witness.logs],
        }
        return named(story, ports)

    return tell


def named(story, ports):
    """Return a story in which a name stands for each port."""
    text = json.dumps(as_values(settled(as_values(story))))
    for port, name in ports.items():
        text = text.replace(f":{port}", f":{name * 5}")
    return json.loads(text)


async def played(scenario, witness, servers, session):
    """Use a connection to each server, break them, and make the calls."""
    for name, server in servers.items():
        with request_options(endpoint=endpoint_at(name, server)):
            await told_of(witness, one(session, "GET", "/warm"))
    servers["a"].leave_stale(scenario.how)
    if scenario.all_break:
        servers["b"].leave_stale(scenario.how)
    for name, fault in scenario.scripts:
        target = f"/{name}/x"
        servers[name].scripts.setdefault(target, []).append(fault)
    options = {} if scenario.make is None else {"data": scenario.make()}
    block = {}
    if scenario.pin is not None:
        block["endpoint"] = endpoint_at(scenario.pin, servers[scenario.pin])
    results = []
    with request_options(**block):
        for _ in range(scenario.calls):
            call = one(session, scenario.method, scenario.path, **options)
            results.append(await told_of(witness, call))
    return results, await told_of(witness, one(session, "GET", "/after"))


async def one(session, method, path, **options):
    """Make a call, and tell its answer."""
    async with session.request(method, path.lstrip("/"), **options) as response:
        body = await response.read()
        return response.status, response.url.path, body, len(response.history)


async def fetch():
    return "token"


def keyed():
    return IdempotencyKeyClient.new_decorator(
        key=lambda ctx, request: "key", hosts=["http://a.test", "http://b.test"]
    )


CHAINS = {
    "alone": (),
    "retried": (retrying(limiter=LimiterWitness), logging_with()),
    "limited": (limited(1), breaking(), retrying()),
    "watched": (watching("inside"), retrying(), watching("outside")),
    "hedged": (plain(HedgingClient.new_decorator(60.0)), retrying()),
    "with a token": (
        plain(RefreshingClient.new_decorator(fetch, hosts=None)),
        retrying(),
    ),
    "resumed": (retrying(), plain(ResumingClient.new_decorator())),
    "attempts of 5 s": (breaking(), retrying(attempt_timeout=5.0)),
}
"""By name."""

GROUPS = {
    "in order": group,
    "in turn": in_turn,
    "choice fails": failing,
    "or else": or_else,
    "one only": alone,
    "no group": no_group,
}
"""By name: what makes the base of the session."""


def part_of_file(start, stop=None, status=206):
    """Answer with a part of a file, all of it or up to where it breaks off."""
    headers = [f"ETag: {TAG}"]
    if status == 206:
        headers.append(f"Content-Range: bytes {start}-{TOTAL - 1}/{TOTAL}")
    sent = response(status, FILE[start:], *headers)
    if stop is None:
        return Fault(send=(sent,))
    return Fault(send=(sent[: stop - TOTAL],), end=End.CLOSE)


def redirect(where):
    return answer(302, b"", f"Location: {where}")


STALES = {
    "GET": Stale(),
    "GET, closed": Stale(how=Fault(send=(), end=End.CLOSE)),
    "PUT of bytes": Stale("PUT", lambda: b"body"),
    "PUT of a generator": Stale("PUT", generated),
    "POST of bytes": Stale("POST", lambda: b"body"),
    "both are stale": Stale(all_break=True),
    "503 there": Stale(scripts=(("b", answer(503, b"busy")),)),
    "cut there": Stale(scripts=(("b", cut(end=End.RESET)),)),
    "pinned": Stale(pin="a"),
    "three calls": Stale(calls=3),
    "redirected": Stale(
        how=redirect("/a/there"), scripts=(("a", answer(200, b"there")),)
    ),
    "half of a file": Stale(
        how=part_of_file(0, 100, status=200),
        scripts=(("a", part_of_file(100, 200)), ("a", part_of_file(200))),
    ),
}
"""By name."""

STORIES = {
    f"{name}: {chain}: {stale}": told_anew(scenario, parts, base)
    for name, base in GROUPS.items()
    for chain, parts in CHAINS.items()
    for stale, scenario in STALES.items()
    if name in {"in order", "or else"}
    or (chain == "retried" and stale in {"GET", "both are stale", "PUT of bytes"})
    if not (name != "in order" and chain in {"with a token", "attempts of 5 s"})
}
"""By name: functions that tell the story."""
