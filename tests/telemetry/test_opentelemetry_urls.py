"""URLs, hosts and messages in spans, without what is secret."""

import aiohttp
import pytest
import yarl
from heard import URL, attributes_of, get, traced


@pytest.mark.parametrize(
    ("url", "shown", "host", "port"),
    [
        (
            "https://ada:love@Example.com/a?token=1&page=2",
            "https://REDACTED:REDACTED@example.com/a?token=REDACTED&page=2",
            "example.com",
            443,
        ),
        ("http://ada@[::1]:8080/", "http://REDACTED:REDACTED@[::1]:8080/", "::1", 8080),
        ("http://localhost/?sig=x", "http://localhost/?sig=REDACTED", "localhost", 80),
        ("http://localhost/a****@b", "http://localhost/a****@b", "localhost", 80),
        (
            "http://b\u00fccher.example/",
            "http://xn--bcher-kva.example/",
            "xn--bcher-kva.example",
            80,
        ),
    ],
)
async def test_credentials_are_redacted(heard, url, shown, host, port):
    """The URL is whole but for what the log would hide, in the convention's words."""
    await get(traced(heard, [200]), url)

    (attempt,) = heard.attempts
    assert shown == attempt.attributes["url.full"]
    assert (host, port) == (
        attempt.attributes["server.address"],
        attempt.attributes["server.port"],
    )


async def test_parameters_are_part_of_the_url(heard):
    """Parameters go out in the URL, so they are shown, or hidden, there."""
    await get(traced(heard, [200]), params={"page": "2", "api_key": "x"})

    (attempt,) = heard.attempts
    assert f"{URL}?page=2&api_key=REDACTED" == attempt.attributes["url.full"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("/orders", "aiohttp.client_exceptions.InvalidUrlClientError"),
        ("http://[", "aiohttp.client_exceptions.InvalidUrlClientError"),
        (7, "TypeError"),
    ],
    ids=str,
)
async def test_what_is_no_url_has_no_server(heard, url, error):
    """A URL that aiohttp refuses costs the attributes that nobody can know."""
    await get(traced(heard, [200]), url)

    (attempt,) = heard.attempts
    assert {
        "http.request.method": "GET",
        "error.type": error,
        "aioretry_smithy.sent": False,
    } == attributes_of(attempt)
    assert "server.address" not in heard.call.attributes


async def test_letters_of_a_host_are_small(heard):
    """A URL that is taken as it is names the same server as any other."""
    await get(traced(heard, [200]), yarl.URL("http://Example.COM/", encoded=True))

    assert "example.com" == heard.attempts[0].attributes["server.address"]


async def test_messages_of_errors_are_masked(heard):
    """Neither the status nor the event shows the secrets of a failure's text."""
    error = aiohttp.ClientError("GET http://ada:love@example.com/?token=abc")
    await get(traced(heard, [error], max_total_attempts=1))

    for span in heard.spans():
        (event,) = span.events[-1:]
        message = "GET http://****@example.com/?token=****"
        assert message == event.attributes["exception.message"]
        assert f"ClientError: {message}" == span.status.description
        assert "exception.stacktrace" not in event.attributes
