"""Whatever the body, the chain and the failure: servers get one body, or less."""

import asyncio
import contextlib
import importlib
import io
import os
import tempfile
from pathlib import Path

import aiofiles
import aiohttp
import anyio
import hypothesis
import pytest
from body_kinds import KINDS, Content
from chains import SAFELY, connected, pass_on, retrying, twice
from fault_server import End, Fault, FaultServer, Read, answer, cut, response
from hypothesis import strategies as st
from streamed_bodies import (
    Once,
    Progress,
    fetch_token,
    form,
    pieces,
    to_nobody_first,
    upload,
)

from aioretry_smithy import (
    Backoff,
    HedgingClient,
    LoggingClient,
    RefreshingClient,
    ResumingClient,
    RetryStrategy,
    client_decorator,
)

SIZE = 100_000
OTHER = b"other"
PATIENCE = 20.0


@client_decorator
async def race(delegate, ctx, request):
    """Send twice at once, and take the first answer."""
    sends = [
        asyncio.ensure_future(delegate.execute(ctx.derive(request), request))
        for _ in range(2)
    ]
    done, pending = await asyncio.wait(sends, return_when=asyncio.FIRST_COMPLETED)
    for send in pending:
        send.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    first, *others = done
    for other in others:
        if not other.cancelled() and other.exception() is None:
            other.result().close()
    return await first


def again(**settings):
    strategy = RetryStrategy.on_server_error_status(Backoff.without_delay())
    return retrying(strategy, max_total_attempts=4, **settings)


ANYWHERE = {
    "logging": LoggingClient.new_decorator,
    "ordinary": lambda: pass_on,
    "twice": lambda: twice,
    "race": lambda: race,
    "refreshing": lambda: RefreshingClient.new_decorator(fetch_token),
}
INSIDE = {**ANYWHERE, "hedging": lambda: HedgingClient.new_decorator(0.01)}
OUTSIDE = {**ANYWHERE, "resuming": ResumingClient.new_decorator}
RETRYING = {
    "retrying": again,
    "retrying, in little time": lambda: again(attempt_timeout=0.3),
    "never": lambda: retrying(RetryStrategy.never()),
}
DECORATORS = {**INSIDE, **OUTSIDE, **RETRYING}


def some(names):
    return st.lists(st.sampled_from(sorted(names)), max_size=2, unique=True)


chains = st.tuples(
    some(INSIDE),
    st.lists(st.sampled_from(sorted(RETRYING)), max_size=1),
    # What resumes stands outside of all else.
    some(OUTSIDE).map(lambda names: sorted(names, key="resuming".__eq__)),
).map(lambda parts: [name for part in parts for name in part])


async def sign(request, send):
    """Look at the body as a signature does."""
    if request.body:
        await request.body.as_bytes()
    return await send(request)


async def insist(request, send):
    """Send again what was refused, as digest authentication does."""
    response = await send(request)
    if response.status < 400:
        return response
    response.close()
    if request.body:
        await request.body.as_bytes()
    return await send(request)


MIDDLEWARES = {"none": [], "sign": [sign], "insist": [insist], "both": [insist, sign]}

FAULTS = {
    "503": answer(503, b"busy"),
    "401": answer(401),
    "redirect": answer(307, b"", "Location: /there"),
    # Kept alive, it would take the rest of the body for the next request.
    "early": Fault(Read.HEAD, (response(503),), End.CLOSE),
    "reset": cut(end=End.RESET),
    "reset half way": cut(read=SIZE // 2, end=End.RESET),
    "closed": cut(end=End.CLOSE),
    "half an answer": cut(b"HTTP/1.1 200 OK\r\nContent-Le", end=End.RESET),
}


def part(value):
    writer = aiohttp.MultipartWriter()
    writer.append(value)
    return writer


async def of_aiofiles(content, stack):
    return await stack.enter_async_context(aiofiles.open(content.path, "rb"))


async def of_anyio(content, stack):
    return await stack.enter_async_context(await anyio.open_file(content.path, "rb"))


def changing(content):
    """Make a factory whose later bodies are others."""
    contents = iter([content.data, content.data[1:], OTHER, b"", content.data])
    return lambda: next(contents)


def spent(content, around):
    """Make a factory of what is read already, in something new."""
    stream = pieces(content.data, 9_999)
    return lambda: around(stream)


async def given(value):
    return value


MORE = {
    "aiofiles": of_aiofiles,
    "anyio": of_anyio,
    **{
        name: lambda content, stack, make=make: given(make(content))
        for name, make in {
            "progress": lambda content: Progress(pieces(content.data)),
            "once": lambda content: Once([content.data]),
            "form of progress": lambda content: form(Progress(pieces(content.data))),
            "factory: changing": changing,
            "factory: same stream": lambda content: spent(content, lambda same: same),
            "factory: same progress": lambda content: spent(content, Progress),
            "factory: form of same": lambda content: spent(content, form),
            "factory: part of same": lambda content: spent(content, part),
            "factory: form of BytesIO": lambda content: (
                lambda: form(io.BytesIO(content.data))
            ),
            "factory: read": lambda content: io.BytesIO(content.data).read,
        }.items()
    },
}


@contextlib.asynccontextmanager
async def body(kind, content):
    """Make the arguments of a request with a body of a kind."""
    async with contextlib.AsyncExitStack() as stack:
        if kind in MORE:
            yield {"data": await MORE[kind](content, stack)}
        else:
            with content.stack:
                yield KINDS[kind](content)


def changes(path):
    """Make a decorator that writes into the file after the first attempt."""

    @client_decorator
    async def change(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        finally:
            with path.open("r+b") as file:
                file.write(OTHER)

    return change


async def bodies_of(kind, chain, middlewares, faults, *, is_warm, is_changed, chunked):
    """Send one request; return the bodies that arrived whole.

    A chain that cannot send twice would leave the body to aiohttp.
    """
    chain = chain if set(chain) - {"logging"} else [*chain, "ordinary"]
    data = bytes(range(65, 91)) * (SIZE // 26)
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        file.write(data)
        file.flush()
        content = Content(data, path)
        decorators = [DECORATORS[name]() for name in chain]
        if is_changed:
            decorators.insert(0, changes(path))
        failures = [FAULTS[name] for name in faults]
        async with (
            asyncio.timeout(PATIENCE),
            FaultServer([answer()] * is_warm + failures) as server,
            connected(
                server.url,
                *decorators,
                middlewares=MIDDLEWARES[middlewares],
                timeout=aiohttp.ClientTimeout(total=2.0),
            ) as session,
            body(kind, content) as arguments,
        ):
            if is_warm:
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    await session.get("/")
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with session.put("/", chunked=chunked, **arguments) as answered:
                    await answered.read()
        whole = [each for each in server.requests if each.is_whole]
        return [bytes(each.body) for each in whole if each.method == "PUT"]


@pytest.mark.slow
@hypothesis.settings(max_examples=4 * hypothesis.settings.default.max_examples)
@hypothesis.given(
    kind=st.sampled_from(sorted([*KINDS, *MORE])),
    chain=chains,
    middlewares=st.sampled_from(sorted(MIDDLEWARES)),
    faults=st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3),
    is_warm=st.booleans(),
    is_changed=st.booleans(),
    chunked=st.sampled_from([None, True]),
)
def test_server_gets_no_other_body_than_the_first_whole_one(**drawn):
    """Neither an empty one, nor a part, nor one that has changed."""
    loop = importlib.import_module(
        os.environ.get("AIORETRY_SMITHY_TEST_LOOP", "asyncio")
    )
    with asyncio.Runner(loop_factory=loop.new_event_loop) as runner:
        bodies = runner.run(bodies_of(**drawn))

    assert len(set(bodies)) <= 1


CONTENT = bytes(range(256)) * 400

ONCE = {
    "progress of a generator": lambda: Progress(pieces(CONTENT)),
    "progress of a progress": lambda: Progress(Progress(pieces(CONTENT))),
    "once": lambda: Once([CONTENT]),
    "part of a form": lambda: form(Progress(pieces(CONTENT))),
}
every_body = pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)


@every_body
async def test_what_was_never_read_goes_out_later(make):
    """The port where nobody listens has read nothing of it."""
    sent = await upload([], to_nobody_first, retrying(SAFELY), data=make())

    assert 200 == sent.answer[0]
    assert CONTENT in sent.bodies[0]


@every_body
async def test_refused_token_is_answered_with_the_refusal(make):
    """A POST is not sent again, empty, with another token."""
    refreshing = RefreshingClient.new_decorator(fetch_token)
    sent = await upload([answer(401)], refreshing, method="POST", data=make())

    assert 401 == sent.answer[0]
    assert 1 == len(sent.bodies)


@every_body
async def test_redirect_ends_in_an_error(make):
    """As from aiohttp alone, or earlier; the second hop gets nothing."""
    there = answer(307, b"", "Location: /there")
    sent = await upload([there], retrying(), method="POST", data=make())

    assert isinstance(sent.error, aiohttp.ClientError)
    assert 1 == len(sent.bodies)


@every_body
async def test_download_is_not_resumed_with_an_empty_body(make):
    """A GET that has a body of its own is asked once."""
    cut_off = cut(
        b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "a"\r\n\r\n12345',
        end=End.RESET,
    )
    resuming = ResumingClient.new_decorator()
    sent = await upload([cut_off], resuming, method="GET", data=make())

    assert isinstance(sent.error, aiohttp.ClientError)
    assert 1 == len(sent.bodies)
