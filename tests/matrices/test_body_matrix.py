"""Every kind of body against every fault: identical or refused, no third word."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from body_kinds import KINDS, Content
from chains import retrying
from fault_server import End, Fault, FaultServer, answer, cut, early
from yarl import URL

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)

TABLE = Path(__file__).parents[2] / "docs" / "explanation" / "bodies.csv"
SMALL, LARGE = 1 << 16, 5 << 20
"""Bytes that buffers take in at once, and more than they do: at most 4 MiB on Linux."""

CUT_AT = 1 << 20
CLOSED = URL("http://127.0.0.1:1/")
"""Nobody listens there."""


class Scene(NamedTuple):
    """A fault that meets the first attempt; the second one finds all well."""

    fault: Fault | None
    size: int


SCENES = {
    "answered late": Scene(answer(503), SMALL),
    "answered early": Scene(early(503), LARGE),
    "cut off": Scene(cut(read=CUT_AT, end=End.RESET), LARGE),
    "connection refused": Scene(None, SMALL),
}


@client_decorator
async def to_nobody(delegate, ctx, request):
    """Send the first attempt to a port where nobody listens."""
    if ctx.attempt == 1:
        request = request.replace(url=CLOSED)
    return await delegate.execute(ctx, request)


def build(scene, url):
    strategy = RetryStrategy.on_server_error_status(Backoff.without_delay())
    builder = SessionBuilder(url)
    if scene.fault is None:
        builder.decorator(to_nobody)
    return builder.decorator(retrying(strategy)).build()


def new_content(size, folder):
    path = folder / f"{size}.txt"
    if not path.exists():
        # Letters and digits: what is to be quoted takes aiohttp a second.
        path.write_text(random.Random(size).randbytes(size // 2).hex())
    return Content(path.read_bytes(), path)


def bodies_of(server):
    """Return the bodies that came whole, with the boundaries made equal."""
    bodies = []
    for request in server.requests:
        _, _, boundary = request.header("Content-Type").partition(b"boundary=")
        if request.is_whole:
            body = bytes(request.body)
            bodies.append(body.replace(boundary, b"boundary") if boundary else body)
    return bodies


async def sent_by_aiohttp(kind, content):
    """Return what aiohttp alone makes of a body."""
    options = KINDS[kind](content)
    data = options.get("data")
    if callable(data) and not isinstance(data, aiohttp.FormData):
        options["data"] = data()
    async with FaultServer() as server, aiohttp.ClientSession() as session:
        with content.stack:
            await session.post(server.url, **options)
    (body,) = bodies_of(server)
    return body


async def verdict(kind, scene, folder):
    """Meet a fault with a body, and say in a word what came of it."""
    content = new_content(scene.size, folder)
    expected = await sent_by_aiohttp(kind, content)
    faults = () if scene.fault is None else (scene.fault,)
    async with FaultServer(faults) as server, build(scene, server.url) as session:
        with content.stack:
            try:
                result = await session.post("/", **KINDS[kind](content))
            except aiohttp.ClientError as error:
                result = error
    requests = len(server.requests) + (scene.fault is None)
    if any(body != expected for body in bodies_of(server)):
        return "wrong bytes"
    return word_for(result, requests)


def word_for(result, requests):
    log = RequestLog.of(result)
    if log.total_attempts != requests:
        return f"{requests} requests in {log.total_attempts} attempts"
    status = getattr(result, "status", None)
    if (requests, status, log.stop_reason) == (2, 200, None):
        return "identical"
    if (requests, log.stop_reason) == (1, RetryStopReason.BODY_NOT_REPLAYABLE):
        return "refused"
    return f"{result!r} after {requests} attempts, {log.stop_reason}"


def documented():
    """Return the table of the documents, by kind and fault."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row.pop("body"): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bodies")


@pytest.mark.filterwarnings("ignore:Sending a large body directly")
@pytest.mark.parametrize("fault", SCENES)
@pytest.mark.parametrize("kind", KINDS)
async def test_body_meets_fault(kind, fault, folder):
    """The word for each cell is the one in the documents, on every aiohttp."""
    word = await verdict(kind, SCENES[fault], folder)

    assert documented()[kind][fault] == word


@pytest.mark.parametrize("kind", KINDS)
async def test_body_arrives_as_often_as_it_is_sent(kind, folder):
    """Attempts 1, 2 and 3 bring the same bytes; what is refused was sent once."""
    content = new_content(SMALL, folder)
    expected = await sent_by_aiohttp(kind, content)
    scene = SCENES["answered late"]
    async with FaultServer([scene.fault] * 2) as server, build(scene, server.url) as it:
        with content.stack:
            response = await it.post("/", **KINDS[kind](content))
    is_refused = documented()[kind]["answered late"] == "refused"

    assert (503 if is_refused else 200) == response.status
    assert [expected] * (1 if is_refused else 3) == bodies_of(server)


def test_documents_have_all_kinds():
    """The table names every kind and every fault, and knows two words."""
    table = documented()

    assert list(KINDS) == list(table)
    assert [list(SCENES)] * len(KINDS) == [list(row) for row in table.values()]
    assert {"identical", "refused"} == {
        word for row in table.values() for word in row.values()
    }


@pytest.mark.parametrize("make", ["``BytesIO``", "async generator"])
async def test_naive_replay_is_seen(make, folder):
    """A body that aiohttp alone loses without a word would not pass as identical."""
    content = new_content(SMALL, folder)
    options = KINDS[make](content)
    async with FaultServer([answer(503)]) as server, aiohttp.ClientSession() as session:
        statuses = []
        for _ in range(2):
            async with session.post(server.url, **options) as response:
                statuses.append(response.status)

    assert [503, 200] == statuses
    assert [content.data, b""] == bodies_of(server)
