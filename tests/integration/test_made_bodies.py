"""What a factory makes for a later send equals the first, or does not arrive."""

import io
import random

import aiohttp
import pytest
from chains import SAFELY, connected, pass_on, retrying, twice
from fault_server import End, FaultServer, answer, cut
from streamed_bodies import Progress, fetch_token, pieces, to_nobody_first, upload
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
BREAKS = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)
REFRESHING = RefreshingClient.new_decorator(fetch_token)


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
    sent = await upload(
        [answer(503, b"busy")], retrying(SAFELY), data=data, chunked=chunked
    )

    assert (503, "busy") == sent.answer
    assert sent.is_not_replayable
    assert 503 == sent.log.response_status
    assert 1 == len(sent.bodies)


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
    breaking = cut(read=1 << 20, end=End.RESET)
    sent = await upload([breaking], retrying(SAFELY), data=around(pieces(CONTENT * 20)))

    assert isinstance(sent.error, aiohttp.ClientOSError)
    assert [] == sent.bodies
    assert sent.is_not_replayable


@every_spent
async def test_spent_object_is_not_sent_on_a_stale_connection(around):
    """The caller gets the break, as from aiohttp alone."""
    never = retrying(RetryStrategy.never())
    sent = await upload(STALE, never, is_warm=True, data=around(pieces(CONTENT)))

    assert isinstance(sent.error, BREAKS)
    assert 1 == len([body for body in sent.bodies if body])


@pytest.mark.parametrize("strategy", [RetryStrategy.never(), SAFELY])
@pytest.mark.parametrize("inside", [[], [pass_on]], ids=["alone", "around another"])
async def test_break_of_a_stale_connection_counts(strategy, inside):
    """Where the body is another one for the resend."""
    data = making(CONTENT, CONTENT[1:], CONTENT)
    sent = await upload(STALE, *inside, retrying(strategy), is_warm=True, data=data)

    assert isinstance(sent.error, BREAKS)
    assert [CONTENT] == sent.bodies[1:]
    assert sent.error is sent.log.response_cause


@every_spent
@pytest.mark.parametrize(
    "around_it", [[], [retrying(SAFELY)]], ids=["alone", "retried"]
)
async def test_refused_token_is_answered_with_the_refusal(around, around_it):
    """Where the body is spent that goes with the next one."""
    data = around(pieces(CONTENT))
    sent = await upload(
        [answer(401, b"no")], REFRESHING, *around_it, method="POST", data=data
    )

    assert (401, "no") == sent.answer
    assert 401 == sent.log.response_status
    assert 1 == len(sent.bodies)


async def test_another_token_goes_with_an_equal_body():
    """As it is made anew."""
    sent = await upload(
        [answer(401)], REFRESHING, method="POST", data=lambda: pieces(CONTENT)
    )

    assert 200 == sent.answer[0]
    assert [CONTENT] * 2 == sent.bodies


@every_spent
async def test_decorator_that_sends_twice_gets_an_error(around):
    """The one that is promised."""
    sent = await upload([], twice, method="POST", data=around(pieces(CONTENT)))

    assert isinstance(sent.error, UnprocessedRequestError)
    assert 1 == len(sent.bodies)


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
    sent = await upload([cut(end=End.RESET)], retrying(SAFELY), data=data)

    assert isinstance(sent.error, aiohttp.ClientOSError)
    assert 2 == len(sent.error.__notes__)
    assert sent.is_not_replayable
    assert [CONTENT] == sent.bodies


async def test_limiter_hears_of_the_end():
    """The retry that it let through has ended; a budget is not asked for more."""
    budget = RetryBudget()
    data = making(CONTENT, CONTENT[1:])
    sent = await upload([answer(503)], retrying(SAFELY, limiter=budget), data=data)

    assert 503 == sent.answer[0]
    assert 9.0 == budget.tokens


async def test_what_was_never_sent_may_be_another():
    """After a connection that was refused."""
    data = making(CONTENT, CONTENT[1:])
    sent = await upload([], to_nobody_first, retrying(SAFELY), data=data)

    assert 200 == sent.answer[0]
    assert [CONTENT[1:]] == sent.bodies


async def test_another_factory_may_return_the_same_file():
    """It is rewound as if it had come from the first."""
    file = io.BytesIO(CONTENT)

    @client_decorator
    async def remake(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(data=lambda: file))

    sent = await upload([answer(503)], remake, retrying(SAFELY), data=b"")

    assert 200 == sent.answer[0]
    assert [CONTENT] * 2 == sent.bodies
