"""The words with which a strategy refused are in every view of the log."""

import asyncio
import io
import json
from contextlib import suppress
from functools import partial

import pytest
from chains import chain, log_of, retrying, session
from token_strategies import Plain, standard

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    RequestLog,
    RetryBudget,
    RetryLimiter,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
    smithy,
)
from aioretry_smithy._log.saved_log import SavedLog

pytest.importorskip("rich", reason="needs the extra cli")

from rich.console import Console

WORDS = "tenant 7 has used up its allowance"


class Tenant(Plain):
    """Lets each call of its tenant make two attempts, then refuses in its own words."""

    def __init__(self, attempts=2, *, most=None, hint=None):
        super().__init__()
        self.attempts, self.max_attempts, self.hint = attempts, most, hint

    def _refuse(self):
        raise smithy.RetryError(WORDS, retry_after=self.hint)

    def acquire_initial_retry_token(self, *, token_scope=None):
        return (
            super().acquire_initial_retry_token() if self.attempts else self._refuse()
        )

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        count = token_to_renew.retry_count + 1
        if count >= self.attempts:
            self._refuse()
        return type(token_to_renew)(count, 0.5)


async def silence(ctx, request):
    await asyncio.sleep(60.0)


async def log_of_call(answers, strategy, **settings):
    """Return the log of a call that fails."""
    builder = chain(answers, retrying(strategy), **settings)
    with capture_logs() as logs, suppress(Exception):
        async with builder.build() as client:
            await client.get("http://localhost/")
    return logs[0]


def views(log, tmp_path):
    """Return each view of a log that shows why it stopped."""
    console = Console(file=io.StringIO(), width=300, force_terminal=True)
    console.print(log)
    log.to_svg(tmp_path / "call.svg")
    return {
        "render": log.render(),
        "repr": repr(log),
        "text": LogFormatter.text().format_response(log),
        "json": LogFormatter.json().format_response(log),
        "nested": LogFormatter.json(nested=True).format_response(log),
        "rich": console.file.getvalue(),
        "svg": (tmp_path / "call.svg").read_text(encoding="utf-8"),
    }


@pytest.mark.parametrize(
    ("strategy", "answers", "reason"),
    [
        pytest.param(Tenant(), [503, 503], RetryStopReason.NO_RETRY, id="no retry"),
        pytest.param(
            Tenant(most=2), [503] * 2, RetryStopReason.MAX_TOTAL_ATTEMPTS, id="attempts"
        ),
        pytest.param(
            Tenant(hint=9.0), [503] * 2, RetryStopReason.LIMITER, id="come back later"
        ),
        pytest.param(Tenant(0), [503], RetryStopReason.LIMITER, id="no first token"),
        pytest.param(Tenant(0), [silence], RetryStopReason.DEADLINE, id="deadline"),
    ],
)
async def test_words_are_in_every_view(strategy, answers, reason, tmp_path):
    """Whatever the reason is called: they say what no reason can."""
    log = await log_of_call(answers, strategy, timeout=5.0)

    assert reason == log.stop_reason
    for name, view in views(log, tmp_path).items():
        assert WORDS in view, name
    assert f"stopped: {reason} ({WORDS})" in log.render()


async def test_words_of_a_refusal_before_a_cancelled_attempt():
    """The refusal was before, and a view of the cancelled call has it."""
    async with chain([silence], retrying(Tenant(0))).build() as client:
        with capture_logs() as logs:
            call = asyncio.create_task(client.get("http://localhost/"))
            await asyncio.sleep(1.0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    assert logs[0].render().splitlines()[0].endswith(f"stopped: cancelled ({WORDS})")


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        pytest.param(
            standard(max_attempts=2), "stopped: max_total_attempts", id="attempts"
        ),
        pytest.param(
            standard(
                backoff_strategy=smithy.from_backoff(
                    Backoff.fixed(0.0).with_max_attempts(2)
                )
            ),
            "stopped: backoff_exhausted",
            id="backoff",
        ),
    ],
)
async def test_words_of_our_own_that_repeat_the_reason_are_left_out(strategy, said):
    """They would say the same twice."""
    log = await log_of_call([503] * 3, strategy)

    assert isinstance(log.retry_error, smithy.RetryError)
    assert log.render().splitlines()[0].endswith(said)


async def test_words_that_the_call_failed_with_are_not_said_twice():
    """They stand there as the failure."""
    builder = chain([503], retrying(Tenant(1), raise_retry_error=True))
    async with builder.build() as client:
        with pytest.raises(smithy.RetryError) as caught:
            await client.get("http://localhost/")
    headline, _ = RequestLog.of(caught.value).render().splitlines()

    assert 1 == headline.count(WORDS)


URL = "http://example.com/orders"
SOON = RetryStrategy.failsafe(Backoff.fixed(0.5))


class Never(RetryLimiter):
    """Refuses each retry."""

    def acquire(self, ctx, cause):
        return False


class Broken(RetryLimiter):
    """Fails where it is asked."""

    def acquire(self, ctx, cause):
        raise KeyError("a bug of the limiter")


class Strict(RetryBudget):
    """Refuses what its budget would pay."""

    def acquire(self, ctx, cause):
        return False


@pytest.mark.parametrize(
    ("limiter", "words"),
    [
        (
            lambda: RetryBudget("orders"),
            "retry budget 'orders', 3 failures in a row, brake_after=3",
        ),
        (
            lambda: RetryBudget("orders", capacity=1.5),
            "retry budget 'orders', 0.5 tokens left, a retry costs 1",
        ),
        (
            lambda: RetryBudget("orders", unserved_cost=0.4, brake_after=1),
            "retry budget 'orders', 1.2 failures in a row, brake_after=1",
        ),
        (
            RetryBudget.per_host,
            "retry budget 'localhost:80', 3 failures in a row, brake_after=3",
        ),
        (
            lambda: RetryLimiter.token_based(5, 3.5),
            "RetryLimiter.token_based, 3 tokens left, a retry needs > 3.5",
        ),
        (lambda: Strict("orders"), "retry budget 'orders'"),
        (Never, "Never"),
        (Broken, "Broken"),
    ],
)
async def test_tree_says_which_limiter_refused_and_its_level(limiter, words):
    """After the stop reason, which stays one word."""
    log = await log_of(session([503] * 9, retrying(SOON, limiter=limiter())))

    assert "limiter" == log.stop_reason
    assert log.render().partition("\n")[0].endswith(f", stopped: limiter ({words})")
    assert words == log.limiter == log.to_dict()["limiter"]


@pytest.mark.parametrize(
    "make", [partial(RetryBudget, "localhost:80"), RetryBudget.per_host]
)
async def test_a_budget_says_what_a_retry_after_that_failure_costs(make):
    """Not what one costs after another failure."""
    limiter = make(capacity=1, unserved_cost=0.4, brake_after=None)
    answers = [ConnectionResetError()] * 9
    log = await log_of(session(answers, retrying(SOON, limiter=limiter)))

    words = "retry budget 'localhost:80', 0.2 tokens left, a retry costs 0.4"
    assert words == log.limiter


async def test_a_limit_of_concurrent_retries_says_how_many_there_are():
    """They are of all calls together."""
    limiter = RetryLimiter.concurrency(1)
    limiter.acquire(None, None)
    log = await log_of(session([503] * 9, retrying(SOON, limiter=limiter)))

    assert "RetryLimiter.concurrency(1), 1 under way" == log.limiter


async def test_an_error_says_it_after_its_last_attempt():
    """Only there: the notes of the others are as ever."""
    client = session([OSError("reset")] * 9, retrying(SOON, limiter=RetryBudget("o")))
    async with client:
        with pytest.raises(OSError, match="reset") as caught:
            await client.get(URL)

    *earlier, last = caught.value.__notes__
    assert 2 == len(earlier)
    assert not any("stopped" in note for note in earlier)
    assert last.endswith(
        ", stopped: limiter (retry budget 'o', 3 failures in a row, brake_after=3)"
    )


async def test_json_has_it_and_reads_it_again():
    """A report shows what the tree has shown."""
    log = await log_of(session([503] * 9, retrying(SOON, limiter=RetryBudget("o"))))
    values = json.loads(json.dumps(log.to_dict()))
    saved = SavedLog(values)

    assert values["limiter"] == saved.limiter
    assert log.render().partition("\n")[0] == saved.render().partition("\n")[0]


async def test_other_calls_have_no_such_word():
    """Neither those that succeed nor those that stop otherwise, nor an attempt."""
    limiter = RetryBudget("orders", capacity=1, brake_after=None)
    for answers in [503, 200], [404]:
        log = await log_of(session(answers, retrying(SOON, limiter=limiter)))
        assert log.limiter is None
        assert "limiter" not in log.to_dict()
    refused = await log_of(session([503], retrying(SOON, limiter=Never())))
    assert refused.children[0].limiter is None


async def test_a_quota_keeps_words_of_its_own():
    """A Smithy strategy refuses with an error."""
    quota = smithy.StandardRetryQuota(1)
    strategy = smithy.StandardRetryStrategy(retry_quota=quota)
    log = await log_of(session([503] * 9, retrying(strategy)))

    assert ("limiter", None) == (log.stop_reason, log.limiter)
    assert "tokens" in str(log.retry_error)


async def test_names_with_secrets_are_hidden():
    """A budget may be named for an URL."""
    limiter = RetryBudget("https://ann:hunter2@example.com", brake_after=1)
    log = await log_of(session([503], retrying(SOON, limiter=limiter)))

    assert "hunter2" not in log.render()
    assert "hunter2" not in str(log.to_dict())
