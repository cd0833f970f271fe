"""The tree of a call: its first line, its rows, and what was never sent."""

import json

import aiohttp
import pytest
from calls import attempted, begin, begin_body, end, end_body, end_call
from chains import after, log_of, refused, retrying, retrying_session, session, silence
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    HttpRequest,
    LogFormatter,
    RefreshingClient,
    ResponseTimeoutError,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
    new_response,
)
from aioretry_smithy._log.saved_log import SavedLog, cleaned
from aioretry_smithy._log.tree import Node, branches, describe_outcome
from aioretry_smithy._text.mask import DEFAULT_MASK
from aioretry_smithy._text.printable import printable

SECRET = "S3CR3T"


class Delays(Backoff):
    """The delays of a list, one after the other."""

    def __init__(self, *delays):
        self.delays = delays

    def next_delay(self, num_attempts_so_far):
        return self.delays[num_attempts_so_far - 1]


def call(url="http://example.com/", mask=DEFAULT_MASK, method="GET", **options):
    return begin(HttpRequest(method, url, **options), mask=mask)


async def test_sample_call():
    """The figures of the design give the tree of the design, to the letter."""
    strategy = RetryStrategy.failsafe(Delays(0.204, 0.391))
    answers = after(0.003, 503), after(9.0, 200), after(0.004, 200)
    chain = retrying_session(answers, strategy, timeout=10.0, attempt_timeout=3.0)
    log = await log_of(chain, "https://api.example.com/orders")

    assert log.render() == (
        "GET https://api.example.com/orders  ->  200 OK  in 3.602 s, 3 attempts\n"
        "├─ 1  503 Service Unavailable   0.003 s   then waited 0.204 s (backoff)\n"
        "├─ 2  AttemptTimeoutError       3.000 s   then waited 0.391 s (backoff)\n"
        "└─ 3  200 OK                    0.004 s"
    )


async def test_columns_are_aligned():
    """Numbers of attempts and seconds stand right, whatever their length."""
    ctx = call()
    for number in range(10):
        await attempted(ctx, 100.0 if number == 4 else 0.5)

    lines = ctx.log.render().splitlines()
    assert 11 == len(lines)
    assert "├─  1  200 OK     0.500 s" == lines[1]
    assert "├─  5  200 OK   100.000 s" == lines[5]
    assert "└─ 10  200 OK     0.500 s" == lines[10]


async def test_columns_are_aligned_by_what_a_terminal_shows():
    """A reason in wide characters does not push the seconds out of their column."""
    ctx = call()
    for reason in "好的", "OK":
        response = new_response(ctx.request)
        response.reason = reason
        end(ctx.derive(ctx.request), response)

    assert [
        "├─ 1  200 好的   0.000 s",
        "└─ 2  200 OK     0.000 s",
    ] == ctx.log.render().splitlines()[1:]


@pytest.mark.parametrize("status", [0, 99, 600, 999])
async def test_odd_statuses(status):
    """A status without a reason is shown alone."""
    ctx = call()
    end(ctx, status)

    assert str(status) == describe_outcome(ctx.log)


async def test_limit_that_a_body_ran_into_is_named_beside_the_status():
    """Its class says nothing that its words do not say."""
    ctx = call()
    begin_body(ctx)
    end_body(ctx, 3, ResponseTimeoutError("the call had 5.000 s"))

    assert "200 OK, the call had 5.000 s" == describe_outcome(ctx.log)


async def test_long_messages_are_cut():
    """A tree stays a tree when an error tells a story; the values keep all of it."""
    ctx = call()
    end(ctx, ValueError("x" * 100))

    assert f"ValueError: {'x' * 59}…" == describe_outcome(ctx.log)
    assert 72 == len(describe_outcome(ctx.log))
    assert f"ValueError: {'x' * 100}" == ctx.log.to_dict()["response_cause"]


async def test_secret_is_masked_before_it_is_cut():
    """Cutting a message does not uncover half a secret."""
    ctx = call()
    end(ctx, ValueError(f"{'x' * 40} http://user:{SECRET * 9}@h/"))

    assert SECRET not in describe_outcome(ctx.log)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 好", "plain ü 好"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x1b[2J\x07\x00\x7f", r"\x1b[2J\x07\x00\x7f"),
        ("\u2028\u202e\u200b", r"\u2028\u202e\u200b"),
        ("\udc80", r"\udc80"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    """Nothing that comes from a server moves a cursor or begins a line."""
    assert shown == printable(text)


async def test_hostile_texts_keep_their_line():
    """Method, URL, reason and message are all escaped."""
    ctx = call(b"http://h/\x1b\n", method="GE\nT")
    response = new_response(ctx.request)
    response.reason = "O\rK\x1b[0m"
    attempt = ctx.derive(ctx.request)
    end(attempt, response)
    end(ctx.derive(ctx.request), ValueError("a\nb\x1b"))
    end(ctx, ValueError("a\nb"))
    drawn = ctx.log.render()

    assert 3 == len(drawn.splitlines())
    assert all(line.isprintable() for line in drawn.splitlines())


async def test_values_are_json():
    """The values survive JSON unchanged, the attempts nested in them."""
    ctx = call(params={"page": "2"}, headers={"A": "1"})
    first = ctx.derive(ctx.request)
    end(first, TimeoutError("late"), delay=0.5)
    second = ctx.derive(ctx.request)
    end(second, 503, headers={"Retry-After": "1"}, body=b"busy")
    end_call(ctx, second, RetryStopReason.NO_RETRY)
    values = ctx.log.to_dict()
    failed, answered = values["children"]

    assert values == json.loads(json.dumps(values))
    assert (ctx.log.id, False) == (values["id"], values["is_success"])
    assert "http://example.com/?page=2" == values["request_url"]
    assert "TimeoutError: late" == failed["response_cause"]
    assert "TimeoutError" == failed["response_cause_type"]
    assert (1, 0.5, "backoff") == (
        failed["attempt"],
        failed["delay"],
        failed["delay_source"],
    )
    assert (2, 503) == (answered["attempt"], answered["response_status"])
    assert type(values["stop_reason"]) is str


def test_branches_of_any_depth():
    """Each part hangs on the one around it, and further lines hang below the first."""
    leaf = Node(["leaf", "below"], [])
    node = Node(["node", "below"], [leaf, leaf])
    tree = Node(["root", "below"], [node, leaf, node])

    assert [
        "root",
        "│  below",
        "├─ node",
        "│  │  below",
        "│  ├─ leaf",
        "│  │     below",
        "│  └─ leaf",
        "│        below",
        "├─ leaf",
        "│     below",
        "└─ node",
        "   │  below",
        "   ├─ leaf",
        "   │     below",
        "   └─ leaf",
        "         below",
    ] == [f"{branch}{line}" for branch, line in branches(tree)]


async def test_headline_says_nothing_twice():
    """No time beside a time, and none at all for a call that took none."""
    breaker = CircuitBreaker("orders", circuit_open_window=2.0)
    breaker.enter_state(CircuitState.OPEN)
    log = await log_of(session([], CircuitBreakerClient.new_decorator(breaker)))

    assert isinstance(log.response_cause, FailFastError)
    assert log.render().endswith("next trial in 2.000 s, not sent")


async def test_status_and_exception_do_not_repeat_each_other():
    """The message of raise_for_status is left out: it is the status."""
    log = await log_of(session([404]), "http://h/", raise_for_status=True)

    assert "GET http://h/  ->  404 Not Found, ClientResponseError  in 0.000 s" == (
        log.render()
    )


async def test_message_of_ones_own_stands_beside_the_status():
    """The words that a raise_for_status adds to the status are kept."""

    async def refuse(response):
        raise aiohttp.ClientResponseError(
            response.request_info, (), status=404, message="no such order"
        )

    log = await log_of(session([404]), raise_for_status=refuse)

    assert "404 Not Found, ClientResponseError: no such order" in log.render()


async def test_reason_of_a_connection_error_is_not_cut():
    """The middle goes, which the beginning of the line says again."""
    log = await log_of(session([refused()]), "https://orders.example.com/")
    _, _, said = log.render().partition("  ->  ")

    assert said.startswith("ClientConnectorError: Cannot…")
    assert said.endswith("Connect call failed ('192.0.2.1', 443)], not sent")


def raised_by(url):
    """Make the exception that a plain session raises for an answer of 500."""
    info = aiohttp.RequestInfo(URL(url), "POST", CIMultiDictProxy(CIMultiDict()))
    return aiohttp.ClientResponseError(
        info, (), status=500, message="Internal Server Error"
    )


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            raised_by("https://login.test/oauth2/token"),
            "ClientResponseError: 500, …url='https://login.test/oauth2/token'",
        ),
        (
            raised_by("https://me:pass@login.test/token?to=https://a.test:8443/"),
            "ClientResponseError: 500, …url='https://****@login.test/token?to=https:…",
        ),
        (
            raised_by("https://orders.test/oauth2/token"),
            "ClientResponseError: 500, …url='https://orders.test/oauth2/token'",
        ),
        (
            raised_by("https://a.orders.test:8443/oauth2/token"),
            "ClientResponseError: 500, message='Internal Server Error', url='https:/…",
        ),
        (
            refused(),
            "ClientConnectorError: …orders.example.com:443 [Connect call failed ('19…",
        ),
    ],
    ids=["of tokens", "with a user", "part of a name", "the one asked", "refused"],
)
@pytest.mark.parametrize("is_resent", [False, True], ids=["one attempt", "two"])
async def test_another_server_is_named(failure, said, is_resent):
    """Such as that of tokens, which may have failed in place of the one asked."""

    async def fetch():
        raise failure

    refreshing = RefreshingClient.new_decorator(fetch, hosts=["a.orders.test:8443"])
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    retries = [retrying(strategy, max_total_attempts=2)] * is_resent
    chain = session([], refreshing, *retries)
    log = await log_of(chain, "https://a.orders.test:8443/orders")
    saved = SavedLog(cleaned(log.to_dict()))

    assert log.render() == saved.render()
    assert log.render().count(f"  {said}, not sent") == 1 + 2 * is_resent


async def test_server_is_named_beside_the_status():
    """A token that was refused, and no other one could be fetched."""
    tokens = ["old"]

    async def fetch():
        if not tokens:
            raise raised_by("https://login.test/oauth2/token")
        return tokens.pop()

    refreshing = RefreshingClient.new_decorator(fetch, hosts=["orders.test"])
    log = await log_of(session([401], refreshing), "https://orders.test/orders")

    assert "…url='https://login.test/oauth2/token'" in log.render()


async def test_time_after_a_time():
    """A failure that ends with seconds is set off from those of the call."""
    decorator = retrying(attempt_timeout=1.0, max_total_attempts=2)
    log = await log_of(session([silence] * 2, decorator))

    assert "attempt 2 had 1.000 s  after 2.500 s, 2 attempts" in log.render()


RETRYING = RetryingClient.new_decorator(
    RetryStrategy.on_unprocessed(Backoff.fixed(0.5)), max_total_attempts=2
)


@client_decorator
async def cached(delegate, ctx, request):
    return new_response(request, body=b"cached")


def open_breaker(**settings):
    breaker = CircuitBreaker("orders")
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return CircuitBreakerClient.new_decorator(breaker, **settings)


def fallback(ctx, request):
    return new_response(request, body=b"fallback")


@pytest.mark.parametrize(
    ("decorators", "answers"),
    [
        pytest.param([cached], [], id="cached"),
        pytest.param([open_breaker(fallback=fallback)], [], id="fallback"),
        pytest.param([open_breaker()], [], id="open circuit"),
        pytest.param([open_breaker(), RETRYING], [], id="open circuit, retried"),
        pytest.param([], [refused()], id="refused"),
        pytest.param([RETRYING], [refused(), refused()], id="refused twice"),
        pytest.param([], [UnprocessedRequestError("full")], id="turned away"),
    ],
)
async def test_what_was_never_sent(decorators, answers):
    """The log and each of its views say that no server has seen the call."""
    log = await log_of(session(answers, *decorators))
    headline, *rows = log.render().splitlines()

    assert not log.sent
    assert log.to_dict()["sent"] is False
    assert ", not sent" in headline
    assert "1 attempt" not in headline
    assert all(", not sent" in row for row in rows)
    assert ", sent=no" in LogFormatter.text().format_response(log)


async def test_call_was_sent_if_any_attempt_was():
    """One attempt is enough, whatever became of the others."""
    log = await log_of(session([refused(), 200], RETRYING))

    assert [True, False, True] == [each.sent for each in (log, *log.children)]
    assert ", 2 attempts" in log.render().splitlines()[0]


async def test_call_under_way_does_not_say_that_it_was_not_sent():
    """Nobody knows yet."""
    lines = []

    @client_decorator
    async def look(delegate, ctx, request):
        lines.append(ctx.log.render())
        return await delegate.execute(ctx, request)

    await log_of(session([200], look))

    assert ["GET http://localhost/orders  ->  no response yet"] == lines
