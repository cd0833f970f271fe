"""Places are given back whatever the answer looks like."""

from __future__ import annotations

from unittest import mock

import aiohttp
import pytest
from chains import URL, connected

from aioretry_smithy import ConcurrencyLimit, ConcurrencyLimitingClient, RequestLog


async def test_an_answer_without_a_status_keeps_no_place(monkeypatch):
    """A mock without one is closed, and its log says what was wrong."""
    mocked = mock.AsyncMock(return_value=mock.MagicMock())
    monkeypatch.setattr(aiohttp.ClientSession, "_request", mocked)
    limit = ConcurrencyLimit.fixed(1)
    decorator = ConcurrencyLimitingClient.new_decorator(limit)
    async with connected(None, decorator) as client:
        with pytest.raises(TypeError) as caught:
            await client.get(URL)

    assert 0 == limit.in_flight
    mocked.return_value.close.assert_called_with()
    assert TypeError is type(RequestLog.of(caught.value).response_cause)
