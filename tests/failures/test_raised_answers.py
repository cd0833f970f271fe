"""What is raised for a status is told from other failures."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp.http import HttpProcessingError
from chains import raised_from
from raised import INFO, raised

from aioretry_smithy import RetrySafety, is_unprocessed, retry_safety

YES, MAYBE, NO = RetrySafety.YES, RetrySafety.MAYBE, RetrySafety.NO
PROXY = aiohttp.ClientHttpProxyError


class Bare(aiohttp.ClientResponseError):
    """A class of somebody else, whose objects have next to nothing."""

    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (raised(404), NO),
        (raised(401), NO),
        (raised(501), MAYBE),
        (raised(503), MAYBE),
        (raised(429), MAYBE),
        (raised(408), MAYBE),
        (raised(999), NO),
        (raised(404, kind=aiohttp.ContentTypeError), NO),
        (raised(200, kind=aiohttp.ContentTypeError), MAYBE),
        (raised(403, kind=aiohttp.WSServerHandshakeError), NO),
        (raised(302, kind=aiohttp.WSServerHandshakeError), MAYBE),
        (raised(0), MAYBE),
        (raised_from(raised(404), KeyError("code")), NO),
        (raised_from(raised(400), HttpProcessingError(code=400)), MAYBE),
        (ExceptionGroup("one", [raised(404)]), NO),
        (ExceptionGroup("two", [raised(404), raised(404)]), MAYBE),
        (Bare(), MAYBE),
        (aiohttp.ClientResponseError(INFO, (), status="404"), MAYBE),
        (raised(407, kind=PROXY), NO),
        (raised(403, kind=PROXY), NO),
        (raised(302, kind=PROXY), NO),
        (raised(502, kind=PROXY), YES),
        (raised(503, kind=PROXY), YES),
        (raised(429, kind=PROXY), YES),
    ],
    ids=lambda value: type(value).__name__,
)
def test_safety_is_that_of_the_status(cause, expected):
    """A final status would be the same again; a proxy has passed nothing on."""
    assert expected == retry_safety(cause)


@pytest.mark.parametrize("status", [403, 407, 503])
def test_server_has_seen_nothing_of_what_a_proxy_refused(status):
    """Which is no reason to ask again."""
    assert True is is_unprocessed(raised(status, kind=PROXY))
