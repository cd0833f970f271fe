"""A log as an HTTP Archive."""

import importlib.metadata
import io
import json
from contextlib import closing

import aiohttp
import pytest
from calls import (
    attempted,
    begin,
    begin_body,
    end,
    end_body,
    end_call,
    http,
    note_delay,
    preview,
    report,
    upload,
)
from foreign_views import LINES, START, check
from hypothesis import given

from aioretry_smithy import HttpRequest, RetryStopReason
from aioretry_smithy._log import exports
from aioretry_smithy._log.exports import HarArchive
from aioretry_smithy._log.saved_log import SavedLog, cleaned

SECRET = "S3CR3T"


def to_har(values):
    """Return the archive of a line."""
    return exports.to_har(SavedLog(cleaned(values)))


def line(**values):
    """Make the least that a line may have, and these values."""
    request = {"request_method": "GET", "request_url": "http://example.com/"}
    return {**request, "request_started_at": START, **values}


def entry(**values):
    """Return the one entry of a line."""
    (only,) = check(to_har(line(**values)))["entries"]
    return only


def free(values):
    """Return the fields that HAR does not know."""
    return {name: value for name, value in values.items() if name.startswith("_")}


async def three_attempts():
    ctx = begin(HttpRequest("GET", "http://example.com/a?b=1&c=%20&d"), timeout=9.0)
    await attempted(ctx, 0.5, 503, delay=1.5)
    await attempted(ctx, 1.0, aiohttp.ServerDisconnectedError(), delay=0.25)
    last = ctx.derive(ctx.request)
    begin_body(last, 404, headers={"Content-Type": "text/plain"})
    end_body(last, 12)
    end_call(ctx, last, RetryStopReason.NO_RETRY)
    return ctx.log


async def test_call_is_a_page_and_attempts_are_its_entries():
    """They are in order, and each knows its page."""
    whole = await three_attempts()
    log = check(whole.to_har())
    (page,) = log["pages"]

    assert "page_1" == page["id"]
    assert page["title"].startswith("GET http://example.com/a?b=1&c=%20&d")
    assert {"onContentLoad": 3250.0, "onLoad": 3250.0} == page["pageTimings"]
    assert [503, 0, 404] == [each["response"]["status"] for each in log["entries"]]
    assert ["page_1"] * 3 == [each["pageref"] for each in log["entries"]]
    assert [500.0, 1000.0, 0.0] == [each["time"] for each in log["entries"]]
    assert [each.request_started_at.isoformat() for each in whole.children] == [
        each["startedDateTime"] for each in log["entries"]
    ]


async def test_fields_of_our_own_are_named_as_in_the_log():
    """They say what HAR has no place for, in seconds; what is unknown is left out."""
    log = check((await three_attempts()).to_har())
    first, second, last = log["entries"]

    assert (1, 1.5, "backoff") == (
        first["_attempt"],
        first["_delay"],
        first["_delay_source"],
    )
    assert "_error" not in first
    assert "_stop_reason" not in first
    assert "ServerDisconnectedError: Server disconnected" == second["_error"]
    assert second["_error"] == second["response"]["_error"]
    assert "_delay" not in last
    assert "no_retry" == last["_stop_reason"] == log["pages"][0]["_stop_reason"]
    assert 3 == log["pages"][0]["_total_attempts"]


async def test_request_and_response():
    """HAR has names and values in lists, and the parameters of the URL decoded."""
    log = check((await three_attempts()).to_har())
    last = log["entries"][-1]

    assert [("b", "1"), ("c", " "), ("d", "")] == [
        (each["name"], each["value"]) for each in last["request"]["queryString"]
    ]
    assert "GET" == last["request"]["method"]
    assert [{"name": "Content-Type", "value": "text/plain"}] == (
        last["response"]["headers"]
    )
    assert {"size": 12, "mimeType": "text/plain"} == last["response"]["content"]
    assert "Not Found" == last["response"]["statusText"]


async def test_bodies_that_are_previewed():
    """Both are there as far as they are known, and say that they are not whole."""
    ctx = http("http://example.com/", method="POST")
    upload(ctx, 20, 0.0)
    begin_body(ctx)
    preview(ctx, '{"token": "S3CR3T"}', b'{"password": "S3CR3T", "a": 1}')
    (only,) = check(ctx.log.to_har())["entries"]

    values = ctx.log.to_dict()
    sent, received = only["request"]["postData"], only["response"]["content"]

    assert values["request_content_preview"] == sent["text"]
    assert values["response_content_preview"] == received["text"]
    assert "beginning" in only["response"]["content"]["comment"]
    assert 20 == only["request"]["bodySize"]
    assert SECRET not in json.dumps(only)


async def test_secrets_are_masked():
    """Wherever they may stand."""
    ctx = http(
        f"http://user:{SECRET}@example.com/?token={SECRET}",
        default_headers={"Authorization": SECRET, "Cookie": f"a={SECRET}"},
    )
    end(ctx, 302, headers={"Location": f"/?key={SECRET}", "Set-Cookie": SECRET})
    (only,) = check(ctx.log.to_har())["entries"]

    assert SECRET not in json.dumps(only)
    assert [{"name": "token", "value": "****"}] == only["request"]["queryString"]
    assert "/?key=****" == only["response"]["redirectURL"]


def test_secrets_of_foreign_lines_are_masked():
    """Who knows who wrote them."""
    url = f"http://user:{SECRET}@example.com/?a=b"
    shown = entry(
        request_url=url,
        request_headers={"authorization": SECRET},
        response_cause=f"ValueError: {url}",
        retry_error=url,
        name=url,
    )

    assert SECRET not in json.dumps(shown)


async def test_each_http_call_of_a_function_is_a_page():
    """However deep they are; functions themselves are none."""
    log = check((await report()).to_har())

    assert [
        "GET http://api.example.com/day?token=****",
        "POST http://****@db.example.com/query",
        "POST http://****@db.example.com/query",
        "GET http://api.example.com/day?token=****",
    ] == [page["title"].partition(" (")[0].replace("s:", ":") for page in log["pages"]]
    assert [502, 200, 500, 200, 502, 200] == [
        each["response"]["status"] for each in log["entries"]
    ]
    assert [1, 1, 2, 3, 4, 4] == [
        int(each["pageref"].removeprefix("page_")) for each in log["entries"]
    ]


@pytest.mark.parametrize(
    ("values", "timings"),
    [
        ({}, [-1, -1, -1, 0, 0, 0]),
        ({"duration": 0.5}, [-1, -1, -1, 0, 500, 0]),
        ({"duration": 0.5, "total_duration": 0.75}, [-1, -1, -1, 0, 500, 250]),
        ({"duration": 0.5, "request_duration": 0.2}, [-1, -1, -1, 200, 300, 0]),
        ({"duration": 0.5, "request_duration": 0.9}, [-1, -1, -1, 500, 0, 0]),
        ({"duration": 0.5, "sent": False}, [500, -1, -1, 0, 0, 0]),
        ({"duration": 0.5, "total_duration": 0.4}, [-1, -1, -1, 0, 500, 0]),
        ({"total_duration": 0.4}, [-1, -1, -1, 0, 0, 400]),
        ({"duration": -1.0}, [-1, -1, -1, 0, 0, 0]),
        ({"duration": 1e300}, [-1, -1, -1, 0, 0, 0]),
        ({"duration": "0.5"}, [-1, -1, -1, 0, 0, 0]),
        ({"duration": 0.0000014}, [-1, -1, -1, 0, 0.001, 0]),
    ],
)
def test_timings(values, timings):
    """What is not known is -1 where HAR allows it, and 0 elsewhere."""
    assert timings == [*entry(**values)["timings"].values()]


@pytest.mark.parametrize(
    ("connection", "values", "timings"),
    [
        ({"queued": 0.1, "dns": 0.02, "connect": 0.03}, {}, [100, 20, 30, 0, 350, 0]),
        ({"queued": None, "reused": True}, {}, [-1, -1, -1, 0, 500, 0]),
        ({"queued": 0.4, "connect": 0.2}, {}, [400, -1, 100, 0, 0, 0]),
        ({"queued": 0.1}, {"request_duration": 0.3}, [100, -1, -1, 200, 200, 0]),
        ({"dns": 0.1}, {"sent": False}, [400, 100, -1, 0, 0, 0]),
        ({"queued": 0.1}, {"sent": False}, [500, -1, -1, 0, 0, 0]),
        ({"queued": "x", "dns": -1}, {}, [-1, -1, -1, 0, 500, 0]),
        ("none", {}, [-1, -1, -1, 0, 500, 0]),
    ],
)
def test_timings_of_the_connection(connection, values, timings):
    """A wait for the client's own pool does not look like a silent server."""
    shown = entry(duration=0.5, connection=connection, **values)

    assert timings == [*shown["timings"].values()]


def test_reused_connection():
    """HAR has no field for it."""
    assert entry(connection={"reused": True})["_connection_reused"] is True


@pytest.mark.parametrize("status", ["200", True, -1, 1000, 1.5, None, float("nan"), []])
def test_status_that_is_none(status):
    """It is 0, as that of a request without an answer is."""
    assert 0 == entry(response_status=status)["response"]["status"]


def test_whole_status_may_be_written_with_a_point():
    """Some programs that rewrite lines do so."""
    assert 200 == entry(response_status=200.0)["response"]["status"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-11-26T12:00:00", "2026-11-26T12:00:00+00:00"),
        ("2026-11-26T12:00:00+02:00", "2026-11-26T10:00:00+00:00"),
        ("2026-11-26 12:00Z", "2026-11-26T12:00:00+00:00"),
    ],
)
def test_start_is_in_utc(written, shown):
    """A time without a zone is taken for one in UTC."""
    assert shown == entry(request_started_at=written)["startedDateTime"]


@pytest.mark.parametrize(
    "written", ["noon", "0001-01-01T00:00+01:00", 7, None, "\ud800"]
)
def test_call_that_began_nobody_knows_when_is_left_out(written):
    """HAR asks for a date, and readers refuse a file without one."""
    assert [] == to_har(line(request_started_at=written))["log"]["entries"]


def test_one_known_start_is_enough():
    """An attempt without one gets that of its call, and the other way round."""
    children = [line(request_started_at="?"), line()]
    log = check(to_har(line(request_started_at="?", children=children)))

    assert {START} == {
        each["startedDateTime"] for each in log["entries"] + log["pages"]
    }


def test_attempt_may_leave_out_what_its_call_has():
    """As a line without empty values may."""
    log = check(to_har(line(request_method="PUT", children=[{"attempt": 1}])))
    (only,) = log["entries"]

    assert ("PUT", "http://example.com/") == (
        only["request"]["method"],
        only["request"]["url"],
    )


def test_what_was_sent_goes_before_what_was_asked_for():
    """The page is the caller's, the entry what reached the transport."""
    log = check(to_har(line(sent_method="PUT", sent_url="http://example.com/b")))

    assert "GET http://example.com/" == log["pages"][0]["title"]
    assert ("PUT", "http://example.com/b") == (
        log["entries"][0]["request"]["method"],
        log["entries"][0]["request"]["url"],
    )


def test_url_is_one_word_without_its_fragment():
    """As HAR wants it, also where the caller's is no URL."""
    request = entry(request_url="http://exa mple.com/?a=b#c?d=e")["request"]

    assert "http://exa%20mple.com/?a=b" == request["url"]
    assert [{"name": "a", "value": "b"}] == request["queryString"]


def test_id_is_on_pages_and_entries():
    """It leads back to the line; the page's own id only counts."""
    child = line(id="k3j9x0qa-17.1")
    log = check(to_har(line(id="k3j9x0qa-17", children=[child])))

    assert "GET http://example.com/ (k3j9x0qa-17)" == log["pages"][0]["title"]
    assert ["k3j9x0qa-17", "k3j9x0qa-17.1"] == [
        log["pages"][0]["_id"],
        log["entries"][0]["_id"],
    ]


def test_copy_that_was_not_installed(monkeypatch):
    """A folder with the package has no version."""

    def fail(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("aioretry_smithy._log.exports.version", fail)

    assert "unknown" == check(to_har(line()))["creator"]["version"]


def written(*calls):
    """Return what the writer makes of calls, and how many it skipped."""
    file = io.StringIO()
    with closing(HarArchive()) as archive:
        for call in calls:
            archive.add(SavedLog(cleaned(call)))
        archive.write(file)
    assert file.getvalue().isascii()
    return check(file.getvalue()), archive.skipped


async def test_writer_writes_what_the_method_returns():
    """Call by call, with pages that count on."""
    values = (await three_attempts()).to_dict()
    log, skipped = written(values, values)
    alone = to_har(values)["log"]

    assert 0 == skipped
    assert ["page_1", "page_2"] == [page["id"] for page in log["pages"]]
    assert alone["entries"] == log["entries"][:3]
    assert alone["creator"] == log["creator"]


def test_writer_counts_what_it_leaves_out():
    """The others are written all the same."""
    log, skipped = written(line(), line(request_started_at=None), line())

    assert (2, 1) == (len(log["entries"]), skipped)


def test_many_pages_go_to_a_temporary_file():
    """So that memory does not grow with the calls."""
    long = "x" * 3000
    log, _ = written(*[line(request_url=f"http://example.com/{long}")] * 400)

    assert 400 == len(log["pages"]) == len(log["entries"])


@pytest.mark.slow
@given(LINES)
def test_any_values_make_a_valid_archive(values):
    """Whatever stands in the fields of a line."""
    written(values, {**values, "request_started_at": START})


async def test_waits_before_the_first_attempt_are_those_of_the_page():
    """A limit outside of the retries delays the call, no attempt."""
    ctx = http("http://example.com/")
    note_delay(ctx, 0.75, "rate_limit")
    await attempted(ctx, 0.5)
    log = check(ctx.log.to_har())

    assert (0.75, "rate_limit") == (
        free(log["pages"][0])["_delay"],
        free(log["pages"][0])["_delay_source"],
    )
    assert "_delay" not in log["entries"][0]


def test_calls_inside_functions_are_in_order():
    """Those of the call before those of its attempts, at any depth."""
    leaf = [line(request_url=f"/{number}") for number in range(5)]
    tree = {
        "calls": [leaf[0], {"calls": [leaf[1]]}],
        "children": [{"calls": [leaf[2], leaf[3]]}, {"calls": [leaf[4]]}],
    }

    assert ["/0", "/1", "/2", "/3", "/4"] == [
        each["request"]["url"] for each in to_har(tree)["log"]["entries"]
    ]
