"""What a factory makes for a later send equals the first, or does not arrive."""

import io
import random

import aiohttp
import pytest
from chains import SAFELY, connected, pass_on, retrying, twice
from fault_server import End, FaultServer, answer, cut
from streamed_bodies import Progress, fetch_token, pieces
from streamed_bodies import form as form_of

from aioretry_smithy import (
    RefreshingClient,
    RequestLog,
    RetryBudget,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    client_decorator,
)

CONTENT = random.Random(1).randbytes(200_000)
STALE = [answer(), cut(end=End.RESET)]


def form(content):
    data = aiohttp.FormData()
    data.add_field("name", "value")
    data.add_field("file", io.BytesIO(content), filename="file")
    return data


def multipart(content):
    writer = aiohttp.MultipartWriter()
    inner = aiohttp.MultipartWriter()
    inner.append(io.BytesIO(content))
    writer.append(inner)
    return writer


KINDS = {
    "bytes": lambda content: content,
    "text": lambda content: content.hex(),
    "BytesIO": io.BytesIO,
    "generator": pieces,
    "generator of small pieces": lambda content: pieces(content, 999),
    "form": form,
    "multipart": multipart,
    "payload": aiohttp.BytesPayload,
    "pairs": lambda content: {"name": content.hex()},
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

CHANGES = {
    "other first byte": b"X" + CONTENT[1:],
    "other last byte": CONTENT[:-1] + b"X",
    "shorter": CONTENT[:-1],
    "longer": CONTENT + b"X",
    "nothing": b"",
}
every_change = pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)


def making(*products):
    """Make a factory of these, one after another."""
    products = iter(products)
    return lambda: next(products)


@pytest.mark.slow
@every_kind
async def test_equal_bodies_are_sent_again(kind):
    """A multipart has the boundary of the first one."""
    async with (
        FaultServer([answer(503), answer(503)]) as server,
        SessionBuilder.standard(server.url).build() as session,
        session.put("/", data=lambda: kind(CONTENT)) as response,
    ):
        pass

    first, second, third = server.bodies
    types = {request.header("Content-Type") for request in server.requests}
    assert 200 == response.status
    assert first == second == third
    assert len(CONTENT) <= len(first)
    assert 1 == len(types)


@pytest.mark.slow
@every_kind
@every_change
@pytest.mark.parametrize("chunked", [None, True])
async def test_other_body_does_not_arrive(kind, changed, chunked):
    """The call ends with the answer that it had, which can be read."""
    data = making(kind(CONTENT), kind(changed))
    async with (
        FaultServer([answer(503, b"busy")]) as server,
        connected(server.url, retrying(SAFELY)) as session,
        session.put("/", data=data, chunked=chunked) as response,
    ):
        text, log = await response.text(), RequestLog.of(response)

    assert (503, "busy") == (response.status, text)
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert 503 == log.response_status
    assert 1 == len(server.bodies)


SPENT = {
    "same generator": lambda stream: lambda: stream,
    "progress of the same": lambda stream: lambda: Progress(stream),
    "form of the same": lambda stream: lambda: form_of(stream),
    "part of the same": lambda stream: lambda: part_of(stream),
}
every_spent = pytest.mark.parametrize("around", SPENT.values(), ids=SPENT)


def part_of(stream):
    writer = aiohttp.MultipartWriter()
    writer.append(stream)
    return writer


@every_spent
async def test_spent_object_does_not_arrive_again(around):
    """However the factory dresses it."""
    async with (
        FaultServer([answer(503, b"busy")]) as server,
        SessionBuilder.standard(server.url).build() as session,
        session.put("/", data=around(pieces(CONTENT))) as response,
    ):
        text, log = await response.text(), RequestLog.of(response)

    assert (503, "busy") == (response.status, text)
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert 1 == len(server.bodies)


@every_spent
async def test_rest_of_a_spent_object_does_not_arrive(around):
    """After a connection that broke while the first half went out."""
    stream = pieces(CONTENT * 20)
    async with (
        FaultServer([cut(read=1 << 20, end=End.RESET)]) as server,
        connected(server.url, retrying(SAFELY)) as session,
    ):
        with pytest.raises(aiohttp.ClientOSError) as caught:
            await session.put("/", data=around(stream))

    log = RequestLog.of(caught.value)
    assert [] == server.bodies
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason


@every_spent
async def test_spent_object_is_not_sent_on_a_stale_connection(around):
    """The caller gets the break, as from aiohttp alone."""
    async with (
        FaultServer(STALE) as server,
        connected(server.url, retrying(RetryStrategy.never())) as session,
    ):
        await session.get("/")
        with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
            await session.put("/", data=around(pieces(CONTENT)))

    assert 1 == len([body for body in server.bodies if body])


@pytest.mark.parametrize("strategy", [RetryStrategy.never(), SAFELY])
@pytest.mark.parametrize("inside", [[], [pass_on]], ids=["alone", "around another"])
async def test_break_of_a_stale_connection_counts(strategy, inside):
    """Where the body is another one for the resend."""
    data = making(CONTENT, CONTENT[1:], CONTENT)
    async with (
        FaultServer(STALE) as server,
        connected(server.url, *inside, retrying(strategy)) as session,
    ):
        await session.get("/")
        with pytest.raises(
            (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
        ) as caught:
            await session.put("/", data=data)

    log = RequestLog.of(caught.value)
    assert [CONTENT] == server.bodies[1:]
    assert caught.value is log.response_cause


@every_spent
@pytest.mark.parametrize(
    "around_it", [[], [retrying(SAFELY)]], ids=["alone", "retried"]
)
async def test_refused_token_is_answered_with_the_refusal(around, around_it):
    """Where the body is spent that goes with the next one."""
    async with (
        FaultServer([answer(401, b"no")]) as server,
        connected(
            server.url, RefreshingClient.new_decorator(fetch_token), *around_it
        ) as session,
        session.post("/", data=around(pieces(CONTENT))) as response,
    ):
        text, log = await response.text(), RequestLog.of(response)

    assert (401, "no") == (response.status, text)
    assert 401 == log.response_status
    assert 1 == len(server.bodies)


async def test_another_token_goes_with_an_equal_body():
    """As it is made anew."""
    async with (
        FaultServer([answer(401)]) as server,
        connected(server.url, RefreshingClient.new_decorator(fetch_token)) as session,
        session.post("/", data=lambda: pieces(CONTENT)) as response,
    ):
        pass

    assert 200 == response.status
    assert [CONTENT] * 2 == server.bodies


@every_spent
async def test_decorator_that_sends_twice_gets_an_error(around):
    """The one that is promised."""
    async with (
        FaultServer() as server,
        connected(server.url, twice) as session,
    ):
        with pytest.raises(UnprocessedRequestError):
            await session.post("/", data=around(pieces(CONTENT)))

    assert 1 == len(server.bodies)


@pytest.mark.parametrize("size", [1, 60_000, 200_000, 2_000_000])
async def test_answer_that_it_had_is_whole_or_fails(size):
    """A large one is not kept, and does not come as a part of itself."""
    data = making(CONTENT, CONTENT[1:])
    async with (
        FaultServer([answer(503, b"x" * size)]) as server,
        connected(server.url, retrying(SAFELY)) as session,
        session.put("/", data=data) as response,
    ):
        try:
            read = len(await response.read())
        except aiohttp.ClientError:
            read = None

    assert 503 == response.status
    assert (size if size <= 60_000 else None) == read


async def test_failure_that_it_had_is_raised():
    """With the notes of its attempts."""
    data = making(CONTENT, CONTENT[1:])
    async with (
        FaultServer([cut(end=End.RESET)]) as server,
        connected(server.url, retrying(SAFELY)) as session,
    ):
        with pytest.raises(aiohttp.ClientOSError) as caught:
            await session.put("/", data=data)

    log = RequestLog.of(caught.value)
    assert 2 == len(caught.value.__notes__)
    assert RetryStopReason.BODY_NOT_REPLAYABLE is log.stop_reason
    assert [CONTENT] == server.bodies


async def test_limiter_hears_of_the_end():
    """The retry that it let through has ended; a budget is not asked for more."""
    budget = RetryBudget()
    data = making(CONTENT, CONTENT[1:])
    async with (
        FaultServer([answer(503)]) as server,
        connected(server.url, retrying(SAFELY, limiter=budget)) as session,
        session.put("/", data=data) as response,
    ):
        pass

    assert 503 == response.status
    assert 9.0 == budget.tokens


async def test_what_was_never_sent_may_be_another():
    """After a connection that was refused."""

    @client_decorator
    async def to_nobody_first(delegate, ctx, request):
        if ctx.attempt == 1:
            request = request.replace(url="http://127.0.0.1:1/")
        return await delegate.execute(ctx, request)

    data = making(CONTENT, CONTENT[1:])
    async with (
        FaultServer() as server,
        connected(server.url, to_nobody_first, retrying(SAFELY)) as session,
        session.put("/", data=data) as response,
    ):
        pass

    assert 200 == response.status
    assert [CONTENT[1:]] == server.bodies


async def test_another_factory_may_return_the_same_file():
    """It is rewound as if it had come from the first."""
    file = io.BytesIO(CONTENT)

    @client_decorator
    async def remake(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(data=lambda: file))

    async with (
        FaultServer([answer(503), answer()]) as server,
        connected(None, remake, retrying(SAFELY)) as session,
        session.put(server.url, data=b"") as response,
    ):
        pass

    assert 200 == response.status
    assert [CONTENT] * 2 == server.bodies
