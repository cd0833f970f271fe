"""What stands in the place of ``ClientSession._request`` sees the caller's arguments.

Recorders such as vcrpy read, copy and pickle what they get there, and pass it on.
"""

import asyncio
import copy
import functools
import io
import os
import threading

import aiohttp
import pytest
import vcr
from aioresponses import aioresponses
from chains import SAFELY, pass_on, retrying
from fake_responses import sent_to
from fault_server import FaultServer, answer

from aioretry_smithy import (
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryStopReason,
    SessionBuilder,
    UnprocessedRequestError,
    decorate,
    undecorate,
)
from aioretry_smithy.testing import patch_aioresponses

CONTENT = b"0123456789"


class Uploads:
    """Opens a file, as often as it is uploaded."""

    def __init__(self, path):
        self.path = path
        self.opened = []

    def open(self, mode="rb"):
        self.opened.append(self.path.open(mode))
        return self.opened[-1]


@pytest.fixture
def path(tmp_path):
    """A file to upload, closed in the end."""
    file = tmp_path / "upload.bin"
    file.write_bytes(CONTENT)
    uploads = Uploads(file)
    yield uploads
    for each in uploads.opened:
        each.close()


async def pieces():
    yield CONTENT[:5]
    yield CONTENT[5:]


def form_with(file):
    form = aiohttp.FormData({"a": "b"})
    form.add_field("file", file, filename="upload.bin")
    return form


BODIES = {
    "bytes": lambda path: CONTENT,
    "bytearray": lambda path: bytearray(CONTENT),
    "file": lambda path: path.open(),
    "text file": lambda path: path.open("r"),
    "BytesIO": lambda path: io.BytesIO(CONTENT),
    "StringIO": lambda path: io.StringIO(CONTENT.decode()),
    "form with a file": lambda path: {"a": "b", "file": path.open()},
    "form in memory": lambda path: {"a": "b", "file": io.BytesIO(CONTENT)},
    "payload": lambda path: aiohttp.BytesPayload(CONTENT),
}
ONCE = {
    "FormData with a file": lambda path: form_with(path.open()),
    "FormData in memory": lambda path: form_with(io.BytesIO(CONTENT)),
    "generator": lambda path: pieces(),
}
"""What vcrpy cannot record, or nobody can send twice."""


def standard():
    return SessionBuilder.standard(logging=None).build()


def retrying_session():
    return decorate(aiohttp.ClientSession(), retrying(SAFELY))


def beside_a_decorator():
    return decorate(aiohttp.ClientSession(), pass_on)


def doing_nothing():
    return decorate(aiohttp.ClientSession(), DecoratingClient)


def logging_only():
    return decorate(aiohttp.ClientSession(), LoggingClient.new_decorator())


TWICE = {"standard": standard, "retry": retrying_session}
EACH = {
    **TWICE,
    "beside a decorator": beside_a_decorator,
    "nothing": doing_nothing,
    "log": logging_only,
}

of_each_body = pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
of_any_body = pytest.mark.parametrize(
    "body", [*BODIES.values(), *ONCE.values()], ids=[*BODIES, *ONCE]
)
that_sends_twice = pytest.mark.parametrize("make", TWICE.values(), ids=TWICE)
of_each_chain = pytest.mark.parametrize("make", EACH.values(), ids=EACH)


def recording(tmp_path, mode, name="cassette"):
    return vcr.use_cassette(str(tmp_path / f"{name}.yaml"), record_mode=mode)


async def put(session, url, body, method="put"):
    """Upload a body; return the status and the text of the answer."""
    async with session.request(method, url, data=body) as response:
        return response.status, await response.text()


def recorded(cassette):
    """Return the bodies that were recorded, as bytes where they are files."""
    bodies = [each.body for each in cassette.requests]
    return [each.read() if hasattr(each, "read") else each for each in bodies]


# vcrpy


@pytest.mark.slow
@of_each_body
@of_each_chain
async def test_upload_is_recorded_as_without_a_chain(body, make, path, tmp_path):
    """And it goes out whole."""
    async with FaultServer() as server, aiohttp.ClientSession() as plain:
        with recording(tmp_path, "once", "plain") as before:
            await put(plain, server.url, body(path))
        with recording(tmp_path, "once", "decorated") as after:
            async with make() as session:
                await put(session, server.url, body(path))

        assert [True, True] == [CONTENT in each.body for each in server.requests]
    assert 1 == len(after)
    if "payload" not in str(type(recorded(before)[0])):
        assert recorded(before) == recorded(after)


@pytest.mark.slow
@of_each_body
@of_each_chain
async def test_recorded_upload_is_played(body, make, path, tmp_path):
    """Without a server, whoever has recorded it."""
    async with FaultServer(then=answer(200, b"fine")) as server:
        url = server.url
        with recording(tmp_path, "once"):
            async with aiohttp.ClientSession() as plain:
                await put(plain, url, body(path))
    with recording(tmp_path, "none") as cassette:
        async with make() as session:
            answered = await put(session, url, body(path))

    assert (200, "fine") == answered
    assert 1 == cassette.play_count


@pytest.mark.slow
@of_each_body
@that_sends_twice
async def test_retried_upload_is_recorded_and_played(body, make, path, tmp_path):
    """Each attempt is, with the same body."""
    async with FaultServer([answer(503), answer(200, b"fine")]) as server:
        url = server.url
        with recording(tmp_path, "once") as written:
            async with make() as session:
                first = await put(session, url, body(path))

        assert [True, True] == [CONTENT in each.body for each in server.requests]
        sizes = {len(each.body) for each in server.requests}
    with recording(tmp_path, "none") as played:
        async with make() as session:
            second = await put(session, url, body(path))

    assert (200, "fine") == first == second
    assert 1 == len(sizes)
    assert 2 == played.play_count
    one, other = recorded(written)
    assert one == other or "payload" in str(type(one))


@that_sends_twice
async def test_json_is_seen_in_each_attempt(make, monkeypatch):
    """As the caller gave it; what goes out is the text of the first attempt."""
    value, seen = {"a": 1}, []
    watch(monkeypatch, lambda options: seen.append(options["json"]))
    async with FaultServer([answer(503), answer()]) as server:
        async with make() as session, session.put(server.url, json=value):
            pass

        assert [b'{"a": 1}'] * 2 == [each.body for each in server.requests]
    assert [True, True] == [each is value for each in seen]


@that_sends_twice
async def test_recorder_that_has_read_a_generator(make, tmp_path):
    """There is no second attempt: what could go out then would be empty."""
    async with FaultServer([answer(503)]) as server:
        with recording(tmp_path, "once"):
            async with make() as session, session.put(server.url, data=pieces()) as got:
                log = RequestLog.of(got)

        assert [CONTENT] == [each.body for each in server.requests]
    assert (503, 1) == (got.status, log.total_attempts)
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason


@pytest.mark.parametrize("method", ["get", "GET", "Get"])
@of_each_chain
async def test_cassette_of_a_session_without_a_chain_matches(make, method, tmp_path):
    """However the method is spelt."""
    async with FaultServer(then=answer(200, b"fine")) as server:
        url = server.url
        with recording(tmp_path, "once"):
            async with aiohttp.ClientSession() as plain:
                await put(plain, url, None, method)
    with recording(tmp_path, "none"):
        async with make() as session:
            assert (200, "fine") == await put(session, url, None, method)


# aioresponses


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [body for name, body in [*BODIES.items(), *ONCE.items()] if name != "generator"],
    ids=[name for name in [*BODIES, *ONCE] if name != "generator"],
)
@of_each_chain
async def test_callback_of_a_mock_gets_the_very_object(body, make, path):
    """Through any chain, in the first attempt; a buffer may be copied."""
    given, seen = body(path), []

    def look(url, **options):
        seen.append(options["data"])

    with patch_aioresponses(), aioresponses() as mock:
        mock.put("http://h/", callback=look)
        async with make() as session:
            (await session.put("http://h/", data=given)).close()

    assert [given] == seen
    assert isinstance(given, bytearray) or seen[0] is given


@pytest.mark.parametrize("kind", ["file", "BytesIO", "text file", "StringIO"])
@that_sends_twice
async def test_callback_gets_a_file_rewound_in_each_attempt(kind, make, path):
    """Whatever it has read before."""
    given, seen = BODIES[kind](path), []
    given.seek(2)

    def look(url, **options):
        seen.append((options["data"] is given, options["data"].read()))

    with patch_aioresponses(), aioresponses() as mock:
        mock.put("http://h/", callback=look, status=503)
        mock.put("http://h/", callback=look)
        async with make() as session:
            (await session.put("http://h/", data=given)).close()

    is_text = kind in {"text file", "StringIO"}
    rest = CONTENT[2:].decode() if is_text else CONTENT[2:]
    assert [(True, rest)] * 2 == seen


# Others that pass requests on


def watch(monkeypatch, look):
    """Look at the arguments of requests before aiohttp gets them."""
    send = aiohttp.ClientSession._request

    @functools.wraps(send)
    async def watched(session, method, url, **options):
        look(options)
        return await send(session, method, url, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", watched)


@pytest.mark.slow
@of_any_body
@that_sends_twice
async def test_watched_upload_is_retried_whole_or_not_at_all(
    body, make, path, monkeypatch
):
    """As one that nobody watches; a file is closed when the call has ended."""
    given, seen = body(path), []
    watch(monkeypatch, lambda options: seen.append(options["data"]))
    async with FaultServer([answer(503), answer()]) as server:
        async with make() as session:
            status, _ = await put(session, server.url, given)

        assert all(CONTENT in each.body for each in server.requests)
        assert 1 == len({len(each.body) for each in server.requests})
        assert (200 if len(seen) == 2 else 503) == status
    assert given == seen[0]
    assert isinstance(given, bytearray) or given is seen[0]
    # aiohttp has a thread close it.
    await asyncio.get_running_loop().shutdown_default_executor()
    assert all(each.closed for each in path.opened)


@pytest.mark.parametrize("kind", ["file", "BytesIO"])
@that_sends_twice
async def test_who_reads_a_file_and_does_not_rewind_it(kind, make, path, monkeypatch):
    """It goes out whole all the same."""
    watch(monkeypatch, lambda options: options["data"].read())
    async with FaultServer([answer(503), answer()]) as server:
        async with make() as session:
            await put(session, server.url, BODIES[kind](path))

        assert [CONTENT, CONTENT] == [each.body for each in server.requests]


async def test_factory_makes_what_others_see(monkeypatch):
    """They get no function, which aiohttp would refuse."""
    made, seen = [], []

    def factory():
        made.append(pieces())
        return made[-1]

    watch(monkeypatch, lambda options: seen.append(options["data"]))
    async with FaultServer([answer(503), answer()]) as server:
        async with retrying_session() as session:
            await put(session, server.url, factory)

        assert [CONTENT, CONTENT] == [each.body for each in server.requests]
    assert [True, True] == [a is b for a, b in zip(made, seen, strict=True)]


async def test_what_a_watched_session_has_of_ours_is_taken_away(monkeypatch, path):
    """Its class of requests is as before."""
    watch(monkeypatch, lambda options: None)
    async with FaultServer() as server, retrying_session() as session:
        await put(session, server.url, path.open())
        await put(session, server.url, path.open())
        undecorate(session)

        assert aiohttp.ClientRequest is session._request_class


async def test_session_whose_requests_cannot_take_bodies(monkeypatch, path):
    """A mock of the class gets the wrapped body, and others see that."""
    seen = []
    watch(monkeypatch, lambda options: seen.append(options["data"]))
    async with FaultServer([answer(503), answer()]) as server:
        session = aiohttp.ClientSession()
        session._request_class = functools.partial(aiohttp.ClientRequest)
        async with decorate(session, retrying(SAFELY)):
            await put(session, server.url, path.open())

        assert [CONTENT, CONTENT] == [each.body for each in server.requests]
    assert seen[0] is seen[1]


async def test_function_of_a_session_passes_requests_on(path):
    """One that was there before the chain."""
    seen = []
    async with FaultServer([answer(503), answer()]) as server:
        session = aiohttp.ClientSession()
        send = session._request

        async def watched(method, url, **options):
            seen.append(options["data"])
            return await send(method, url, **options)

        vars(session)["_request"] = watched
        given = path.open()
        async with decorate(session, retrying(SAFELY)):
            await put(session, server.url, given)

        assert [CONTENT, CONTENT] == [each.body for each in server.requests]
    assert [True, True] == [each is given for each in seen]


async def test_other_sender_that_closes_a_file_gets_it_once(path, monkeypatch):
    """The second attempt would have nothing to send."""
    calls = []

    async def send(session, method, url, **options):
        calls.append(options["data"].read())
        options["data"].close()
        raise aiohttp.ServerDisconnectedError

    sent_to(send, monkeypatch)
    async with retrying_session() as session:
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await put(session, "http://h/", path.open())

    assert [CONTENT] == calls
    log = RequestLog.of(caught.value)
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
async def test_pipe_goes_out_through_what_watches(tmp_path, monkeypatch):
    """It cannot be rewound, and is sent once."""
    name = tmp_path / "pipe"
    os.mkfifo(name)
    threading.Thread(target=name.write_bytes, args=(CONTENT,), daemon=True).start()
    watch(monkeypatch, lambda options: None)
    loop = asyncio.get_running_loop()
    pipe = await loop.run_in_executor(None, functools.partial(name.open, "rb"))
    async with FaultServer([answer(503)]) as server:
        async with retrying_session() as session:
            status, _ = await put(session, server.url, pipe)

        assert [CONTENT] == [bytes(each.body) for each in server.requests]
    assert 503 == status
    pipe.close()


@that_sends_twice
async def test_form_can_be_copied_while_it_is_sent(make, path, monkeypatch):
    """As without a chain, where all of it is in memory."""
    copies = []
    watch(monkeypatch, lambda options: copies.append(copy.deepcopy(options["data"])))
    async with FaultServer([answer(503), answer()]) as server:
        async with make() as session:
            status, _ = await put(session, server.url, form_with(io.BytesIO(CONTENT)))

        assert [True, True] == [CONTENT in each.body for each in server.requests]
    assert 200 == status
    assert [aiohttp.FormData] * 2 == [*map(type, copies)]


@pytest.mark.parametrize("is_watched", [False, True])
@of_each_chain
async def test_middleware_that_sends_a_stream_twice(make, is_watched, monkeypatch):
    """No server gets the rest of it, in chains that do nothing too."""

    async def insist(request, send):
        (await send(request)).close()
        return await send(request)

    if is_watched:
        watch(monkeypatch, lambda options: None)
    async with FaultServer() as server, make() as session:
        with pytest.raises(UnprocessedRequestError):
            await session.put(server.url, data=pieces(), middlewares=[insist])

        assert [CONTENT] == [each.body for each in server.requests if each.is_whole]
