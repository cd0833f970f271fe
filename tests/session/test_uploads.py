"""Counting bodies, one request inside another."""

from __future__ import annotations

import asyncio
from functools import partial

from aioretry_smithy._log.upload import new_upload
from aioretry_smithy._session.uploads import (
    _last_upload,
    close_upload,
    open_upload,
    sending,
)


def is_sending():
    upload = _last_upload.get()
    return upload is not None and upload.is_open


async def test_request_around_another_is_counted_again():
    """A middleware may send a request of its own before the one it was asked for."""
    around, inside = new_upload(), new_upload()

    async def send_inside():
        await sending(inside, partial(asyncio.sleep, 0))
        return is_sending()

    assert await sending(around, send_inside)
    assert not inside.is_open


async def test_request_around_that_has_ended_counts_nothing():
    """A call that began inside another one may end after it."""
    around, inside = new_upload(), new_upload()

    async def end_around():
        around.is_open = False

    async def send_both():
        await sending(inside, end_around)
        return is_sending()

    assert not await sending(around, send_both)


def test_upload_counts_one_body():
    """An upload that has counted a body does not count the next one."""
    upload = open_upload(new_upload())
    before = is_sending()
    close_upload(upload)

    assert (True, False) == (before, is_sending())
