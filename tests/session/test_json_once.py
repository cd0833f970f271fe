"""JSON goes out again as it was serialized first."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from aioretry_smithy._call.resources import CallResources
from aioretry_smithy._session.json_once import JsonOnce


@pytest.fixture
def session():
    """The place of a session's serializer."""
    return SimpleNamespace(_json_serialize=json.dumps)


@pytest.fixture
def once(session):
    """Return the function in front of that serializer."""
    once = JsonOnce()
    once.install(session)
    return once


def test_each_value_of_a_call_has_its_own_text(session, once):
    """A decorator that sends other JSON has it serialized; the first stays known."""
    resources, first, second = CallResources(), {"a": 1}, {"a": 2}
    for value in first, second:
        assert {"json": value} == once.begin(resources, {"json": value})
        session._json_serialize(value)
    first["a"] = second["a"] = 3

    bodies = [
        once.begin(resources, {"json": value})["data"] for value in (first, second)
    ]
    assert [b'{"a": 1}', b'{"a": 2}'] == [body._value for body in bodies]


def test_serializer_that_is_asked_outside_of_a_call(session, once):
    """It serializes, and nothing is noted."""
    assert '{"a": 1}' == session._json_serialize({"a": 1})
    assert once.sending is None


def test_serializer_that_was_replaced_meanwhile_stays(session, once):
    """The end of a decoration gives back what is still its own."""
    session._json_serialize = str

    once.remove(session)

    assert str is session._json_serialize
