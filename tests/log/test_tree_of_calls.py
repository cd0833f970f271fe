"""Views of calls that were made inside the attempts of a call."""

import json

import aiohttp
import pytest
from calls import drop_calls, end, end_call, function, http, leave, report
from chains import NOW, session

from aioretry_smithy import (
    AttemptTimeoutError,
    LogFormatter,
    LoggingClient,
    LoggingRpcClient,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    capture_logs,
    rpc,
)
from aioretry_smithy._text.mask import Mask

SECRET = "S3CR3T"


async def test_three_levels():
    """Each attempt is followed by the calls that it made, drawn as they are alone."""
    assert (await report()).render() == (
        "fetch_report  ->  returned  in 3.600 s, 2 attempts\n"
        "├─ 1  LookupError: of yesterday   1.500 s   then waited 1.200 s (backoff)\n"
        "│  ├─ GET https://api.example.com/day?token=****"
        "  ->  200 OK  in 0.900 s, 2 attempts\n"
        "│  │  ├─ 1  502 Bad Gateway   0.300 s   then waited 0.300 s (backoff)\n"
        "│  │  └─ 2  200 OK            0.300 s\n"
        "│  └─ Store.load_rows  ->  returned  in 0.600 s, 2 attempts\n"
        "│     ├─ 1  ValueError: no rows   0.100 s   then waited 0.400 s (backoff)\n"
        "│     │  └─ POST https://****@db.example.com/query"
        "  ->  500 Internal Server Error  in 0.100 s\n"
        "│     └─ 2  returned              0.100 s\n"
        "│        └─ POST https://****@db.example.com/query"
        "  ->  200 OK  in 0.100 s\n"
        "└─ 2  returned                    0.900 s\n"
        "   └─ GET https://api.example.com/day?token=****"
        "  ->  200 OK  in 0.900 s, 2 attempts\n"
        "      ├─ 1  502 Bad Gateway   0.300 s   then waited 0.300 s (backoff)\n"
        "      └─ 2  200 OK            0.300 s"
    )


async def test_calls_of_a_call_that_is_not_retried():
    """They stand below the call itself."""
    ctx = function("fetch")
    end(http("http://example.com/1", ctx.log), 200)
    end(http("http://example.com/2", ctx.log), 404)
    end(ctx)

    assert ctx.log.render() == (
        "fetch  ->  returned  in 0.000 s\n"
        "├─ GET http://example.com/1  ->  200 OK  in 0.000 s\n"
        "└─ GET http://example.com/2  ->  404 Not Found  in 0.000 s"
    )


@pytest.mark.parametrize(
    ("number", "said"), [(101, "and 1 more call"), (123, "and 23 more calls")]
)
async def test_rest_of_the_calls_is_counted(number, said):
    """A number at the end counts the calls that were not kept."""
    ctx = function("fetch")
    for _ in range(number):
        http("http://example.com/", ctx.log)
    *_, before, last = ctx.log.render().splitlines()

    assert "├─ GET http://example.com/  ->  no response yet" == before
    assert f"└─ {said}" == last


async def test_call_that_was_never_made_says_so():
    """An open circuit refuses a function as it refuses a request."""
    ctx = function("fetch")
    end(ctx, LookupError("refused"), sent=False)

    assert "fetch  ->  LookupError: refused, not sent" == ctx.log.render()


async def test_time_that_passed_inside_is_told_in_full():
    """Seconds of a call inside do not stand beside the attempt around it."""
    ctx, error = function("fetch"), AttemptTimeoutError("attempt 2 had 1.000 s")
    first, second = ctx.derive(ctx.request), ctx.derive(ctx.request)
    end(first, AttemptTimeoutError("attempt 1 had 3.000 s"))
    call = http("http://example.com/", second.log)
    end(call, error)
    end(second, error)
    _, own, inside, _ = ctx.log.render().splitlines()

    assert own.startswith("├─ 1  AttemptTimeoutError   ")
    assert inside.startswith("└─ 2  AttemptTimeoutError: attempt 2 had 1.000 s   ")


async def test_hostile_names_keep_their_line():
    """The name of a call is escaped and masked as a URL is."""
    ctx = function(f"http://user:{SECRET}@host/\n\x1b")
    end(ctx)

    assert r"http://****@host/\n\x1b  ->  returned  in 0.000 s" == ctx.log.render()


async def test_values_have_the_calls():
    """Calls are in the values of their attempt, and what HTTP alone has is null."""
    log = await report()
    drop_calls(log.children[1], 2)
    values = log.to_dict()
    first, second = values["children"]

    assert values == json.loads(json.dumps(values))
    assert ("fetch_report", None, None, None, None, None) == tuple(
        values[key]
        for key in (
            "name",
            "request_method",
            "request_url",
            "request_headers",
            "response_status",
            "response_headers",
        )
    )
    assert ([], 0) == (values["calls"], values["dropped_calls"])
    assert ["GET", "Store.load_rows"] == [call["name"] for call in first["calls"]]
    assert [502, 200] == [
        attempt["response_status"] for attempt in first["calls"][0]["children"]
    ]
    query = first["calls"][1]["children"][0]["calls"][0]
    assert "https://****@db.example.com/query" == query["request_url"]
    assert (1, 2) == (len(second["calls"]), second["dropped_calls"])


async def test_values_of_http_have_no_calls():
    """A program that reads them today finds what it found."""
    log = (await report()).children[0].calls[0]

    assert {"calls", "dropped_calls"}.isdisjoint(log.to_dict())


async def test_keys_are_attributes():
    """Each key names the attribute that has the value itself."""
    log = function("fetch").log

    assert [] == [key for key in log.to_dict() if not hasattr(log, key)]


async def test_no_view_shows_a_secret_of_a_call_inside(tmp_path):
    """The failure of a call inside shows nothing in the calls around it."""
    url = f"http://user:{SECRET}@example.com/?code={SECRET}"
    mask = Mask(query_parameters=["code"])
    outer, error = function("outer"), aiohttp.InvalidUrlClientError(url)
    for _ in range(2):
        attempt = outer.derive(outer.request)
        middle = function("middle", attempt.log)
        inner = http(url, middle.log, mask=mask)
        for ctx in (inner, middle, attempt):
            end(ctx, error)
    leave(outer, error, is_from_inside=True)
    end_call(outer, attempt)
    log, picture = outer.log, tmp_path / "call.svg"
    log.to_svg(picture)
    views = [log.render(), json.dumps(log.to_dict()), repr(log), *error.__notes__]
    views.append(picture.read_text(encoding="utf-8"))

    assert [] == [view for view in views if SECRET in view]
    assert all("InvalidUrlClientError" in view for view in views)


async def test_functions_hide_what_their_sessions_hide(caplog):
    """A secret of a session's own chain is in no line of the functions."""
    client = session(
        [404, 404, 404, 404],
        LoggingClient.new_decorator(sensitive_query_parameters=["code"]),
    )
    retry = RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[aiohttp.ClientResponseError], backoff=NOW),
        max_total_attempts=2,
    )

    @rpc(LoggingRpcClient.new_decorator())
    async def ask():
        async with client.get("http://example.com/", params={"code": SECRET}) as answer:
            answer.raise_for_status()

    @rpc(LoggingRpcClient.new_decorator(), retry, LoggingRpcClient.new_decorator())
    async def ask_twice():
        await ask()

    caplog.set_level("DEBUG", "aioretry_smithy")
    async with client:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await ask_twice()
    log = RequestLog.of(caught.value)
    views = [log.render(), json.dumps(log.to_dict()), *caught.value.__notes__]
    views += caplog.messages

    assert "ClientResponseError: 404, message='Not Found'" in log.render()
    assert 2 * (2 + 2 + 2) + 2 == len(caplog.messages)
    assert [] == [view for view in views if SECRET in view]


async def test_requests_hide_what_the_functions_around_them_hide(caplog):
    """A header that the client of a function hides is in no line of the call."""

    @rpc(
        LoggingRpcClient.new_decorator(
            formatter=LogFormatter.json(nested=True), sensitive_headers=["X-Shop"]
        )
    )
    async def ask(client):
        await client.get("http://example.com/", headers={"X-Shop": SECRET})

    caplog.set_level("DEBUG", "aioretry_smithy")
    async with session([200]) as client:
        with capture_logs() as logs:
            await ask(client)

    (line,) = caplog.messages
    shown = json.loads(line)["calls"][0]["request_headers"]
    assert {"X-Shop": "****"} == shown
    assert SECRET not in logs[0].render()
