"""What a factory makes in a call is held to what was sent first."""

from __future__ import annotations

import gc
import io
import weakref

import pytest
from calls import begin, call_of, close_bodies
from fake_responses import Sink

from aioretry_smithy import ClientRequestContext, HttpRequest
from aioretry_smithy._bodies.replayable_payload import SpentBodyError
from aioretry_smithy._bodies.request_body import is_spent, prepare


def call(data: object) -> tuple[ClientRequestContext, HttpRequest]:
    request = HttpRequest("POST", "http://example.com/", data=data)
    return begin(request), request


async def send(ctx: ClientRequestContext, data: object) -> bytes:
    """Do with a body what aiohttp does in one attempt."""
    sink = Sink()
    await prepare(call_of(ctx), data).write(sink)
    return sink.sent


async def stream():
    yield b"str"
    yield b"eam"


async def test_factory_is_asked_for_each_attempt():
    """The value that it returns is treated like any other body."""
    made = []

    def factory():
        made.append(io.BytesIO(b"abc"))
        return made[-1]

    ctx, request = call(factory)
    sent = [await send(ctx, factory) for _ in range(3)]
    await close_bodies(ctx)

    assert [b"abc"] * 3 == sent
    assert 3 == len(made)
    assert not is_spent(call_of(ctx), request)


async def test_async_generator_function_is_a_factory():
    """Without the parentheses a stream can be sent again."""
    ctx, _ = call(stream)

    assert [b"stream"] * 2 == [await send(ctx, stream) for _ in range(2)]


async def test_factory_of_plain_values_is_held_to_them():
    """What it makes later has to equal what it made at first."""
    values = iter([b"abc", "abc", b"abd"])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    sent = [await send(ctx, factory) for _ in range(2)]
    with pytest.raises(SpentBodyError, match="differs from what was sent before"):
        await send(ctx, factory)

    assert [b"abc"] * 2 == sent


async def test_factory_of_nothing_is_held_to_that():
    """A request without a body, and then one with a body, are not the same."""
    values = iter([None, b"", b"abc"])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    first = prepare(call_of(ctx), factory)
    second = await send(ctx, factory)
    with pytest.raises(SpentBodyError, match="has another length than before"):
        prepare(call_of(ctx), factory)

    assert (None, b"") == (first, second)


async def test_factory_that_makes_nothing_later_is_found_out():
    """The other way round."""
    values = iter([b"abc", None])

    def factory():
        return next(values)

    ctx, _ = call(factory)
    await send(ctx, factory)

    with pytest.raises(
        SpentBodyError, match="has another length than before: .*factory"
    ):
        prepare(call_of(ctx), factory)


async def test_factory_of_what_aiohttp_refuses_is_left_for_it_to_refuse():
    """The error is then aiohttp's own."""
    data = object()
    ctx, _ = call(None)

    assert data is prepare(call_of(ctx), lambda: data)


async def test_factory_that_returns_the_same_stream_is_found_out():
    """It was read by the first attempt."""
    data = stream()
    ctx, _ = call(lambda: data)
    await send(ctx, lambda: data)

    with pytest.raises(SpentBodyError):
        prepare(call_of(ctx), lambda: data)


async def test_factory_of_what_was_sent_as_it_is_is_found_out():
    """A decorator may put one in the place of the caller's own stream."""
    data = stream()
    ctx, _ = call(data)
    await send(ctx, data)

    with pytest.raises(SpentBodyError, match="read by an earlier attempt"):
        prepare(call_of(ctx), lambda: data)


async def test_texts_of_earlier_attempts_are_not_kept():
    """They may be long, and bytes likewise."""

    class Many(str):
        pass

    made = []

    def factory():
        many = Many("abc")
        made.append(weakref.ref(many))
        return many

    ctx, _ = call(factory)
    sent = [await send(ctx, factory) for _ in range(2)]
    gc.collect()

    assert [b"abc"] * 2 == sent
    assert [None] * 2 == [each() for each in made]
