"""The report of logs, its text, and the words in it."""

import asyncio
import json
from pathlib import Path

import pytest
from chains import bad_argument, chain, log_of, retrying, session, silence
from made_lines import call, failed, function, sent

from aioretry_smithy import Report, capture_logs, rpc
from aioretry_smithy._report.answers import Answers, TimePart, part, shares_in_words
from aioretry_smithy._report.document import blocks, plain_text, shown
from aioretry_smithy._report.report import Reading
from aioretry_smithy._report.selection import Selection

AGAIN = {"delay": 1.0, "delay_source": "retry_after"}


async def some_logs():
    with capture_logs() as logs:
        async with chain([503, 200, 404], retrying(0.5)).build() as client:
            for _ in range(2):
                (await client.get("http://localhost/orders/17")).close()
    return logs


def text_of(*lines, **chosen):
    reading = Reading("path", 10, Selection(**chosen))
    reading.add_lines([json.dumps(line).encode() for line in lines])
    return plain_text(blocks(reading.answers()))


async def test_report_of_logs():
    """It counts what was captured, and says it in text and in JSON."""
    report = Report.of(await some_logs())
    values = json.loads(json.dumps(report.to_dict()))

    assert (2, 1, 0) == tuple(
        values["summary"][key]
        for key in ("calls", "successes", "successes_without_retries")
    )
    assert 0 == values["input"]["without_id"]
    assert report.render().startswith("Report on 2 calls: ")
    assert "<Report of 2 calls>" == repr(report)


async def test_report_by_another_key():
    """Groups have what was asked for in common."""
    report = Report.of(await some_logs(), by="method", top=1)

    assert ["GET"] == [group["key"] for group in report.to_dict()["groups"]]
    assert 1 == len(report.to_dict()["examples"]["slowest"])


async def test_calls_under_way_and_inside_count_once():
    """Those inside are in the log of the function, and one has no outcome yet."""
    with capture_logs() as logs:
        async with session([200, silence]) as client:

            @rpc()
            async def fetch():
                (await client.get("http://localhost/")).close()

            await fetch()
            waiting = asyncio.ensure_future(client.get("http://localhost/"))
            await asyncio.sleep(0)
            read = Report.of(logs).to_dict()["input"]
            waiting.cancel()

    assert (2, 1, 0, {"under_way": 1}) == (
        read["lines"],
        read["calls"],
        read["inside"],
        read["skipped"],
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("by", "colour", "one of host, method, path, endpoint, name"),
        ("top", -1, "an int >= 0"),
        ("top", True, "an int >= 0"),
    ],
)
def test_arguments_are_checked(name, value, expected):
    """The error says what would be right."""
    with bad_argument(name, value, expected):
        Report.of([], **{name: value})


@pytest.mark.parametrize("log", [None, "GET", {"name": "GET"}])
def test_logs_are_checked(log):
    """Lines are for the command."""
    with bad_argument("logs", log, "RequestLog objects"):
        Report.of([log])


async def test_one_log_is_no_list_of_logs():
    """It is told by the name of the argument, as what is in a list is."""
    logs = await some_logs()
    for given in (logs[0], None):
        with bad_argument("logs", given, "a list of RequestLog objects"):
            Report.of(given)


@pytest.mark.parametrize("file", ["calls.jsonl", b"calls.jsonl", Path("calls.jsonl")])
def test_names_of_files_are_for_the_command(file):
    """A name is no list of logs, though text can be iterated over."""
    expected = "a list of RequestLog objects; aioretry-smithy report FILE reads files"
    with pytest.raises(ValueError) as caught:
        Report.of(file)

    assert str(caught.value).endswith(f"(expected: {expected})")


async def test_keys_of_the_document_are_published():
    """The page on the report names each of them."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "report.rst"
    named = page.read_text(encoding="utf-8").partition(".. _report-keys:")[2]
    values = Report.of(await some_logs()).to_dict()
    nested = [values, *(each for each in values.values() if isinstance(each, dict))]
    nested += [values[key][0] for key in ("groups", "endings", "failures")]
    nested += [values["timeline"]["moments"][0], values["time"]["parts"][0]]

    missing = {key for each in nested for key in each if f"``{key}``" not in named}
    assert set() == missing


def test_answers_are_in_the_order_of_the_questions():
    """In the document too, whose views show hints first."""
    assert [
        *("v", "input", "summary", "groups", "time", "endings", "failures"),
        *("timeline", "examples", "hints"),
    ] == [*Answers.__dataclass_fields__]


def test_first_screen_names_the_cause():
    """Calls to orders are slow at times: they wait because the server asks for it."""
    slow = call(sent(0, 0.05, 429, **AGAIN), sent(1.05, 0.1), took=1.15)
    users = call(request_url="https://shop.example.com/users/1")
    text = text_of(*[call()] * 90, *[slow] * 10, *[users] * 50)
    screen = "\n".join(text.splitlines()[:24])

    assert "/orders/*: the slowest 5 % spent 86.96 % waiting for Retry-After" in screen
    assert "the slowest 5 % (10 calls, from 1.15 s on) spent 86.96 % waiting" in screen
    assert "/users/*: the slowest 5 % spent 100 % on answers" in screen


def test_text_has_all_answers():
    """Each question has its heading."""
    lost = call(
        sent(0, 0.1, 503, delay=1.0, delay_source="backoff"), sent(1.1, 0.1, 503),
        took=1.2, status=503, stop_reason="max_total_attempts",
    )  # fmt: skip
    user = call(request_url="https://shop.example.com/users/1")
    text = text_of(*[call()] * 20, *[lost] * 20, *[call(at=120)] * 5, user, "nonsense")
    headings = [line.partition(":")[0] for line in text.splitlines()]

    for heading in (
        *(
            "Report on 46 calls",
            "How it went",
            "By path",
            "Where the time went",
            "Calls without success",
        ),
        *("What failed", "When", "The slowest calls", "Calls with most attempts"),
        "Hints",
    ):
        assert heading in headings
    assert "skipped: 1 line, no JSON" in text
    assert "stopped: max_total_attempts 20" in text
    assert "├─ 1  503" in text


def test_text_draws_each_call_once():
    """Of the slowest, those that stand above are counted."""
    lost = call(sent(0, 0.1, 503, **AGAIN), sent(1.1, 0.1, 503), took=1.2, status=503)
    text = text_of(lost, call())

    assert 1 == text.count("├─ 1  503")
    assert "The slowest calls: 1 of them above" in text
    assert "Calls with most attempts: 1 of them above" in text


def test_text_names_the_budget():
    """To most people a limiter is one."""
    text = text_of(call(sent(0, 0.1, 503), status=503, stop_reason="limiter"))

    assert "\nretry budget    503          1" in text


def test_text_of_calls_that_are_well():
    """What there is nothing to say about is short."""
    text = text_of(call())

    assert "Calls without success: none" in text
    assert "What failed: nothing" in text
    assert "Hints" not in text
    assert "retries saved" not in text


def test_retries_are_not_praised_for_what_a_fallback_did():
    """The call was retried in vain, and is a success all the same."""
    saved = call(sent(0, 0.1, 503, **AGAIN), sent(1.1, 0.1, 200), took=1.2)
    replaced = call(sent(0, 0.1, 503, **AGAIN), sent(1.1, 0.1, 503), took=1.2)
    text = text_of(saved, replaced)

    assert "retries saved 50.00 % of the calls" in text


def test_text_of_nothing():
    """A report may have no calls at all."""
    text = Report.of([]).render()

    assert text.startswith("Report on 0 calls\n")
    assert "When" not in text


def test_text_says_what_was_left_out():
    """And what a reader of the numbers must know."""
    inside = call()
    lines = [
        call(sampling_rate=0.5),
        call(sampled=True),
        call(is_complete=False),
        {key: value for key, value in call().items() if key != "id"},
        function(inside),
    ]
    reading = Reading("path", 0, Selection(matches=(("success", "yes"),)))
    data = [json.dumps(line).encode() for line in [*lines, inside, call(status=503)]]
    reading.note_lines_inside(data)
    reading.add_lines(data)
    text = plain_text(blocks(reading.answers()))

    for said in (
        "filtered out: 1 call",
        "left out: 1 line of nested calls",
        "sampled: 1 line, for more calls than one each",
        "unknown: the end of the body, of 1 call",
        "without id: 1 call of older versions",
        "warning: 1 calls were chosen by a function",
    ):
        assert said in text


def test_text_of_many_groups_and_steps():
    """The others are named by their number, long steps said."""
    lines = [call(request_url=f"https://h/x{n}y", at=9000 * n) for n in range(70)]
    text = text_of(*lines)

    assert "\n10 others" in text
    assert "When: by the 3 hours" in text


def test_text_says_when_most_calls_failed():
    """And how many steps a character of its picture stands for."""
    lines = [call(at=30 * n) for n in range(90)]
    failures = [call(at=1200 + n, status=503) for n in range(3)]

    text = text_of(*lines, *failures)
    assert "When: by the 30 seconds, 2 to a character\n" in text
    assert "most failures: 3 of 4 calls from " in text
    text = text_of(*lines[:2])
    assert "to a character" not in text
    assert "most failures" not in text


def test_hostile_texts_are_escaped():
    """No line of a log moves the cursor, or looks like another line."""
    evil = "\x1b[2J\n\u202eevil\ud800"
    line = call(
        sent(0, 0.1, **failed(evil)),
        request_url=f"http://{evil}/{evil}",
        stop_reason=evil,
        endpoint=evil,
        name=evil,
        **failed(evil),
    )
    text = text_of(line, {**line, "request_url": None, "request_method": None})

    assert all(each.isprintable() or each == "\n" for each in text)
    assert "\\x1b[2J\\n\\u202eevil\\ud800" in text
    assert "\nevil" not in text


def test_long_texts_are_cut():
    """A table stays one."""
    assert 60 == len(shown("x" * 1000))
    assert 60 >= len(shown("\n" * 1000))


async def test_a_report_never_shows_what_logs_hide():
    """Credentials are hidden in all views."""
    log = await log_of(session([200]), "http://u:S3CR3T@localhost/?token=S3CR3T")
    report = Report.of([log])

    assert "S3CR3T" not in report.render() + json.dumps(report.to_dict())


def part_of(kind, source=None, slowest_share=0.5):
    return TimePart(kind, source, 1.0, 0.5, 1.0, slowest_share)


def test_parts_of_the_time():
    """Each kind has a name, each wait its reason."""
    assert "answers" == part(part_of("answer"))
    assert "waiting for Retry-After" == part(part_of("wait", "retry_after"))
    assert "waiting (other)" == part(part_of("wait", "other"))


def test_what_slow_calls_spent():
    """The largest parts; what is next to nothing is left out."""
    parts = [part_of("answer", None, 0.99), part_of("dns", None, 0.01)]

    assert "99.00 % on answers" == shares_in_words(parts)
    assert "no time" == shares_in_words([])
