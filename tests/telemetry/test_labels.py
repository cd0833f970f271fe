"""Labels of calls and attempts have few values, with any names that come in."""

import asyncio

import aiohttp
import pytest
from calls import begin, end
from yarl import URL

from aioretry_smithy import HttpRequest
from aioretry_smithy._telemetry.client import (
    error_type,
    known_method,
    server_attributes,
    status_class,
)


def context(status, cause, **settings):
    ctx = begin()
    end(ctx, cause or status, **settings)
    return ctx


class Outer:
    """Holds a class."""

    class InnerError(Exception):
        """An error with a name of two parts."""


@pytest.mark.parametrize(
    ("method", "known"),
    [("get", "GET"), ("QUERY", "QUERY"), ("BREW", "_OTHER"), ("", "_OTHER")],
)
def test_known_method(method, known):
    """All unknown methods have one value."""
    assert known == known_method(HttpRequest(method, "/"))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Example.com/orders?q=1", ("example.com", 443)),
        ("http://[::1]:8080/", ("::1", 8080)),
        ("/orders", ()),
        ("http://[", ()),
    ],
)
def test_server_attributes(url, expected):
    """Host and port, without the path, and nothing where there are none."""
    found = server_attributes(HttpRequest("GET", url))

    assert expected == tuple(found.values())


def test_server_of_a_relative_url():
    """The base of the session counts."""
    request = HttpRequest("GET", "/orders", base_url=URL("http://example.com"))

    assert {"server.address": "example.com", "server.port": 80} == (
        server_attributes(request)
    )


@pytest.mark.parametrize(
    ("status", "cause", "expected"),
    [
        (200, None, None),
        (399, None, None),
        (400, None, "400"),
        (503, None, "503"),
        (None, TimeoutError(), "TimeoutError"),
        (None, aiohttp.InvalidURL("x"), "aiohttp.client_exceptions.InvalidURL"),
        (None, Outer.InnerError(), f"{__name__}.Outer.InnerError"),
        (None, asyncio.CancelledError(), None),
        (None, KeyboardInterrupt(), None),
        (None, None, None),
    ],
)
async def test_error_type(status, cause, expected):
    """A status from 400 on, or a class; a cancelled call has failed at nothing."""
    assert expected == error_type(context(status, cause), cause)


@pytest.mark.parametrize(
    ("status", "cause", "refused", "expected"),
    [
        (200, None, False, "2xx"),
        (503, None, False, "5xx"),
        (200, None, True, "2xx"),
        (None, TimeoutError(), False, "error"),
        (None, aiohttp.ClientError(), True, "refused"),
        (None, asyncio.CancelledError(), False, "cancelled"),
        (None, asyncio.CancelledError(), True, "cancelled"),
        (None, None, False, "0xx"),
    ],
)
async def test_status_class(status, cause, refused, expected):
    """Nine words at most for all that can come of an attempt."""
    assert expected == status_class(context(status, cause, refused=refused), cause)


@pytest.mark.parametrize(
    ("status", "cause"), [(200, None), (None, aiohttp.ClientError())]
)
async def test_status_class_of_what_was_never_sent(status, cause):
    """An answer of a cache, and none at all, are no answers of a server."""
    assert "unsent" == status_class(context(status, cause, sent=False), cause)
