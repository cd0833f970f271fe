"""The stream that a caller reads while its body comes in parts."""

from __future__ import annotations

import asyncio

from aioretry_smithy._resuming.client import _NoConnection


async def test_stream_of_parts_pauses_no_connection():
    """The first one may be gone by then; aiohttp asks it all the same."""
    connection = _NoConnection(asyncio.get_running_loop())
    connection.pause_reading()
    connection.resume_reading()

    assert connection.transport is None
