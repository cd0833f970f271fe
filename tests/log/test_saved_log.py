"""A log that is read back from its line, of which any value may be missing or wrong."""

import json

import pytest
from calls import drop_calls, report
from chains import (
    after,
    decorated,
    log_of,
    log_of_cancelled,
    refused,
    retrying,
    retrying_session,
    session,
    silence,
)

pytest.importorskip("rich", reason="needs the extra cli")
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ContentPreviewingClient,
    Endpoint,
    EndpointGroup,
    HedgingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy._log.rich_tree import RichTree
from aioretry_smithy._log.saved_log import SavedLog, cleaned
from aioretry_smithy._log.timeline_svg import draw
from aioretry_smithy._log.tree import describe_waits, tree
from aioretry_smithy._text.mask import DEFAULT_MASK
from aioretry_smithy.testing import ScriptedTransport

SECRET = "http://user:S3CR3T@localhost/orders?token=S3CR3T"


SAFE = RetryStrategy.failsafe(Backoff.fixed(0.5))


async def hedged():
    answers = [after(1.0, 200), after(0.25, 200)]
    return await log_of(session(answers, HedgingClient.new_decorator(0.5)))


async def previewed():
    preview = ContentPreviewingClient.new_decorator(200)
    body = {"Content-Type": "application/json"}, b'{"token": "S3CR3T", "a": [1]}'
    chain = session([(200, *body)], preview)
    return await log_of(chain, method="POST", json={"token": "S3CR3T", "a": 1})


def balanced(*endpoints):
    """Send each attempt to an endpoint of its own, at a path with a version in it."""

    @client_decorator
    async def versioned(delegate, ctx, request):
        url = request.url / "v2"
        return await delegate.execute(ctx, request.replace(url=url))

    async def call():
        transport = ScriptedTransport([503, 200])
        inside = [transport, *[versioned] * (endpoints[-1] == "changed")]
        urls = [each for each in endpoints if each != "changed"]
        builder = decorated(SessionBuilder(EndpointGroup.of(*urls)), *inside)
        return await log_of(builder.decorator(retrying(SAFE)).build(), "/orders")

    return call


async def refused_by_a_circuit():
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    guard = CircuitBreakerClient.new_decorator(breaker)
    return await log_of(retrying_session([200], SAFE, guard))


SCENES = {
    "answered": lambda: log_of(session([200])),
    "retried": lambda: log_of(retrying_session([503, after(0.25, 502), 200], SAFE)),
    "throttled": lambda: log_of(retrying_session([(429, {"Retry-After": "2"}), 200])),
    "refused": lambda: log_of(retrying_session([refused(), 200], SAFE)),
    "given up": lambda: log_of(retrying_session([503] * 3, SAFE, max_total_attempts=3)),
    "not found": lambda: log_of(session([404]), raise_for_status=True),
    "cancelled": lambda: log_of_cancelled(session([silence]), 0.5),
    "timed out": lambda: log_of(
        session([silence, 200], retrying(SAFE, attempt_timeout=1.0))
    ),
    "late": lambda: log_of(session([silence], retrying(SAFE), timeout=1.0)),
    "invalid": lambda: log_of(session([200]), "http://my shop/"),
    "secret": lambda: log_of(session([200]), SECRET),
    "hedged": hedged,
    "circuit": refused_by_a_circuit,
    "previewed": previewed,
    "balanced": balanced("http://a.test/shop", "https://b.test:8443"),
    "balanced, changed": balanced("http://a.test/shop", "http://b.test", "changed"),
    "at an address": balanced(Endpoint("http://a.test", address="192.0.2.1")),
    "at an address, changed": balanced(
        Endpoint("http://a.test", address="192.0.2.1"), "changed"
    ),
    "key error": lambda: log_of(session([KeyError("order-4711")])),
}


def saved(log):
    return SavedLog(json.loads(json.dumps(log.to_dict())))


def printed(log):
    console = Console(width=120, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        console.print(RichTree(log))
    return capture.get()


@pytest.mark.parametrize("scene", SCENES)
async def test_a_saved_log_is_drawn_as_the_log_itself(scene):
    """Tree, picture and bars need no more than the line has."""
    log = await SCENES[scene]()

    for view in (draw, printed, lambda log: tree(log, log.children)):
        assert view(log) == view(saved(log))


async def test_calls_inside_are_drawn_too():
    """The tree has them, and how many more there were."""
    log = await report()
    drop_calls(log.children[0], 3)

    assert log.render() == tree(saved(log), saved(log).children)


def test_everything_is_read_from_the_line():
    """No fact is asked of a call that is long over."""
    (_, facts, *_) = SavedLog.mro()
    own = {name for name in vars(facts) if not name.startswith("_")}

    assert own <= {*vars(SavedLog)}


def test_empty_line():
    """Whatever is missing is not known."""
    log = SavedLog({})

    assert "  ->  no response yet" == tree(log, log.children)
    assert (None, None, None, None) == (
        log.request,
        log.deadline,
        log.retry_error,
        log.response_headers,
    )
    assert ({}, 0.0, False, log) == (
        log.request_headers,
        log.request_started_at.timestamp(),
        log.is_complete,
        log.root,
    )
    assert not log.is_success
    assert "</svg>" in draw(log)


@pytest.mark.parametrize("year", ["1605", "1969", "9998"])
def test_moments_that_windows_cannot_convert(year):
    """A line may have any, though the C library there begins at 1970."""
    moment = f"{year}-07-01T12:00:00.250000+00:00"
    log = SavedLog({"request_started_at": moment})

    assert moment == log.request_started_at.isoformat()


async def test_a_hedge_without_its_call():
    """When it was sent is not known."""
    log = SavedLog({"attempt": 1, "is_hedge": True, "duration": 0.1})

    assert "" == describe_waits(log)


async def test_times_of_attempts_are_on_the_axis_of_the_call():
    """They have the deadline of their own, and the call that they belong to."""
    log = saved(await SCENES["late"]())

    assert log.deadline == pytest.approx(log.started + 1.0, abs=1e-6)
    assert log is log.children[0].root is log.children[0].parent


@pytest.mark.parametrize("name", ["Bad\0Name", "\ud800", "", "Not A Name", "E" * 9999])
def test_names_of_exceptions_that_no_class_can_have(name):
    """They are shown all the same."""
    log = SavedLog({"name": "GET", "response_cause": f"{name}: why", "duration": 0.5})

    assert ": why" in tree(log, ()) or "E" * 70 in tree(log, ())
    assert "\0" not in tree(log, ())


@pytest.mark.parametrize("text", ["404", "404, message='a', url='b'"])
def test_text_of_an_error_of_aiohttp(text):
    """What it says beside its status is not said twice."""
    log = SavedLog(
        {
            "name": "GET",
            "response_status": 404,
            "response_cause": f"ClientResponseError: {text}",
            "duration": 0.5,
        }
    )

    assert "404, ClientResponseError: " in tree(log, ())


@pytest.mark.parametrize("queued", [0.4, 0.0])
def test_connections(queued):
    """What was waited for them is in the tree and in the picture."""
    waits = {"queued": queued, "dns": None, "connect": 0.1, "reused": False}
    log = SavedLog({"name": "GET", "duration": 0.5, "connection": waits})

    words = "0.500 s in the pool's queue" if queued else "0.100 s for a connection"
    assert words.replace("0.500", "0.400") in tree(log, ())
    assert "</svg>" in draw(log)


def test_time_that_ran_out_in_the_queue():
    """It is told by what the text says."""
    text = "ConnectionTimeoutError: no free connection in the pool in time"
    log = SavedLog({"name": "GET", "duration": 0.5, "response_cause": text})

    assert "ConnectionTimeoutError, in the pool's queue" in tree(log, ())


def test_refusal_that_was_no_exception():
    """A retry error that is a plain exception is shown; an exit is not."""
    refusals = [{"retry_error": "RetryError: no"}, {"retry_error": "SystemExit: no"}]

    assert ["RetryError('no')", "None"] == [
        repr(SavedLog(values).retry_error) for values in refusals
    ]


@pytest.mark.parametrize("moment", [None, "", "yesterday", "9999-12-31T23:59:59", 5])
def test_moments_that_are_none(moment):
    """They are long ago, or far away; nothing fails."""
    assert isinstance(SavedLog({"request_started_at": moment}).started, float)


def shown(**values):
    """Return what is known of a call without attempts."""
    found = cleaned(values)
    assert [] == found.pop("children")
    return found


NO_NUMBERS = [None, True, "1", -1, float("nan"), float("inf"), [], 10**400]


@pytest.mark.parametrize("value", [None, "", 7, True, [], {}, b"a"])
def test_what_is_no_text_is_left_out(value):
    """So is an empty one."""
    assert {} == shown(name=value, request_content_preview=value)


@given(st.text("aZ09_ .,:*+-\t"))
def test_harmless_texts_stay_as_they_are(text):
    """The mask would hide nothing in them."""
    assert (text or None) == shown(name=text).get("name")
    assert text == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://u:S3CR3T@h/?token=S3CR3T", "http://****@h/?token=****"),
        ("see\udcff", "see\\udcff"),
        ("\u00e9", "\u00e9"),
    ],
)
def test_texts_are_masked_and_can_be_encoded(text, masked):
    """Whoever wrote them."""
    assert {"name": masked} == shown(name=text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("KeyError: 'order-4711'", "KeyError: 'order-4711'"),
        ("TokenError: 4711 is no id", "TokenError: 4711 is no id"),
        ("KeyError: 'http://u:S3CR3T@h/'", "KeyError: 'http://****@h/'"),
        ("TokenError", "TokenError"),
        ("TokenError: ", "TokenError: "),
        ("token: 'S3CR3T'", "token: ****"),
    ],
)
@pytest.mark.parametrize("key", ["response_cause", "retry_error"])
def test_class_of_an_exception_is_no_secret(key, text, masked):
    """Whatever it is named after; what it says may be one."""
    assert {key: masked} == shown(**{key: text})


@pytest.mark.parametrize(
    ("preview", "masked"),
    [
        (
            '{"token": "S3CR3T", "a": 1}',
            DEFAULT_MASK.content('{"token": "S3CR3T", "a": 1}'),
        ),
        ('{"token": ****, "a": 1}', '{"token": ****, "a": 1}'),
        ("****\udcff", "****\\udcff"),
    ],
)
def test_previews_are_masked_once(preview, masked):
    """What was masked may be no JSON any more, and a second look would hide it all."""
    found = shown(response_content_preview=preview)

    assert {"response_content_preview": masked} == found


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1.5, 1 << 63])
def test_what_is_no_whole_number_is_left_out(value):
    """A point alone makes no difference."""
    assert {} == shown(request_length=value)
    assert {"request_length": 3} == shown(request_length=3.0)


@pytest.mark.parametrize("value", [*NO_NUMBERS, 1e9])
def test_what_is_no_time_is_left_out(value):
    """Nothing takes years."""
    assert {} == shown(delay=value)
    assert {"delay": 3.0} == shown(delay=3)


@pytest.mark.parametrize("value", [None, 0, 1, "true", []])
def test_what_is_no_flag_is_left_out(value):
    """Only true and false are."""
    assert {} == shown(sent=value)
    assert {"sent": False} == shown(sent=False)


@pytest.mark.parametrize("value", ["a: b", ["a", "b"]])
def test_what_are_no_headers_is_empty(value):
    """As where there are none."""
    assert {"request_headers": {}} == shown(request_headers=value)


def test_what_can_be_no_header_is_left_out():
    """Names are tokens, values are texts; secrets are hidden."""
    headers = {"A-b": "c", "Cookie": "d", "e f": "g", "": "h", "@i": "j", "k": 1}

    assert {"A-b": "c", "Cookie": "****"} == shown(request_headers=headers).pop(
        "request_headers"
    )


def test_what_is_no_log_is_left_out():
    """In lists of logs, and in place of one."""
    values = cleaned({"children": [{}, None, [], "a", {}], "calls": {"a": {}}})

    assert {"children": [{"attempt": 1}, {"attempt": 2}], "calls": []} == values
