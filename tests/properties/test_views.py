"""Every call is whole in every view, with any texts and times."""

import asyncio
import io
import json
import time
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import aiohttp
import pytest
from calls import begin, begin_body, end, end_call, function, http, note_delay
from chains import in_virtual_time
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_lines import retried, sent
from multidict import CIMultiDict, CIMultiDictProxy

from aioretry_smithy import HttpRequest, LogFormatter, Report, new_response
from aioretry_smithy._log.timeline import timeline
from aioretry_smithy._log.timeline_svg import draw
from aioretry_smithy._report.report import Reading
from aioretry_smithy._report.selection import KEYS, Selection
from aioretry_smithy._text.mask import DEFAULT_MASK
from aioretry_smithy.testing import VirtualTimeLoop

EXAMPLES = settings.default.max_examples
"""As many as the profile says; what is cheap here gets a multiple of it."""
MARK = "c4n4ry"
# Texts of any kind, and such as are close to being something.
anything = st.text(st.characters(codec=None), max_size=40)
tokens = st.sampled_from(
    [
        *"0 1 9 -1 1e9 nan inf 0x1 , ; : = / ? # & @ // % %% ' \" b' \\ | + - \t \n \r",
        *"Mon Monday Sun, 06 Nov 1994 94 0000 9999 08:49:37 24:00:00 GMT UTC".split(),
        *"exponential=200:10000:2.0 fibonacci fixed= random=1:2 jitter=0.2".split(),
        *"maxAttempts=3 200ms 10s 1.5s 999999999999s -0.0".split(),
        *"http: https://a b:c@d ?token= &key= password= token".split(),
        "\u0663",
        "\x1b[2J",
        "\u2028",
        "\udcff",
        "9" * 5000,
    ]
)
nearly = st.lists(tokens, max_size=8).map("".join)
texts = anything | nearly


secrets = st.text(
    st.characters(codec="utf-8", exclude_characters="&#@/?", exclude_categories="ZC"),
    max_size=12,
).map(lambda text: f"{MARK}{text}")
names = st.sampled_from("token api_key password X-Amz-Signature clientSecret".split())


@given(before=texts, user=st.text("abc", max_size=3), secret=secrets, after=texts)
@settings(max_examples=10 * EXAMPLES)
def test_no_password_gets_through(before, user, secret, after):
    """The text before the host of a URL is hidden, with anything around it."""
    shown = DEFAULT_MASK.text(f"{before}http://{user}:{secret}@example.com/{after}")

    assert MARK not in shown


@given(before=texts, name=names, secret=secrets, after=texts)
@settings(max_examples=10 * EXAMPLES)
def test_no_parameter_gets_through(before, name, secret, after):
    """A secret parameter is hidden, whatever stands around it."""
    shown = DEFAULT_MASK.text(f"{before}?{name}={secret}&page={after}")

    assert MARK not in shown


@given(unit=st.text("ab:/@?&#;=%+ '\"[]\\\n1K", min_size=1, max_size=6), tail=nearly)
@settings(max_examples=EXAMPLES)
@example(unit="//", tail="@")
@example(unit="//a:1", tail="@")
@example(unit="b'", tail="\\")
@example(unit="?", tail="token=")
@example(unit="?aB", tail="=")
@example(unit="%4", tail="=")
def test_long_texts_are_masked_in_linear_time(unit, tail):
    """A server that knows the patterns cannot keep a client busy with them."""
    text = unit * (100_000 // len(unit)) + tail
    started = time.process_time()
    log_of(HttpRequest("GET", "http://a/"), failure=ValueError(text)).to_dict()

    assert time.process_time() - started < 2.0


def log_of(request, *, reason="", headers=None, failure=None):
    """Make the log of a call of two attempts: one failed, one was answered."""
    response = SimpleNamespace(
        status=503,
        reason=reason,
        headers=CIMultiDictProxy(headers or CIMultiDict()),
        history=(),
        request_info=SimpleNamespace(headers=request.headers),
    )

    async def call():
        ctx = begin(request)
        end(ctx.derive(request), failure or OSError(reason))
        answered = ctx.derive(request)
        begin_body(answered, response)
        end_call(ctx, answered)
        return ctx.log

    return in_virtual_time(call())


@given(
    method=texts,
    url=texts | texts.map("http://example.com/{}".format),
    params=st.none() | st.dictionaries(texts, texts, max_size=2) | texts,
    headers=st.lists(st.tuples(texts, texts), max_size=3),
    reason=texts,
    failure=texts.map(ValueError) | texts.map(aiohttp.InvalidURL),
)
@settings(max_examples=5 * EXAMPLES)
def test_views_of_any_call_are_whole_and_one_line_per_entry(
    method, url, params, headers, reason, failure
):
    """No text breaks a tree, a line or a JSON value, or makes one of them fail."""
    given_headers = CIMultiDict(headers)
    request = HttpRequest(method, url, headers=given_headers, params=params)
    log = log_of(request, reason=reason, headers=given_headers, failure=failure)
    lines = log.render().split("\n")
    json_lines = [
        LogFormatter.json().format_request(log),
        LogFormatter.json().format_response(log),
    ]
    text_lines = [
        LogFormatter.text().format_request(log),
        LogFormatter.text().format_response(log),
    ]

    assert 3 == len(lines)
    assert all(line.isprintable() for line in [*lines, *text_lines])
    assert all(repr(value).isprintable() for value in (log, request))
    # JSON leaves the one control character of ASCII that moves nothing.
    assert all(line.replace("\x7f", "").isprintable() for line in json_lines)
    assert log.to_dict() == json.loads(json.dumps(log.to_dict()))
    assert all(isinstance(json.loads(line), dict) for line in json_lines)


@pytest.mark.parametrize("name", ["Authorization", "cookie", "SET-COOKIE"])
@given(secret=texts, other=texts)
@settings(max_examples=EXAMPLES)
def test_no_secret_header_gets_through(name, secret, other):
    """The value of a secret header is in no view, whatever is in it."""
    headers = CIMultiDict({"X-Other": other, name: f"{MARK}{secret}"})
    request = HttpRequest("GET", "http://example.com/", headers=headers)
    log = log_of(request, headers=headers)
    views = [log.render(), json.dumps(log.to_dict()), repr(log), repr(request)]
    for formatter in (LogFormatter.text(), LogFormatter.json()):
        views += [formatter.format_request(log), formatter.format_response(log)]

    assert [] == [view for view in views if MARK in view]


NAMES = st.text(st.characters(), min_size=1, max_size=20)
SECONDS = st.sampled_from([0.0, 0.1, 3.0])
LEAF = st.tuples(NAMES, st.just([]))
CALLS = st.recursive(
    LEAF,
    # A call has attempts, each of which has so many seconds and calls inside.
    lambda inside: st.tuples(
        NAMES, st.lists(st.tuples(SECONDS, st.lists(inside, max_size=3)), max_size=3)
    ),
    max_leaves=12,
)
SVG = "{http://www.w3.org/2000/svg}"


async def made(call, inside=None):
    """Make a call of a function, or of HTTP where it has no attempts."""
    name, attempts = call
    if not attempts:
        ctx = http("http://example.com/", inside)
        end(ctx, 200)
        return ctx.log
    ctx = function(name, inside)
    for seconds, calls in attempts:
        attempt = ctx.derive(ctx.request)
        await asyncio.sleep(seconds)
        for each in calls:
            await made(each, attempt.log)
        end(attempt)
    end_call(ctx, attempt)
    return ctx.log


def lines_of(log):
    """Return how many lines a log and all that it has inside take."""
    return 1 + sum(map(lines_of, (*log.calls, *log.children)))


def check_tree(log):
    lines = log.render().splitlines()
    inside = [line for call in inside_of(log) for line in call.render().splitlines()]

    assert lines_of(log) == len(lines)
    assert all(any(line.endswith(part) for line in lines) for part in inside)


def inside_of(log):
    return [call for attempt in (log, *log.children) for call in attempt.calls]


def check_values(log):
    def count(values):
        parts = [*values.get("calls", ()), *values["children"]]
        return 1 + sum(map(count, parts))

    assert lines_of(log) == count(json.loads(json.dumps(log.to_dict())))


def check_picture(log, path):
    log.to_svg(path)
    root = ET.parse(path).getroot()
    height = float(root.get("height"))

    for each in root.iter(f"{SVG}rect"):
        x, y = float(each.get("x", 0)), float(each.get("y", 0))
        assert x >= 0
        assert x + float(each.get("width")) <= 900.2
        assert y + float(each.get("height")) <= height


def check_colours(log):
    console = pytest.importorskip("rich.console").Console
    screen = console(file=io.StringIO(), force_terminal=True, width=200, no_color=True)
    screen.print(log)
    drawn = screen.file.getvalue().splitlines()

    assert log.render().splitlines() == [
        line.replace("\x1b[2m", "").replace("\x1b[0m", "").rstrip(" █▒░")
        for line in drawn
    ]


@given(call=CALLS)
def test_every_call_is_in_every_view(tmp_path_factory, call):
    """However deep and wide a tree is, nothing of it is lost or out of its place."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        log = runner.run(made(call))
        check_tree(log)
        check_values(log)
        check_picture(log, tmp_path_factory.getbasetemp() / "call.svg")
        check_colours(log)


WORDS = st.text(st.characters(), max_size=200)
PAUSES = st.floats(0, 1e6) | st.sampled_from([0.0, 1e-9, 0.001, 3.0])
ATTEMPTS = st.lists(
    st.tuples(PAUSES, st.none() | st.integers(100, 999), WORDS, st.none() | PAUSES),
    max_size=8,
)


async def log_of_attempts(url, limit, attempts):
    ctx = http(url, timeout=limit)
    for seconds, status, words, delay in attempts:
        attempt = ctx.derive(ctx.request)
        await asyncio.sleep(seconds)
        if status is None:
            end(attempt, ValueError(words))
        else:
            response = new_response(ctx.request, status)
            response.reason = words
            begin_body(attempt, response)
        if delay is not None:
            note_delay(attempt, delay, "backoff")
            await asyncio.sleep(delay)
    return ctx.log


def check(log):
    root = ET.fromstring(draw(log))
    times = timeline(log)

    for each in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, length = float(each.get("x", 0)), float(each.get("width"))
        assert x >= 0
        assert x + length <= 900.2
    assert log.children == times.attempts
    for bar in times.bars:
        for span in bar.parts.values():
            assert 0.0 <= span.start <= span.end <= times.end


@given(url=WORDS, limit=st.none() | PAUSES, attempts=ATTEMPTS)
def test_picture_is_a_document(url, limit, attempts):
    """With any texts and times it is XML, and no bar is outside."""
    check(in_virtual_time(log_of_attempts(f"http://h/{url}", limit, attempts)))


KNOWN = [
    *sorted({*retried(), *sent(), "attempt", "response_headers", "response_reason"}),
    *("calls", "connection", "delay", "delay_source", "endpoint", "is_success"),
    *("response_cause", "response_cause_type", "retry_error", "sampled"),
    *("sampling_rate", "stop_reason", "superseded"),
]
TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(
    [
        *("</style><script>", "\u202e", "\ud800", "\x00", "Error: x", "a: b: c"),
        *("2026-11-26T12:00:00+00:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59"),
        *("http://[", "http://x:y@h/%00", "//", "stale_connection", "rate_limit"),
        *(
            "ClientConnectorError: \x1b[2J",
            "ClientResponseError: 503, message='', url=''",
        ),
    ]
)
NUMBERS = st.sampled_from([0, -1, 1, 1e-300, 1e300, -1e300, 2**63, 10**400, 0.5, 503])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(st.sampled_from(KNOWN) | TEXTS, inside, max_size=3)
    ),
    max_leaves=8,
)
CHANGES = st.dictionaries(st.sampled_from(KNOWN), VALUES, max_size=6)


@st.composite
def lines(draw):
    """Make a line as it should be, of which anything may be something else."""
    call = retried() | draw(CHANGES)
    children = call["children"]
    if isinstance(children, list) and children and isinstance(children[0], dict):
        call["children"] = [children[0] | draw(CHANGES), *children[1:]]
    if draw(st.booleans()):
        call["calls"] = [retried() | draw(CHANGES)]
    return json.dumps(call).encode()


@given(read=st.lists(lines(), min_size=1, max_size=3), by=st.sampled_from(KEYS))
def test_any_line_gives_a_page_and_a_text(read, by):
    """No value of a line breaks a view, in any of the groupings."""
    reading = Reading(by, 10, Selection())
    reading.note_lines_inside(read)
    reading.add_lines(read)
    report = Report(reading.answers())

    page = report.to_html()

    assert len(page.encode()) < 300_000
    assert not {"script", "img"} & {tag(each) for each in ET.fromstring(page).iter()}
    assert report.render().replace("\n", "").isprintable()


def tag(element):
    return element.tag.rpartition("}")[2]
