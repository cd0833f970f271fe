"""Counting bodies, one request inside another."""

from __future__ import annotations

from aioretry_smithy._session.uploads import close_upload, current_upload, open_upload


def test_request_around_another_is_counted_again():
    """A middleware may send a request of its own before the one it was asked for."""
    around = open_upload()
    inside = open_upload()
    close_upload(inside)

    assert current_upload() is around
    close_upload(around)


def test_request_around_that_has_ended_counts_nothing():
    """A call that began inside another one may end after it."""
    around = open_upload()
    inside = open_upload()
    close_upload(around)
    close_upload(inside)

    assert current_upload() is None


def test_upload_counts_one_body():
    """An upload that has counted a body does not count the next one."""
    upload = open_upload()
    before = current_upload()
    close_upload(upload)

    assert (upload, None) == (before, current_upload())
