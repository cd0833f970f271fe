"""JSON goes out again as it was serialized first."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from aioretry_smithy import ClientRequestContext, HttpRequest
from aioretry_smithy._call.context import resources_of
from aioretry_smithy._session.json_once import JsonOnce

REQUEST = HttpRequest("POST", "http://example.com/")


@pytest.fixture
def session():
    """The place of a session's serializer."""
    return SimpleNamespace(_json_serialize=json.dumps)


@pytest.fixture
def once(session):
    """What stands in front of that serializer."""
    once = JsonOnce()
    once.install(session)
    return once


async def test_each_value_of_a_call_has_its_own_text(session, once):
    """A decorator that sends other JSON has it serialized; the first stays known."""
    ctx, first, second = ClientRequestContext(REQUEST), {"a": 1}, {"a": 2}
    for value in first, second:
        assert {"json": value} == once.begin(ctx, {"json": value})
        session._json_serialize(value)
    first["a"] = second["a"] = 3

    bodies = [once.begin(ctx, {"json": value})["data"] for value in (first, second)]
    assert [b'{"a": 1}', b'{"a": 2}'] == [body._value for body in bodies]


async def test_call_with_other_resources_is_serialized(once):
    """What else a call has in hand is no JSON."""
    ctx = ClientRequestContext(REQUEST)
    resources_of(ctx).use_once(object())

    assert {"json": 1} == once.begin(ctx, {"json": 1})


def test_serializer_that_is_asked_outside_of_a_call(session, once):
    """It serializes, and nothing is noted."""
    assert '{"a": 1}' == session._json_serialize({"a": 1})
    assert once.sending is None


def test_serializer_that_was_replaced_meanwhile_stays(session, once):
    """The end of a decoration gives back what is still its own."""
    session._json_serialize = str

    once.remove(session)

    assert str is session._json_serialize
