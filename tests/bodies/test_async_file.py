"""Files whose methods are awaited are rewound, or go out once."""

from __future__ import annotations

import io

import pytest
from calls import begin, call_of, close_bodies
from fake_responses import Sink

from aioretry_smithy import ClientRequestContext, HttpRequest
from aioretry_smithy._bodies.replayable_payload import SpentBodyError
from aioretry_smithy._bodies.request_body import is_spent, prepare


class AsyncFile:
    """A file whose methods are awaited, of some library."""

    def __init__(self, content: bytes, **failures: Exception) -> None:
        self._file = io.BytesIO(content)
        self._failures = failures

    def _fail(self, name: str) -> None:
        if name in self._failures:
            raise self._failures[name]

    async def tell(self) -> int:
        self._fail("tell")
        return self._file.tell()

    async def seek(self, position: int) -> None:
        self._fail("seek")
        self._file.seek(position)

    async def __aiter__(self):
        for line in self._file:
            yield line


def call(data: object) -> tuple[ClientRequestContext, HttpRequest]:
    request = HttpRequest("POST", "http://example.com/", data=data)
    return begin(request), request


async def send(ctx: ClientRequestContext, data: object) -> bytes:
    """Do with a body what aiohttp does in one attempt."""
    sink = Sink()
    await prepare(call_of(ctx), data).write(sink)
    return sink.sent


async def test_async_file_is_rewound():
    """To the position that it had when it was first sent."""
    data = AsyncFile(b"a\nb\n")
    ctx, request = call(data)
    sent = [await send(ctx, data) for _ in range(3)]
    await close_bodies(ctx)

    assert [b"a\nb\n"] * 3 == sent
    assert not is_spent(call_of(ctx), request)


async def test_async_file_that_is_looked_at_is_sent_as_it_was_seen():
    """What aiohttp has kept is not read again."""
    data = AsyncFile(b"a\nb\n")
    ctx, _ = call(data)
    body = prepare(call_of(ctx), data)
    seen = await body.as_bytes()
    data._file = io.BytesIO(b"else")
    sent = [await send(ctx, data) for _ in range(2)]

    assert [seen, seen] == sent


@pytest.mark.parametrize("method", ["tell", "seek"])
async def test_async_file_that_cannot_be_rewound_goes_out_once(method):
    """A pipe, for instance."""
    data = AsyncFile(b"a\nb\n", **{method: OSError(29, "Illegal seek")})
    ctx, request = call(data)
    sent = await send(ctx, data)
    with pytest.raises(SpentBodyError):
        await send(ctx, data)

    assert b"a\nb\n" == sent
    assert is_spent(call_of(ctx), request)


async def test_failure_of_an_async_file_is_its_own():
    """One that has nothing to do with its position."""
    data = AsyncFile(b"a", tell=ValueError("closed file"))
    ctx, _ = call(data)

    with pytest.raises(ValueError, match="closed file"):
        await send(ctx, data)


async def test_async_file_that_was_never_sent_has_nothing_to_let_go_of():
    """An open circuit has refused its request."""
    data = AsyncFile(b"a")
    ctx, request = call(data)
    prepare(call_of(ctx), data)
    await close_bodies(ctx)

    assert 0 == await data.tell()
    assert not is_spent(call_of(ctx), request)
