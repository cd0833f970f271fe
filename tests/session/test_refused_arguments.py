"""Arguments that aiohttp refuses, with what it raises."""

from __future__ import annotations

import aiohttp
import pytest
from chains import connected, retrying

from aioretry_smithy import DecoratingClient, RetryStopReason, capture_logs, decorate


class FailingResolver(aiohttp.abc.AbstractResolver):
    async def resolve(self, host, port=0, family=0):
        raise OSError(None, "no names here")

    async def close(self):
        pass


async def outcome(session, /, *arguments, **options):
    try:
        return (await session.request(*arguments, **options)).status
    except Exception as error:
        return type(error), str(error)


async def both(base_url, /, *arguments, **options):
    """Make a request of a plain session and of a decorated one; return both ends."""
    ends = []
    for decorators in ([], [DecoratingClient, retrying(1.0)]):
        connector = aiohttp.TCPConnector(resolver=FailingResolver())
        session = aiohttp.ClientSession(base_url, connector=connector)
        if decorators:
            decorate(session, *decorators)
        async with session:
            ends.append(await outcome(session, *arguments, **options))
    return ends


@pytest.mark.parametrize(
    "url",
    [
        "",
        "//",
        "//h:99999/",
        "http://h:99999/",
        "http://[::1",
        "http://\u2028/",
        "http://é\u200b.com/",
        "http://u:p/q@h/",
        "http:///x",
        "ftp://h/",
        "mailto:x",
        "/relative",
        "\x00",
        "a b",
        b"http://h/",
        None,
        5,
        object,
    ],
    ids=repr,
)
async def test_bad_urls_raise_what_aiohttp_raises(url):
    """Type and message are those of a plain session, and nothing is retried."""
    plain, decorated = await both(None, "GET", url)

    assert isinstance(plain, tuple)
    assert plain == decorated


async def test_unusable_host_names_raise_what_aiohttp_raises():
    """A label that is too long for a name is found out while connecting."""
    plain, decorated = await both("http://h/", "GET", f"http://{'a' * 64}é.com/")

    assert isinstance(plain, tuple)
    assert plain == decorated


@pytest.mark.parametrize(
    "options",
    [
        {"params": 5},
        {"headers": 5},
        {"headers": ["x"]},
        {"cookies": 5},
        {"timeout": "5"},
        {"data": b"x", "json": {}},
        {"data": [5]},
        {"data": object},
        {"json": object},
        {"no_such_argument": 1},
        {"target": 1},
    ],
    ids=str,
)
async def test_bad_arguments_raise_what_aiohttp_raises(options):
    """No argument is touched before aiohttp has seen it."""
    plain, decorated = await both(None, "POST", "http://127.0.0.1:1/", **options)

    assert isinstance(plain, tuple)
    assert plain == decorated


@pytest.mark.parametrize("name", ["base_url", "method"])
async def test_arguments_named_like_ours_are_refused(name):
    """They are type errors in aiohttp as well, if in other words."""
    for kind, _ in await both(None, "GET", "http://127.0.0.1:1/", **{name: "x"}):
        assert kind is TypeError


@pytest.mark.parametrize("method", ["G ET", "GET\n", b"GET"])
async def test_bad_methods_raise_what_aiohttp_raises(method):
    """A method that is none is not retried either."""
    plain, decorated = await both(None, method, "http://127.0.0.1:1/")

    assert plain == decorated
    assert plain[0] in {ValueError, TypeError}


async def test_closed_session_raises_what_aiohttp_raises():
    """A closed session is the caller's mistake, at the first attempt."""
    session = connected(None, retrying(1.0))
    await session.close()

    with (
        capture_logs() as logs,
        pytest.raises(RuntimeError, match=r"^Session is closed$"),
    ):
        await session.get("http://127.0.0.1:1/")

    assert 1 == logs[0].total_attempts
    assert RetryStopReason.NO_RETRY == logs[0].stop_reason
