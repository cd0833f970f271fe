"""Classes of requests: JSON that goes out again, counted bodies, tracked uploads."""

import asyncio
import json
from types import FunctionType, SimpleNamespace

import aiohttp
import pytest
from aiohttp import payload
from calls import begin, record_of
from chains import retrying

from aioretry_smithy import (
    HttpRequest,
    RequestLog,
    RetryStrategy,
    decorate,
    is_unprocessed,
    new_response,
)
from aioretry_smithy._session.request_classes import (
    close_upload,
    current_upload,
    keep_json,
    open_upload,
    restore_serializers,
    sending,
)


@pytest.fixture
def serializing():
    """The place of a session's serializer."""
    return SimpleNamespace(_json_serialize=json.dumps)


def sent_again(serializing, known, *values):
    """Serialize values in a request of a call that knows some."""
    upload = open_upload()
    upload.json = known
    texts = [serializing._json_serialize(value) for value in values]
    close_upload(upload)
    return texts


@pytest.fixture
def before(serializing):
    """What is in front of that serializer, to be taken away again."""
    return keep_json(serializing)


@pytest.mark.usefixtures("before")
def test_each_value_of_a_call_has_its_own_text(serializing):
    """A decorator that sends other JSON has it serialized; the first stays known."""
    first, second = {"a": 1}, {"a": 2}
    upload = open_upload()
    for value in first, second:
        serializing._json_serialize(value)
    known = upload.json
    close_upload(upload)
    first["a"] = second["a"] = 3

    assert ['{"a": 1}', '{"a": 2}'] == sent_again(serializing, known, first, second)


@pytest.mark.usefixtures("before")
def test_value_that_was_not_sent_before_is_serialized(serializing):
    """An equal value is another one, and so is one that has other text."""
    value = {"a": 1}
    known = [({"a": 1}, payload.JsonPayload, "1"), (value, None, "1")]

    assert ['{"a": 1}'] == sent_again(serializing, known, value)


@pytest.mark.parametrize("before_it", [None, [({"b": 2}, None, "2")]])
def test_serializer_that_asks_another(serializing, before_it):
    """The text that is sent is kept, not the part of it that the other one made."""
    keep_json(serializing)
    outer = SimpleNamespace(
        _json_serialize=lambda v: f"[{serializing._json_serialize(v)}]"
    )
    keep_json(outer)
    value, upload = {"a": 1}, open_upload()
    upload.json = before_it
    outer._json_serialize(value)
    known = upload.json
    close_upload(upload)

    assert ['[{"a": 1}]'] == sent_again(outer, known, value)
    assert before_it in (None, known)


@pytest.mark.usefixtures("before")
def test_serializer_that_is_asked_outside_of_a_call(serializing):
    """It serializes, and nothing is kept: the request has ended."""
    upload = open_upload()
    close_upload(upload)

    assert '{"a": 1}' == serializing._json_serialize({"a": 1})
    assert upload.json is None


def test_serializer_that_takes_longer_than_the_request():
    """A middleware may have a thread serialize, and not wait for it."""
    upload = open_upload()
    serializing = SimpleNamespace(_json_serialize=lambda _: close_upload(upload))
    keep_json(serializing)
    serializing._json_serialize({"a": 1})

    assert upload.json is None


def test_serializer_is_given_back(serializing, before):
    """The end of a decoration leaves the session as it was."""
    restore_serializers(serializing, before)

    assert json.dumps is serializing._json_serialize


def test_serializer_that_was_replaced_meanwhile_stays(serializing, before):
    """The end of a decoration gives back what is still its own."""
    serializing._json_serialize = str

    restore_serializers(serializing, before)

    assert str is serializing._json_serialize


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


URL = "http://localhost/orders"


@pytest.fixture
async def session(monkeypatch):
    """A session that retries nothing, and notes whether aiohttp would send again."""
    async with aiohttp.ClientSession() as client:
        client.seen = {}
        client.answers = {}

        async def send(self, method, url, **options):
            self.seen[url] = bool(self._retry_connection)
            await asyncio.sleep(0)
            if (failure := self.answers.get(url)) is not None:
                await failure()
            return new_response(HttpRequest(method, url))

        monkeypatch.setattr(aiohttp.ClientSession, "_request", send)
        yield decorate(client, retrying(RetryStrategy.never()))


def of_aiohttp(function, name="_request", **known):
    """Return a function whose frames look like those of aiohttp's function."""
    code = function.__code__.replace(co_name=name)
    return FunctionType(
        code, {"__name__": "aiohttp.client", "aiohttp": aiohttp, **known}
    )


async def test_aiohttp_sends_tracked_uploads_again_and_no_others(session):
    """Also where both are under way together."""
    await asyncio.gather(
        session.put(f"{URL}/1", data=b"1", upload_tracker=object()),
        session.put(f"{URL}/2", data=b"2"),
        session.put(f"{URL}/3", data=b"3", upload_tracker=object()),
    )

    assert {f"{URL}/1": True, f"{URL}/2": False, f"{URL}/3": True} == session.seen


@pytest.mark.parametrize("was_sent", [True, False])
async def test_tracked_upload_that_was_sent_once_was_seen(session, was_sent):
    """A refused connection of the second request changes nothing about that."""
    session.answers[URL] = of_aiohttp(sent if was_sent else unsent)
    with pytest.raises(aiohttp.ConnectionTimeoutError) as caught:
        await session.put(URL, data=b"1", upload_tracker=object())

    assert was_sent is RequestLog.of(caught.value).sent

    assert was_sent is not is_unprocessed(caught.value)


async def sent():
    history = ["a redirect"]  # noqa: F841
    raise aiohttp.ConnectionTimeoutError


async def unsent():
    history = []  # noqa: F841
    raise aiohttp.ConnectionTimeoutError


async def renamed():
    await connect()  # noqa: F821


async def broken():
    raise aiohttp.ServerDisconnectedError


async def test_break_after_unknown_redirects_is_a_failure(session):
    """If aiohttp renames what it keeps them in, nobody knows what to send again."""
    connect = of_aiohttp(broken, "_connect_and_send_request")
    session.answers[URL] = of_aiohttp(renamed, connect=connect)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await session.get(URL)

    assert [URL] == [*session.seen]
