"""A 401 that a middleware raises refuses a token as an answer does."""

from __future__ import annotations

import io

import aiohttp
import pytest
from chains import SAFELY, retrying
from fetched_tokens import Tokens, refreshing_session
from raised import raised, raising

from aioretry_smithy import RequestLog


@pytest.mark.parametrize("outside", [(), (retrying(SAFELY),)])
async def test_another_token_is_fetched(outside):
    """Once, and the request goes out again."""
    tokens = Tokens()
    async with refreshing_session(tokens, *outside, inside=[raising]) as opened:
        await opened.get("/")
        tokens.expire()
        response = await opened.get("/")

    assert (200, 3) == (response.status, tokens.asked)
    if outside:
        assert 2 == RequestLog.of(response).total_attempts


@pytest.mark.parametrize(
    "error",
    [
        raised(403),
        raised(401, kind=aiohttp.ClientHttpProxyError),
        # Of http://example.com, which is no server of ours.
        raised(401),
    ],
    ids=["another status", "a proxy's", "a stranger's"],
)
async def test_what_refuses_no_token_of_ours_fetches_none(error):
    """It is the caller's."""
    tokens = Tokens()
    async with refreshing_session(tokens, answers=[error]) as opened:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await opened.get("/")

    assert (error.status, 1) == (caught.value.status, tokens.asked)


async def test_body_that_cannot_be_sent_again_gets_its_refusal():
    """The next call has another token."""

    class Unseekable(io.BytesIO):
        def seekable(self):
            return False

    tokens = Tokens()
    async with refreshing_session(tokens, inside=[raising]) as opened:
        await opened.get("/")
        tokens.expire()
        with pytest.raises(aiohttp.ClientResponseError):
            await opened.post("/", data=Unseekable(b"once"))
        response = await opened.get("/")

    assert 200 == response.status
