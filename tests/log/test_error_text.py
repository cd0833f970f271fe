"""Errors in words: class and message, without secrets."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp.http_exceptions import BadHttpMessage
from calls import end, http

from aioretry_smithy._log.error_text import describe_cause


class UnspeakableError(Exception):
    def __str__(self):
        raise AttributeError("no message")


@pytest.mark.parametrize(
    ("cause", "described"),
    [
        (TimeoutError(), "TimeoutError"),
        (TimeoutError("late"), "TimeoutError: late"),
        (UnspeakableError(), "UnspeakableError"),
        (aiohttp.ClientConnectorError(None, OSError()), "ClientConnectorError"),
        (
            aiohttp.ServerDisconnectedError(b"sid=1"),
            "ServerDisconnectedError: Server disconnected in the head",
        ),
        # As a parser says of a line that is too long.
        (
            BadHttpMessage("Got more than 5 bytes when reading: bytearray(b'sid')."),
            "BadHttpMessage: Got more than 5 bytes when reading",
        ),
        # Without a cause it has nothing to quote.
        (
            aiohttp.ClientConnectionError(
                "Failed to send bytes into the underlying connection Connection<a>"
            ),
            "ClientConnectionError: Failed to send the body",
        ),
        # aiohttp quotes a header that it cannot read, be it a cookie.
        (ValueError("Invalid: b'sid=1\\'2'"), "ValueError: Invalid: b'****'"),
        (ValueError("b\"sid='1'\" and b'2"), 'ValueError: b"****" and b\'****'),
        (ValueError("Bad line b'HTTP'"), "ValueError: Bad line b'****'"),
        (ValueError("bob's"), "ValueError: bob's"),
        *(
            (ValueError(f"{before}b'sid=1'"), f"ValueError: {before}b'****'")
            for before in ("a (", "[", "sid ", "sid:", '"', "'", "sid...", "- ")
        ),
        (ValueError("[b'', b' 1']"), "ValueError: [b'****', b'****']"),
        # The end of a name is no beginning.
        *(
            (ValueError(f"{name!r} is open, 'b'"), f"ValueError: {name!r} is open, 'b'")
            for name in ("service-b", "eu.b", "shop/b", "db", "b")
        ),
    ],
)
async def test_cause_is_described(cause, described):
    """Class and message, or the class alone, also where the message raises."""
    ctx = http("http://example.com/")
    end(ctx, cause)

    assert described == describe_cause(ctx.log)
    assert described in ctx.log.render()
