"""Counting bodies, one request inside another."""

from __future__ import annotations

from calls import begin, record_of

from aioretry_smithy._session.request_classes import (
    close_upload,
    current_upload,
    open_upload,
    sending,
)


async def test_request_around_another_is_counted_again():
    """A middleware may send a request of its own before the one it was asked for."""
    around = begin()

    async def upload():
        return current_upload()

    async def send_inside():
        inside = await sending(record_of(begin())[1], None, upload)
        return inside, current_upload()

    inside, counted = await sending(record_of(around)[1], None, send_inside)
    counted.length = 7

    assert 7 == around.log.request_length
    assert not inside.is_open


async def test_request_around_that_has_ended_counts_nothing():
    """A call that began inside another one may end after it."""

    async def send_both():
        around = current_upload()

        async def end_around():
            around.is_open = False

        await sending(record_of(begin())[1], None, end_around)
        return current_upload()

    assert await sending(record_of(begin())[1], None, send_both) is None


def test_upload_counts_one_body():
    """An upload that has counted a body does not count the next one."""
    upload = open_upload()
    before = current_upload()
    close_upload(upload)

    assert (upload, None) == (before, current_upload())
