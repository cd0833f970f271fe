"""Asking a strategy, without a session."""

import pytest
from chains import bad_argument

from aioretry_smithy import (
    Backoff,
    RetryConfig,
    RetryDecision,
    RetryStrategy,
    RetryStrategyWithContent,
    smithy,
)
from aioretry_smithy.testing import ask

BACKOFF = Backoff.fixed(1.0)


class Looking(RetryStrategy):
    """Keeps what it was shown, and gives the one answer."""

    def __init__(self, answer=BACKOFF):
        self.answer = answer

    def should_retry(self, ctx, cause):
        self.ctx, self.cause = ctx, cause
        return self.answer


class LookingLater(Looking):
    async def should_retry(self, ctx, cause):
        return super().should_retry(ctx, cause)


class LookingInside(RetryStrategyWithContent):
    """Keeps what it was shown of the body too."""

    max_content_length = 5

    def should_retry(self, ctx, cause, content):
        self.ctx, self.cause, self.content = ctx, cause, content
        return BACKOFF


class LookingInsideLater(LookingInside):
    async def should_retry(self, ctx, cause, content):
        return super().should_retry(ctx, cause, content)


@pytest.mark.parametrize(
    "strategy", [Looking(), LookingLater(), LookingInside(), LookingInsideLater()]
)
async def test_plain_and_async_strategies(strategy):
    """Either kind gives its answer."""
    assert BACKOFF is await ask(strategy, status=503)


async def test_strategy_sees_the_response():
    """Status, headers and method are in the log and the request, as in a call."""
    strategy = Looking()
    await ask(strategy, status=429, headers={"Retry-After": "3"}, method="post")
    log = strategy.ctx.log

    assert (429, "Too Many Requests") == (log.response_status, log.response_reason)
    assert "3" == log.response_headers["Retry-After"]
    assert "POST" == strategy.ctx.request.method
    assert strategy.cause is None
    assert log.is_complete


async def test_strategy_sees_a_success_by_default():
    """Nothing said is a 200."""
    strategy = Looking()
    await ask(strategy)

    assert 200 == strategy.ctx.log.response_status


async def test_strategy_sees_the_failure():
    """The cause is the argument and in the log, and there is no status."""
    strategy, cause = Looking(), TimeoutError()
    await ask(strategy, cause=cause)

    assert cause is strategy.cause is strategy.ctx.log.response_cause
    assert strategy.ctx.log.response_status is None


@pytest.mark.parametrize("attempt", [1, 2, 7])
async def test_strategy_sees_the_attempt(attempt):
    """Which attempt it was, and that there were others before."""
    strategy = Looking()
    await ask(strategy, attempt=attempt)

    assert attempt == strategy.ctx.attempt
    assert attempt == strategy.ctx.root.log.total_attempts
    assert strategy.ctx.parent is strategy.ctx.root


@pytest.mark.parametrize(
    ("strategy", "hint"),
    [
        (smithy.StandardRetryStrategy(), ""),
        (RetryConfig.no_retry(), ""),
        (RetryStrategy.failsafe, "; call it: RetryStrategy.failsafe()"),
        (Looking, "; call it: Looking()"),
    ],
)
async def test_what_is_no_strategy_is_refused(strategy, hint):
    """Smithy's have tokens and no answer; others have to be called first."""
    expected = f"a RetryStrategy or a RetryStrategyWithContent{hint}"
    with bad_argument("strategy", strategy, expected):
        await ask(strategy, status=503)


@pytest.mark.parametrize("attempt", [0, -1, True, 1.5, "1", None])
async def test_attempts_count_from_one(attempt):
    """A number that no attempt has is refused."""
    with bad_argument("attempt", attempt, "an integer >= 1"):
        await ask(Looking(), attempt=attempt)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, b""), (b"", b""), (b"1234", b"1234"), (b"123456", b"12345")],
)
async def test_strategy_sees_the_content(content, expected):
    """As much of it as in a call; nothing said is an empty body."""
    strategy = LookingInside()
    await ask(strategy, status=503, content=content)

    assert (expected, None) == (strategy.content, strategy.cause)
    assert 503 == strategy.ctx.log.response_status


async def test_failure_has_no_content():
    """There is a cause or a body, never both."""
    strategy, cause = LookingInside(), TimeoutError()
    await ask(strategy, cause=cause)

    assert (None, cause) == (strategy.content, strategy.cause)


async def test_plain_strategy_may_be_asked_with_a_body():
    """It is a response like any other."""
    strategy = Looking()
    await ask(strategy, content=b"123456")

    assert 6 == strategy.ctx.log.response_length


@pytest.mark.parametrize(
    "arguments",
    [{"content": "text"}, {"content": 0}, {"content": b"", "cause": TimeoutError()}],
)
async def test_content_must_be_a_body(arguments):
    """Text is told at once, and so is a body of an attempt that failed."""
    with bad_argument(
        "content", arguments["content"], "bytes, or None where there is a cause"
    ):
        await ask(LookingInside(), **arguments)


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        ("timeout", ""),
        (TimeoutError, "; call it: TimeoutError(...)"),
    ],
)
async def test_cause_must_be_an_exception(cause, hint):
    """A class is none, and a text neither."""
    with bad_argument("cause", cause, f"an exception, or None{hint}"):
        await ask(Looking(), cause=cause)


@pytest.mark.parametrize("headers", [7, "Retry-After: 3", [3]])
async def test_headers_must_be_pairs(headers):
    """What aiohttp would take as headers."""
    with bad_argument("headers", headers, "a mapping of names to texts, or None"):
        await ask(Looking(), status=503, headers=headers)


@pytest.mark.parametrize("kind", [Looking, LookingLater])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (RetryDecision.retry(BACKOFF), BACKOFF),
        (RetryDecision.no_retry(), None),
        (RetryDecision.next(), None),
        (None, None),
    ],
)
async def test_decisions(kind, answer, expected):
    """The answer is the backoff, or None where the call would stop."""
    assert expected is await ask(kind(answer))


@pytest.mark.parametrize("kind", [Looking, LookingLater])
async def test_bad_answers(kind):
    """They are refused as in a call."""
    with pytest.raises(ValueError, match=r"^should_retry: 0.5 \(expected: "):
        await ask(kind(0.5))


@pytest.mark.parametrize("first", [Looking(None), LookingLater(None)])
@pytest.mark.parametrize("last", [Looking(), LookingLater()])
async def test_chains(first, last):
    """The first member that has something to say gives the answer."""
    assert BACKOFF is await ask(first | last)
    assert None is await ask(Looking(RetryDecision.no_retry()) | last)
