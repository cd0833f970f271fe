"""What people read where a limiter refused a retry: which one, and its level."""

from __future__ import annotations

import json
import logging

import pytest
from chains import log_of, retrying, session

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    LoggingClient,
    RetryBudget,
    RetryLimiter,
    RetryRuleWithContent,
    RetryStrategy,
    smithy,
)
from aioretry_smithy._log.saved_log import SavedLog

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


async def test_a_limit_of_concurrent_retries_says_how_many_there_are():
    """They are of all calls together."""
    limiter = RetryLimiter.concurrency(1)
    limiter.acquire(None, None)
    log = await log_of(session([503] * 9, retrying(SOON, limiter=limiter)))

    assert "RetryLimiter.concurrency(1), 1 under way" == log.limiter


async def test_a_line_says_it_too(caplog):
    """That of the standard chain."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    logging_ = LoggingClient.new_decorator(formatter=LogFormatter.line())
    chain = retrying(SOON, limiter=RetryBudget("orders")), logging_
    await log_of(session([503] * 9, *chain))

    assert (
        " (limiter: retry budget 'orders', 3 failures in a row, brake_after=3), id="
        in caplog.messages[0]
    )


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


async def test_a_strategy_that_reads_bodies_uses_a_budget_up_visibly():
    """Errors inside a 200 that are retried are failures to the budget."""
    strategy = RetryRuleWithContent(on_content=lambda body: b"busy" in body)
    chain = retrying(strategy, limiter=RetryBudget("orders", brake_after=2))
    log = await log_of(session([(200, b"busy")] * 9, chain))

    assert (200, 2) == (log.response_status, log.total_attempts)
    assert "retry budget 'orders', 2 failures in a row, brake_after=2" == log.limiter


async def test_json_has_it_and_reads_it_again():
    """A report shows what the tree has shown."""
    log = await log_of(session([503] * 9, retrying(SOON, limiter=RetryBudget("o"))))
    values = json.loads(json.dumps(log.to_dict()))
    saved = SavedLog(values)

    assert values["limiter"] == saved.limiter
    assert log.render().partition("\n")[0] == saved.render().partition("\n")[0]


async def test_har_has_it_beside_the_stop_reason():
    """In the entry of the last attempt, and on the page of the call."""
    log = await log_of(session([503] * 9, retrying(SOON, limiter=RetryBudget("o"))))
    har = log.to_har()["log"]
    words = "retry budget 'o', 3 failures in a row, brake_after=3"

    assert words == har["pages"][0]["_limiter"] == har["entries"][-1]["_limiter"]


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
