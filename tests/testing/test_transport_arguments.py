"""Arguments of requests and closed sessions, which the scripted transport refuses."""

from __future__ import annotations

import inspect

import aiohttp
import chains
import pytest
from chains import raises_exactly

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
)
from aioretry_smithy.testing import ScriptedTransport

REFUSED = {
    "relative": ("/orders", {}),
    "without a host": ("http:///orders", {}),
    "without a scheme": ("orders", {}),
    "empty": ("", {}),
    "broken": ("http://[", {}),
    "no text": (7, {}),
    "other scheme": ("ftp://example.com/", {}),
    "two bodies": ("http://example.com/", {"data": b"x", "json": {}}),
}


async def both_failures(url, *decorators, **options):
    """Return what aiohttp raises and what the chain raises, and its transport."""
    transport = ScriptedTransport([200])
    failures = []
    for session in aiohttp.ClientSession(), chains.session(transport, *decorators):
        async with session:
            with pytest.raises(Exception) as caught:
                await session.get(url, **options)
        failures.append(caught.value)
    return *failures, transport


@pytest.mark.parametrize(("url", "options"), REFUSED.values(), ids=REFUSED)
async def test_what_aiohttp_refuses_is_refused(url, options):
    """The same class of exception comes, and the answer is still there."""
    theirs, ours, transport = await both_failures(url, **options)

    assert type(theirs) is type(ours)
    assert [200] == transport.unused


ALWAYS = RetryStrategy.on_server_error_status(Backoff.without_delay())


@pytest.mark.parametrize(
    "options",
    [
        {"retry_options": None},
        {"tiemout": 5.0},
        {"headers": {}, "max_retries": 3, "retries": 3},
        {"base_url": "http://example.com/"},
    ],
    ids=str,
)
@pytest.mark.parametrize("decorators", [[], [RetryingClient.new_decorator(ALWAYS)]])
async def test_arguments_that_aiohttp_does_not_have_are_refused(options, decorators):
    """In Python's words; a leftover of another library is found before production."""
    theirs, ours, transport = await both_failures(chains.URL, *decorators, **options)

    assert (TypeError, TypeError) == (type(theirs), type(ours))
    assert str(theirs) == str(ours)
    assert 1 == len(transport.requests)
    assert [200] == transport.unused


async def test_arguments_that_a_decorator_adds_are_refused_too():
    """They get as far as aiohttp, with which they would fail."""

    @client_decorator
    async def leftover(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(retry_options=3))

    async with chains.session([200], leftover) as session:
        with pytest.raises(TypeError, match="unexpected keyword argument 'retry_opt"):
            await session.get("http://example.com/")


async def test_every_argument_that_aiohttp_has_is_taken():
    """Those of the version that is installed."""
    parameters = inspect.signature(aiohttp.ClientSession._request).parameters.values()
    options = {
        each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY
    }
    async with chains.session([200]) as session:
        response = await session.get("http://example.com/", **options)

    assert 200 == response.status


async def test_session_of_ones_own_may_have_further_arguments():
    """What its method takes would be taken."""
    with pytest.warns(DeprecationWarning, match="Inheritance"):

        class Extended(aiohttp.ClientSession):
            async def _request(self, method, url, *, tenant=None, **options):
                return await super()._request(method, url, **options)

    async with decorate(Extended(), ScriptedTransport([200])) as session:
        response = await session.get("http://example.com/", tenant=7)

    assert 200 == response.status


async def test_session_whose_arguments_are_unknown_takes_any(monkeypatch):
    """A mock stands in its place, or a tracer; nothing of it is called."""

    def traced(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(aiohttp.ClientSession, "_request", traced)
    async with chains.session([200]) as session:
        response = await session.get("http://example.com/", anything=7)

    assert 200 == response.status


async def test_closed_session_is_refused():
    """As a service finds out that goes on after its end."""
    transport = ScriptedTransport([200, 200])
    session = chains.session(transport)
    async with session:
        await session.get("http://example.com/")
    async with aiohttp.ClientSession() as plain:
        pass

    with pytest.raises(RuntimeError) as theirs:
        await plain.get("http://example.com/")
    with raises_exactly(str(theirs.value), RuntimeError):
        await session.get("http://example.com/")

    assert [200] == transport.unused


async def test_other_session_of_the_same_transport_stays_open():
    """A builder may build several."""
    builder = SessionBuilder("http://h").decorator(ScriptedTransport([201, 202]))
    one, other = builder.build(), builder.build()
    await one.close()

    with pytest.raises(RuntimeError, match=r"^Session is closed$"):
        await one.get("/")
    async with other:
        assert 201 == (await other.get("/")).status


async def test_session_that_is_closed_between_two_attempts_is_refused():
    """The next attempt fails, and is the last one."""

    async def close(ctx, request):
        await session.close()
        return 503

    session = chains.retrying_session([close, 200], ALWAYS)
    with capture_logs() as logs, pytest.raises(RuntimeError, match="is closed"):
        await session.get("http://example.com/")

    assert 2 == logs[0].total_attempts
    assert RetryStopReason.NO_RETRY == logs[0].stop_reason
