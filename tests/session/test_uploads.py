"""Counting bodies, one request inside another."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace

from aioretry_smithy._session.uploads import (
    close_upload,
    current_upload,
    open_upload,
    sending,
)


async def test_request_around_another_is_counted_again():
    """A middleware may send a request of its own before the one it was asked for."""
    around, inside = SimpleNamespace(), SimpleNamespace()

    async def send_inside():
        await sending(inside, None, partial(asyncio.sleep, 0))
        return current_upload()

    counted = await sending(around, None, send_inside)

    assert around._upload is counted
    assert not inside._upload.is_open


async def test_request_around_that_has_ended_counts_nothing():
    """A call that began inside another one may end after it."""
    around, inside = SimpleNamespace(), SimpleNamespace()

    async def end_around():
        around._upload.is_open = False

    async def send_both():
        await sending(inside, None, end_around)
        return current_upload()

    assert await sending(around, None, send_both) is None


def test_upload_counts_one_body():
    """An upload that has counted a body does not count the next one."""
    upload = open_upload()
    before = current_upload()
    close_upload(upload)

    assert (upload, None) == (before, current_upload())
