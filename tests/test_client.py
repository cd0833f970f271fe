"""The parts of a chain: decorators as classes, as functions, and how they are found."""

from __future__ import annotations

import functools
from unittest.mock import Mock

import pytest

from aioretry_smithy import (
    ClientRequestContext,
    DecoratingClient,
    HttpClient,
    HttpRequest,
    client_decorator,
)
from aioretry_smithy._client import chain_of, find_client
from aioretry_smithy.testing import ScriptedTransport

REQUEST = HttpRequest("GET", "http://example.com/")


class Marking(DecoratingClient):
    async def execute(self, ctx, request):
        request = request.with_header("X-Mark", "1")
        return await self.delegate.execute(ctx, request)


class Inner(DecoratingClient):
    pass


@client_decorator
async def mark(delegate, ctx, request):
    return await delegate.execute(ctx, request.with_header("X-Mark", "2"))


async def send(client):
    return await client.execute(ClientRequestContext(REQUEST), REQUEST)


async def test_plain_decorating_client_passes_on():
    """Without an override the request goes on as it is, and so does the response."""
    transport = ScriptedTransport([503])
    response = await send(DecoratingClient(transport))

    assert 503 == response.status
    assert [REQUEST] == transport.requests


async def test_class_is_a_decorator():
    """A class derived from the base is itself what a builder takes."""
    transport = ScriptedTransport([200])
    await send(Marking(transport))

    assert "1" == transport.requests[0].headers["X-Mark"]
    assert "X-Mark" not in REQUEST.headers


async def test_function_is_a_decorator():
    """A coroutine function gets the delegate, the context and the request."""
    transport = ScriptedTransport([200])
    await send(mark(transport))

    assert "2" == transport.requests[0].headers["X-Mark"]


async def test_decorator_can_be_used_again():
    """One decorated function wraps as many clients as one likes."""
    first, second = ScriptedTransport([200]), ScriptedTransport([201])

    assert 200 == (await send(mark(first))).status
    assert 201 == (await send(mark(second))).status


def test_clients_describe_themselves():
    """A class says its name, a function its own, and what has none its class."""
    delegate = ScriptedTransport([])

    async def function(delegate, ctx, request): ...

    assert "Marking" == Marking(delegate).describe()
    assert "mark" == mark(delegate).describe()
    nameless = client_decorator(functools.partial(function))
    assert "partial" == nameless(delegate).describe()


def test_anything_that_executes_is_a_client():
    """The protocol asks for nothing but ``execute``."""
    assert isinstance(ScriptedTransport([]), HttpClient)
    assert isinstance(mark(ScriptedTransport([])), HttpClient)
    assert not isinstance(object(), HttpClient)


def test_chain_is_listed_from_the_outside_in():
    """Every ``delegate`` is followed to the one that has none."""
    transport = ScriptedTransport([])
    inner = Inner(transport)
    outer = Marking(inner)

    assert [outer, inner, transport] == chain_of(outer)
    assert [transport] == chain_of(transport)


def test_outermost_client_of_a_class_is_found():
    """Derived classes count, what is not there is None."""
    transport = ScriptedTransport([])
    inner = Marking(transport)
    outer = Marking(Inner(inner))

    assert outer is find_client(outer, Marking)
    assert outer is find_client(outer, DecoratingClient)
    assert transport is find_client(outer, ScriptedTransport)
    assert find_client(inner, Inner) is None


def test_chain_ends_at_a_mock():
    """A mock has a delegate for as long as one asks; nobody wants to wait for that."""
    mock = Mock()

    assert [mock] == chain_of(mock)


@pytest.mark.parametrize("delegate", [None, "itself", "text", "missing"])
def test_chain_ends_where_there_is_no_other_client(delegate):
    """A delegate that is none, or the client itself, is the end of the chain."""

    class Odd:
        __slots__ = ("delegate",)

        async def execute(self, ctx, request): ...

    odd = Odd()
    if delegate != "missing":
        odd.delegate = odd if delegate == "itself" else delegate

    assert [odd] == chain_of(odd)


def test_function_of_a_decorator_must_be_one():
    """A decorator made of nothing would fail at the first call only."""
    with pytest.raises(ValueError, match=r"function: None \(expected: async"):
        client_decorator(None)
