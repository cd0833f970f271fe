"""Failures as classifiers see them: status, headers, error code; and their verdicts."""

import asyncio
import math
from types import SimpleNamespace
from unittest.mock import Mock

import aiohttp
import pytest
from calls import begin_body, ended
from chains import bad_argument, set_time_of_day
from fake_responses import unending
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import HttpRequest, new_response
from aioretry_smithy._bodies.response_content import read_head_within
from aioretry_smithy._retry.classify import read_error_code
from aioretry_smithy.smithy import Failure, RetryAction

REQUEST = HttpRequest("POST", "http://localhost/")
JSON = "application/x-amz-json-1.0"
XML = "application/xml"
AWS_XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<ErrorResponse xmlns="urn:x">
  <Error><Type>Sender</Type><Code>A</Code><Message>x</Message></Error>
</ErrorResponse>
"""
LIMIT = 64 * 1024


def responding(body=b"", content_type=JSON, *, status=400, headers=()):
    """Make a response with a body."""
    headers = {"Content-Type": content_type, **dict(headers)}
    return new_response(REQUEST, status, headers=headers, body=body)


async def code_in(body=b"", content_type=JSON, **options):
    """Return the code in a body."""
    return await read_error_code(responding(body, content_type, **options))


@pytest.mark.parametrize(
    "code",
    [
        "SlowDown",
        "com.example#SlowDown",
        "SlowDown:http://internal.example.com/coral/",
        "com.example#SlowDown:http://internal.example.com/#a:b",
        " SlowDown ",
    ],
)
async def test_code_is_stripped_of_namespace_and_url(code):
    """That holds for a code in a header, in JSON and in XML."""
    in_header = await code_in(headers={"x-amzn-errortype": code})
    in_json = await code_in(b'{"__type": "%b"}' % code.encode())
    in_xml = await code_in(b"<Error><Code>%b</Code></Error>" % code.encode(), XML)

    assert ["SlowDown"] * 3 == [in_header, in_json, in_xml]


async def test_header_comes_first():
    """The body is not waited for then."""
    response = responding(
        b'{"__type": "FromBody"}', headers={"X-Amzn-ErrorType": "FromHeader"}
    )
    response.content = Unreadable()

    assert "FromHeader" == await read_error_code(response)


@pytest.mark.parametrize("header", ["", "#", ":http://x", "two words", "x" * 129])
async def test_header_without_a_code_does_not_hide_the_body(header):
    """A proxy may have emptied it."""
    code = await code_in(b'{"code": "A"}', headers={"x-amzn-errortype": header})

    assert "A" == code


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"__type": "A"}', "A"),
        (b'{"code": "A"}', "A"),
        (b'{"Code": "A"}', "A"),
        (b'{"code": "B", "__type": "A"}', "A"),
        (b'{"code": "A", "__type": null}', "A"),
        (b'{"code": "A", "__type": ""}', "A"),
        (b'{"code": 17, "Error": {"Code": "A", "Message": "x"}}', "A"),
        (b'{"error": {"message": "x", "code": "A"}}', "A"),
        (b'{"error": {"code": "B"}, "code": "A"}', "A"),
        (b'{"message": "a \\"quoted\\" {word}, \\u0041", "__type": "A"}', "A"),
        (b'{"items": [{"code": "B"}, [1.5e3, true]], "code": "A"}', "A"),
        (b'{"a \\" \\\\": 1, "code": "A"}', "A"),
        (b'\xef\xbb\xbf {\n  "__type" :\t"A"\n}', "A"),
        (b'{"message": "\xff\xfe", "code": "A"}', "A"),
        (b'{"code": 400}', None),
        (b'{"error": "A"}', None),
        (b'{"error": ["code", "A"]}', None),
        (b'{"data": {"code": "A"}}', None),
        (b'["__type", "A"]', None),
        (b'"A"', None),
        (b"null", None),
        (b"", None),
        (b"<html>", None),
    ],
)
async def test_code_in_json(body, code):
    """``__type`` before ``code``, and ``code`` before that of an inner error."""
    assert code == await code_in(body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<Error><Code>A</Code><Message>x</Message></Error>", "A"),
        (AWS_XML, "A"),
        (b"<Response><Errors><Error><Code>A</Code></Error></Errors></Response>", "A"),
        (b'<s:Error xmlns:s="urn:x"><s:Code>A</s:Code></s:Error>', "A"),
        (b'<Error><Code lang="en">\n  A\n</Code></Error>', "A"),
        (b"<Error><Code/><Code>A</Code><Code>B</Code></Error>", "A"),
        (b"<Error><Code>two words</Code>x<Code>A</Code></Error>", "A"),
        (b"<Error><Code>A&#46;B</Code></Error>", "A.B"),
        (b"<Error><Code><![CDATA[A]]></Code></Error>", "A"),
        (b"<Error><!-- <Code>B</Code> --><Code>A</Code></Error>", "A"),
        (b"<Error><Message><![CDATA[<Code>B</Code>]]></Message></Error>", None),
        (b'<?xml version="1.0" encoding="nonsense"?><E><Code>A</Code></E>', "A"),
        (b"<Error><ErrorCode>A</ErrorCode><code>B</code></Error>", None),
        (b"<Error><Code>A</Error>", None),
        (b"<Error><Code>&unknown;</Code></Error>", None),
        (b"\x00<Error>", None),
        (b"", None),
        (b'{"code": "A"}', None),
    ],
)
async def test_code_in_xml(body, code):
    """The first element of that name, in the forms of all three protocols."""
    assert code == await code_in(body, XML)


@pytest.mark.parametrize(
    "doctype",
    [
        b'<!DOCTYPE x [<!ENTITY a "SlowDown"><!ENTITY b "&a;&a;&a;">]>',
        b'<!DOCTYPE x SYSTEM "file:///etc/hostname">',
        b"<!DOCTYPE html>",
    ],
)
async def test_document_with_a_doctype_is_refused(doctype):
    """It may define entities, which expand to more than memory holds."""
    body = doctype + b"<Error><Code>A</Code></Error>"

    assert None is await code_in(body, XML)


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("application/json", "J"),
        ("application/x-amz-json-1.1", "J"),
        ("application/problem+json; charset=utf-8", "J"),
        ("Application/JSON ;x=y", "J"),
        ("text/json", "J"),
        ("application/xml", "X"),
        ("text/xml;charset=UTF-8", "X"),
        ("application/atom+xml", "X"),
        ("text/html", None),
        ("application/octet-stream", None),
        ("application/jsonl", None),
        ("image/svg+xml", None),
        ("json", None),
        ("", None),
    ],
)
async def test_only_json_and_xml_are_looked_at(content_type, code):
    """Anything else may be a download."""
    json, xml = b'{"code": "J"}', b"<Error><Code>X</Code></Error>"
    found = {await code_in(body, content_type) for body in (json, xml)} - {None}

    assert ({code} - {None}) == found


@pytest.mark.parametrize("status", [101, 200, 204, 304, 399])
async def test_status_below_400_has_no_code(status):
    """A download with a member of that name."""
    response = responding(
        b'{"code": "A"}', status=status, headers={"x-amzn-errortype": "A"}
    )

    assert None is await read_error_code(response)


@pytest.mark.parametrize(
    "code", ["two words", "A\\u001b[31m", "\\u00e4", "A" * 129, "http://example.com/#A"]
)
async def test_what_is_no_word_is_no_code(code):
    """It goes into messages and logs."""
    assert None is await code_in(f'{{"code": "{code}"}}'.encode())


@pytest.mark.parametrize(
    ("before", "after", "content_type"),
    [
        (b'{"code": "A", "x": "', b'"}', JSON),
        (b"<Error><Code>A</Code><x>", b"</x></Error>", XML),
    ],
)
async def test_code_at_the_beginning_of_a_long_body_is_found(
    before, after, content_type
):
    """A body that is cut off is read up to there."""
    assert "A" == await code_in(before + b"x" * LIMIT + after, content_type)


@pytest.mark.parametrize(
    ("template", "content_type"),
    [
        (b'{"x": "%b", "code": "SlowDown"}', JSON),
        (b"<Error><x>%b</x><Code>SlowDown</Code></Error>", XML),
    ],
)
async def test_code_behind_64_kib_is_not_looked_for(template, content_type):
    """Nor is a code that ends there taken for a shorter one."""
    found = set()
    for size in range(LIMIT - 8, LIMIT + 64):
        body = template % (b"x" * (size - len(template)))
        found.add(await code_in(body, content_type))

    assert {"SlowDown", None} == found


async def test_response_reads_as_before():
    """The caller gets the body, and the stream its bytes."""
    body = b'{"code": "A"}'
    first, second = responding(body), responding(body)
    codes = [await read_error_code(first), await read_error_code(first)]
    codes.append(await read_error_code(second))

    assert ["A"] * 3 == codes
    assert body == await first.read()
    assert body == await second.content.read()


async def test_body_that_was_read_has_its_code():
    """By a decorator inside, say."""
    response = responding(b'{"code": "A"}')
    await response.read()

    assert "A" == await read_error_code(response)


async def test_body_that_fails_has_no_code():
    """A reader meets the failure later; the status is there all the same."""
    response = responding()
    response.content.set_exception(aiohttp.ClientPayloadError("cut"))
    response.content._eof = False

    assert await read_error_code(response) is None
    with pytest.raises(aiohttp.ClientPayloadError):
        await response.read()


def stalling(start, content_type=JSON):
    """Make a response whose body begins and then hangs."""
    headers = {"Content-Type": content_type}
    return unending(REQUEST, 503, headers=headers, start=start)


@pytest.mark.parametrize(
    ("start", "content_type", "code", "seconds"),
    [
        (b'{"__type": "A", "message": "', JSON, "A", 0.0),
        (b"<Error><Code>A</Code><Mess", XML, "A", 0.0),
        # A __type might still come.
        (b'{"code": "A", "message": "', JSON, "A", 1.0),
        (b'{"__type": 1, "code": "A", "message": "', JSON, "A", 1.0),
        (b'{"message": "', JSON, None, 1.0),
        (b"", XML, None, 1.0),
    ],
)
async def test_body_that_stalls_is_waited_for_for_a_second_at_most(
    start, content_type, code, seconds
):
    """And not at all once the code is there; what has come can still be read."""
    loop = asyncio.get_running_loop()
    response = stalling(start, content_type)
    found = await read_error_code(response)

    assert (code, seconds) == (found, loop.time())
    response.content.feed_data(b"rest")
    response.content.feed_eof()
    assert start + b"rest" == await response.read()


async def test_body_that_dribbles_is_not_parsed_for_each_drop():
    """The work grows with the size, not with its square."""
    looks = []
    response = stalling(b"")

    async def dribble():
        for _ in range(1000):
            response.content.feed_data(b"x")
            await asyncio.sleep(0)
        response.content.feed_eof()

    def enough(head):
        looks.append(len(head))
        return False

    async with asyncio.TaskGroup() as group:
        group.create_task(dribble())
        head = await read_head_within(response, LIMIT, seconds=1.0, enough=enough)

    assert 1000 == len(head)
    assert len(looks) < 15


async def test_cancelled_look_leaves_the_body_whole():
    """The part that was read until then is put back."""
    response = stalling(b'{"code": ')
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await read_error_code(response)
    response.content.feed_eof()

    assert b'{"code": ' == await response.read()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"[" * LIMIT, JSON),
        (b'{"a": ' * (LIMIT // 6), JSON),
        (b'{"a": ' + b"9" * LIMIT, JSON),
        (b'{"' + b"\\" * LIMIT, JSON),
        (b'{"a":1' * (LIMIT // 6), JSON),
        (b" " * LIMIT, JSON),
        (b"<a>" * (LIMIT // 3), XML),
        (b"<!--" * (LIMIT // 4), XML),
        (b"<a b='" * (LIMIT // 6), XML),
        (b"<Error><Code>" + b"x" * LIMIT, XML),
    ],
)
async def test_hostile_bodies_have_no_code(body, content_type):
    """Deep nesting, endless numbers and the like are no reason to raise."""
    assert None is await code_in(body, content_type)


class Unreadable(aiohttp.StreamReader):
    """A stream that must not be looked at."""

    def __init__(self):
        pass

    def at_eof(self):
        raise AssertionError("read")


INFO = aiohttp.RequestInfo(URL("http://localhost/"), "GET", CIMultiDict())


@pytest.mark.parametrize("kind", ["throttling", 1, True, None])
def test_kind_is_one_of_three(kind):
    """A word in its place would be compared by identity, and never be equal."""
    with bad_argument("kind", kind, "an ErrorKind"):
        RetryAction.retry(kind)


@pytest.mark.parametrize("hint", [-0.1, math.nan, math.inf, True, "1"])
def test_hint_is_a_time_that_can_be_waited(hint):
    """It would otherwise fail in the middle of a call, or be dropped in silence."""
    with bad_argument("retry_after", hint, "finite and >= 0, or None"):
        RetryAction.retry(retry_after=hint)


async def test_exception_has_neither_status_nor_headers():
    """So that a classifier may look at headers without asking first."""
    cause = TimeoutError()
    failure = Failure(ended(cause=cause), cause)

    assert None is failure.status
    assert {} == dict(failure.headers)
    assert None is failure.retry_after


@pytest.mark.parametrize("status", [400, 503])
async def test_error_raised_for_a_status_stands_for_its_response(status):
    """A decorator may have turned the response into an exception."""
    headers = CIMultiDict({"Retry-After": "3"})
    cause = aiohttp.ClientResponseError(INFO, (), status=status, headers=headers)
    failure = Failure(ended(cause=cause), cause)

    assert status == failure.status
    assert 3.0 == failure.retry_after


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        (Mock(), {}),
        ([("Retry-After", "3")], {}),
        ({"Retry-After": 3}, {"Retry-After": "3"}),
        ({1: 2}, {"1": "2"}),
    ],
    ids=["a mock", "pairs", "numbers", "a number for a name"],
)
async def test_headers_are_texts_whatever_a_test_kit_answers_with(headers, found):
    """A classifier that looks at them must not end the call."""
    ctx = ended()
    begin_body(ctx, SimpleNamespace(status=503, headers=headers))
    failure = Failure(ctx)

    assert found == dict(failure.headers)
    assert (3.0 if "Retry-After" in found else None) == failure.retry_after


async def test_hint_without_a_date_counts_from_when_the_response_came():
    """Not from when the call began, nor from the year 1970."""
    # Sun, 06 Nov 1994 08:49:37 GMT
    set_time_of_day(784111777.0)
    ctx = ended()
    await asyncio.sleep(3.0)
    hint = {"Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"}
    begin_body(ctx, 503, headers=hint)

    assert 7.0 == pytest.approx(Failure(ctx).retry_after)
