"""Arguments of requests and closed sessions, which the scripted transport refuses."""

import inspect
import io
from datetime import date

import aiohttp
import chains
import pytest
from chains import SAFELY, raises_exactly

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
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

BODY = {"data": b"x"}

NOT_BUILT = {
    "params: True": {"params": {"active": True}},
    "params: None": {"params": {"page": None}},
    "params: no number": {"params": [("limit", float("nan"))]},
    "params: another kind": {"params": 7},
    "headers: another kind": {"headers": 7},
    "headers: no name": {"headers": {7: "x"}},
    "cookies: another kind": {"cookies": 7},
    "json: a set": {"json": {1, 2}},
    "json: a date": {"json": {"day": date(2026, 11, 29)}},
    "data: a number": {"data": 7},
    "data: a list": {"data": [1, 2]},
    "data: an iterator": {"data": iter([b"x"])},
    "auth: a pair": {"auth": ("user", "password")},
    "length of chunks": BODY | {"chunked": True, "headers": {"Content-Length": "1"}},
    "chunks twice": BODY
    | {"chunked": True, "headers": {"Transfer-Encoding": "chunked"}},
    "encoded twice": BODY | {"compress": True, "headers": {"Content-Encoding": "gzip"}},
    "proxy: broken": {"proxy": "http://["},
    "proxy: another kind": {"proxy": 7},
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


@pytest.mark.filterwarnings("ignore:The 'auth' parameter is:DeprecationWarning")
@pytest.mark.parametrize("decorators", [[], [RetryingClient.new_decorator(SAFELY)]])
@pytest.mark.parametrize("options", NOT_BUILT.values(), ids=NOT_BUILT)
async def test_request_that_aiohttp_cannot_build_is_refused(options, decorators):
    """A test finds a bad argument before production does; no attempt repeats it."""
    theirs, ours, transport = await both_failures(chains.URL, *decorators, **options)

    assert type(theirs) is type(ours)
    assert str(theirs) == str(ours)
    assert 1 == len(transport.requests)
    assert [200] == transport.unused


@pytest.mark.parametrize("value", [7, None, b"7"])
async def test_header_that_is_no_text_is_refused(value):
    """That of the request and of the session; aiohttp has a connection by then."""
    transport = ScriptedTransport([200])
    headers = {"X-Page": value}
    async with chains.session(transport) as session:
        with pytest.raises(TypeError, match="X-Page"):
            await session.get(chains.URL, headers=headers)
    async with chains.session(transport, headers=headers) as session:
        with pytest.raises(TypeError, match="X-Page"):
            await session.get(chains.URL)

    assert [200] == transport.unused


async def test_what_is_odd_but_can_be_shown_passes():
    """Tests of logs send credentials twice, line ends, and methods of any kind."""
    headers = {"Authorization": "Bearer x", "X-Note": "1\r\nX-Other: 2"}
    async with chains.session([200]) as session:
        response = await session.request(
            "G T", "http://user:password@localhost/", headers=headers
        )

    assert 200 == response.status


async def test_what_can_be_read_once_is_not_read():
    """Headers, parameters and cookies from iterators are there when they are sent."""
    given = {name: iter([("X-Page", "7")]) for name in ("headers", "params", "cookies")}
    async with chains.session([200]) as session:
        response = await session.get(chains.URL, **given)

    assert 200 == response.status
    assert [("X-Page", "7")] == [*given["params"]]


@pytest.mark.parametrize(
    "data", [lambda: b"x", {"a": 7}, [("a", "b")], io.BytesIO(b"x")]
)
async def test_bodies_that_can_be_sent_pass(data):
    """A factory too, which is not called for it."""
    async with chains.session([200]) as session:
        response = await session.post(chains.URL, data=data)

    assert 200 == response.status


async def test_json_is_serialized_once():
    """By the serializer of the session, as for a request that is sent."""
    serialized = []

    def dumps(value):
        serialized.append(value)
        return "{}"

    session = chains.session(
        [503, 200], RetryingClient.new_decorator(ALWAYS), json_serialize=dumps
    )
    async with session:
        response = await session.post(chains.URL, json={1, 2})

    assert 200 == response.status
    assert [{1, 2}] == serialized


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
