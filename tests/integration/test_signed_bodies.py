"""Middlewares of aiohttp that sign a body, or ask for it, do not use it up."""

import hashlib
import io
import os

import aiohttp
import pytest
from aiohttp import web
from chains import SAFELY, connected, pass_on, retrying
from streamed_bodies import Once, Progress, form, multipart, pieces
from token_servers import LOGIN, PASSWORD, DigestServer

from aioretry_smithy import (
    LoggingClient,
    RequestLog,
    RetrySafety,
    RetryStopReason,
    RetryStrategy,
    UnprocessedRequestError,
    retry_safety,
)

CONTENT = bytes(range(256)) * 400


READ_ONCE = {
    "generator": lambda: pieces(CONTENT),
    "progress": lambda: Progress(pieces(CONTENT)),
    "once": lambda: Once([CONTENT]),
    "multipart": lambda: multipart(pieces(CONTENT)),
    "form": lambda: form(pieces(CONTENT)),
}
SENT_AGAIN = {
    "bytes": lambda: CONTENT,
    "BytesIO": lambda: io.BytesIO(CONTENT),
    "form with BytesIO": lambda: form(io.BytesIO(CONTENT)),
    "factory of a generator": lambda: lambda: pieces(CONTENT),
    "factory of bytes": lambda: lambda: CONTENT,
}
every_body = pytest.mark.parametrize(
    "make", (READ_ONCE | SENT_AGAIN).values(), ids=READ_ONCE | SENT_AGAIN
)
every_stream = pytest.mark.parametrize("make", READ_ONCE.values(), ids=READ_ONCE)
every_chain = pytest.mark.parametrize(
    "decorator",
    [LoggingClient.new_decorator(), pass_on, retrying(), retrying(SAFELY)],
    ids=["logging", "ordinary", "retrying", "retrying safely"],
)


async def sign(request, send):
    """Send the hash of a body with it, as signatures of clouds do."""
    body = await request.body.as_bytes() if request.body else b""
    request.headers["X-Signature"] = hashlib.sha256(body).hexdigest()
    return await send(request)


class Signed:
    """A server that reads signed bodies, and refuses what is signed wrongly."""

    def __init__(self, *faults):
        self._faults = iter(faults)
        self.bodies = []

    async def handle(self, request):
        body = await request.read()
        self.bodies.append(body)
        if request.headers["X-Signature"] != hashlib.sha256(body).hexdigest():
            return web.Response(status=403)
        return web.Response(status=next(self._faults, 200))


async def put(session, data):
    async with session.put("/", data=data) as response:
        return response.status, RequestLog.of(response).stop_reason


@every_body
@every_chain
async def test_signed_body_goes_out(serving, make, decorator):
    """Whole, and as it was signed: what aiohttp has kept was not sent yet."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")
    async with connected(url, decorator, middlewares=[sign]) as session:
        status, _ = await put(session, make())

    assert 200 == status
    assert [True] == [CONTENT in body for body in signed.bodies]


@every_body
async def test_signed_body_is_sent_again(serving, make):
    """What aiohttp has kept can go out as often as it must."""
    signed = Signed(503, 503)
    url = (await serving(signed.handle)).make_url("/")
    async with connected(url, retrying(SAFELY), middlewares=[sign]) as session:
        outcome = await put(session, make())

    first, second, third = signed.bodies
    assert (200, None) == outcome
    assert CONTENT in first
    assert first == second == third


async def digest_session(serving, server, *decorators):
    url = (await serving(server.handle)).make_url("/")
    digest = aiohttp.DigestAuthMiddleware(LOGIN, PASSWORD)
    return connected(url, *decorators, middlewares=[digest])


@pytest.mark.slow
@every_body
@every_chain
async def test_body_is_hashed_by_digest_authentication(serving, make, decorator):
    """With ``auth-int``, once the server's challenge is known."""
    server = DigestServer()
    async with await digest_session(serving, server, decorator) as session:
        await session.get("/")
        status, _ = await put(session, make())

    assert 200 == status
    assert 0 == server.forged
    assert CONTENT in server.bodies[-1]


@every_body
async def test_hashed_body_is_sent_again(serving, make):
    """Each attempt is hashed anew, and has the same bytes."""
    server = DigestServer(200, 503, 503)
    async with await digest_session(serving, server, retrying(SAFELY)) as session:
        await session.get("/")
        outcome = await put(session, make())

    _, first, second, third = server.bodies
    assert (200, None) == outcome
    assert CONTENT in first
    assert first == second == third


@pytest.mark.parametrize("name", ["bytes", "BytesIO", "form with BytesIO"])
@every_chain
async def test_body_follows_the_challenge(serving, name, decorator):
    """Its first send had no signature, and the second one is as long."""
    server = DigestServer()
    async with await digest_session(serving, server, decorator) as session:
        status, _ = await put(session, SENT_AGAIN[name]())

    assert 200 == status
    assert server.unsigned == server.bodies
    assert CONTENT in server.bodies[0]


@every_stream
@pytest.mark.parametrize("strategy", [RetryStrategy.never(), SAFELY])
async def test_stream_does_not_follow_the_challenge(serving, make, strategy):
    """No empty body is signed in its place; the server has seen the first send."""
    server = DigestServer()
    async with await digest_session(serving, server, retrying(strategy)) as session:
        with pytest.raises(UnprocessedRequestError, match="read before") as caught:
            await put(session, make())

    assert 1 == len(server.unsigned)
    assert [] == server.bodies
    assert RetrySafety.YES is not retry_safety(caught.value)
    assert 1 == RequestLog.of(caught.value).total_attempts


@every_stream
async def test_middleware_that_sends_a_stream_twice_is_refused(serving, make):
    """By the error that is promised, and not by one of the connection."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")

    async def insist(request, send):
        request.headers["X-Signature"] = "none"
        (await send(request)).close()
        return await send(request)

    async with connected(url, retrying(SAFELY), middlewares=[insist]) as session:
        with pytest.raises(UnprocessedRequestError, match="read before") as caught:
            await put(session, make())

    log = RequestLog.of(caught.value)
    assert 1 == len(signed.bodies)
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert RetrySafety.YES is not retry_safety(caught.value)


@pytest.mark.parametrize("look", ["as_bytes", "decode"])
async def test_pipe_that_a_middleware_has_read_is_refused(serving, look):
    """Nothing of it is left, and nothing is sent in its place."""
    signed = Signed()
    url = (await serving(signed.handle)).make_url("/")

    async def peek(request, send):
        if look == "decode":
            request.body.decode()
        else:
            await request.body.as_bytes()
        return await send(request)

    reading, writing = os.pipe()
    os.write(writing, b"pipe")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        async with connected(url, retrying(SAFELY), middlewares=[peek]) as session:
            with pytest.raises(UnprocessedRequestError, match="read before") as caught:
                await put(session, pipe)

    assert [] == signed.bodies
    assert RetrySafety.NO is not retry_safety(caught.value)
