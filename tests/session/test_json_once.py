"""JSON goes out again as it was serialized first."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from aiohttp import payload

from aioretry_smithy._session.request_classes import (
    close_upload,
    keep_json,
    open_upload,
    restore_serializers,
)


@pytest.fixture
def session():
    """The place of a session's serializer."""
    return SimpleNamespace(_json_serialize=json.dumps)


def sent_again(session, known, *values):
    """Serialize values in a request of a call that knows some."""
    upload = open_upload()
    upload.json = known
    texts = [session._json_serialize(value) for value in values]
    close_upload(upload)
    return texts


@pytest.fixture
def before(session):
    """What is in front of that serializer, to be taken away again."""
    return keep_json(session)


@pytest.mark.usefixtures("before")
def test_each_value_of_a_call_has_its_own_text(session):
    """A decorator that sends other JSON has it serialized; the first stays known."""
    first, second = {"a": 1}, {"a": 2}
    upload = open_upload()
    for value in first, second:
        session._json_serialize(value)
    known = upload.json
    close_upload(upload)
    first["a"] = second["a"] = 3

    assert ['{"a": 1}', '{"a": 2}'] == sent_again(session, known, first, second)


@pytest.mark.usefixtures("before")
def test_value_that_was_not_sent_before_is_serialized(session):
    """An equal value is another one, and so is one that has other text."""
    value = {"a": 1}
    known = [({"a": 1}, payload.JsonPayload, "1"), (value, None, "1")]

    assert ['{"a": 1}'] == sent_again(session, known, value)


@pytest.mark.parametrize("before_it", [None, [({"b": 2}, None, "2")]])
def test_serializer_that_asks_another(session, before_it):
    """The text that is sent is kept, not the part of it that the other one made."""
    keep_json(session)
    outer = SimpleNamespace(_json_serialize=lambda v: f"[{session._json_serialize(v)}]")
    keep_json(outer)
    value, upload = {"a": 1}, open_upload()
    upload.json = before_it
    outer._json_serialize(value)
    known = upload.json
    close_upload(upload)

    assert ['[{"a": 1}]'] == sent_again(outer, known, value)
    assert before_it in (None, known)


@pytest.mark.usefixtures("before")
def test_serializer_that_is_asked_outside_of_a_call(session):
    """It serializes, and nothing is kept: the request has ended."""
    upload = open_upload()
    close_upload(upload)

    assert '{"a": 1}' == session._json_serialize({"a": 1})
    assert upload.json is None


def test_serializer_that_takes_longer_than_the_request():
    """A middleware may have a thread serialize, and not wait for it."""
    upload = open_upload()
    session = SimpleNamespace(_json_serialize=lambda _: close_upload(upload))
    keep_json(session)
    session._json_serialize({"a": 1})

    assert upload.json is None


def test_serializer_is_given_back(session, before):
    """The end of a decoration leaves the session as it was."""
    restore_serializers(session, before)

    assert json.dumps is session._json_serialize


def test_serializer_that_was_replaced_meanwhile_stays(session, before):
    """The end of a decoration gives back what is still its own."""
    session._json_serialize = str

    restore_serializers(session, before)

    assert str is session._json_serialize
