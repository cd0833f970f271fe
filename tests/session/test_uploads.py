"""Counting bodies, one request inside another."""

from __future__ import annotations

from aioretry_smithy._log.upload import Upload
from aioretry_smithy._session.json_once import JsonOnce
from aioretry_smithy._session.uploads import begin_sending, end_sending


def test_request_around_another_is_counted_again():
    """A middleware may send one of its own before that which it was asked for."""
    around, inside, after = Upload(), Upload(), Upload()
    begin_sending(around)
    begin_sending(inside)
    end_sending(inside, JsonOnce())
    begin_sending(after)

    assert after.outer is around
