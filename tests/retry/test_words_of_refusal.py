"""The words with which a strategy refused are in every view of the log."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress

import pytest
from chains import chain, retrying
from token_strategies import Plain, standard

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    RequestLog,
    RetryStopReason,
    capture_logs,
    smithy,
)

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


async def log_of(answers, strategy, **settings):
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
    log = await log_of(answers, strategy, timeout=5.0)

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
    log = await log_of([503] * 3, strategy)

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
