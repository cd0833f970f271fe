"""Bodies that are read within their attempt."""

from __future__ import annotations

import aiohttp
import pytest
from calls import REQUEST, begin, call_of
from fake_responses import unending

from aioretry_smithy import new_response
from aioretry_smithy._bodies.response_content import read_head_of, read_whole


async def test_the_beginning_is_read_and_left():
    """Up to a number of bytes; the response can be read as before."""
    response = new_response(REQUEST, body=b"fine and more")

    assert b"fine" == await read_head_of(begin(), response, 4)
    assert b"fine and more" == await response.read()


@pytest.mark.parametrize("was_final", [False, True])
async def test_a_body_that_fails_settles_nothing(was_final):
    """Where its record was open, another outcome may follow; and else none may."""
    call, response = call_of(begin()), unending(REQUEST)
    failure = aiohttp.ClientPayloadError("broke off")
    response.content.set_exception(failure)
    call.is_final = was_final

    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await read_whole(call, response)

    assert failure is caught.value
    assert was_final == call.is_final
    assert response.closed
    assert isinstance(call.outcome.cause, aiohttp.ClientPayloadError)
