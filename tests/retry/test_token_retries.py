"""Smithy strategies in the retrying client: attempts, verdicts, waits, deadlines."""

import asyncio
from dataclasses import replace

import aiohttp
import pytest
from chains import (
    bad_argument,
    chain,
    log_of,
    log_of_cancelled,
    now,
    response_of,
    silence,
    status_and_log,
    twice,
)
from chains import retrying_session as session
from token_strategies import (
    SCOPE,
    Plain,
    Refusing,
    Token,
    adaptive,
    available,
    standard,
)

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
    client_decorator,
    smithy,
)

HALF = smithy.from_backoff(Backoff.fixed(0.5))


async def test_standard_strategy_pays_and_gets_back_the_last_cost():
    """Two retries cost 28; the success gives back the last 14."""
    strategy = standard()
    status, log = await status_and_log(session([500, 502, 200], strategy))

    assert (200, 3, 486) == (status, log.total_attempts, available(strategy))
    assert ["backoff", "backoff", None] == [each.delay_source for each in log.children]


async def test_attempts_of_the_strategy_end_in_the_last_response():
    """The 503 is handed over; the log has the reason and the error."""
    strategy = standard()
    status, log = await status_and_log(session([500, 502, 503], strategy))

    assert 503 == status
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)
    assert log.retry_error.__cause__.status == 503
    assert "all attempts are made" in log.to_dict()["retry_error"]


async def test_own_limit_of_attempts_stops_before_the_strategy_is_asked():
    """The second failure costs nothing, because no third attempt could follow."""
    strategy = standard()
    status, log = await status_and_log(
        session([500, 503], strategy, max_total_attempts=2)
    )

    assert (503, 486) == (status, available(strategy))
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert log.retry_error is None


async def test_empty_quota_ends_in_the_last_response():
    """The reason is the limiter, and the error says when there may be a token."""
    strategy = standard(retry_quota=smithy.StandardRetryQuota(20))
    status, log = await status_and_log(session([500, 503], strategy))

    assert 503 == status
    assert RetryStopReason.LIMITER == log.stop_reason
    assert 0.5 == log.retry_error.retry_after
    assert 6 == strategy.quota_for(None).available_capacity


async def test_failure_that_allows_no_retry_costs_nothing():
    """A 404 is a 404 after one attempt; the strategy was asked and said no."""
    strategy = standard()
    status, log = await status_and_log(session([404], strategy))

    assert (404, 1, 500) == (status, log.total_attempts, available(strategy))
    assert RetryStopReason.NO_RETRY == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(404, RetryStopReason.NO_RETRY), (503, RetryStopReason.MAX_TOTAL_ATTEMPTS)],
)
async def test_reason_at_the_limit_is_the_limit_only_for_what_could_be_retried(
    answer, reason
):
    """With one attempt allowed nobody is asked, and a 404 is still no retry."""
    strategy = Plain()
    _, log = await status_and_log(session([answer], strategy, max_total_attempts=1))

    assert reason == log.stop_reason
    assert [("acquire", SCOPE)] == strategy.seen


async def chunks():
    yield b"once"


def open_circuit():
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return CircuitBreakerClient.new_decorator(breaker)


@pytest.mark.parametrize("kind", [standard, Plain])
@pytest.mark.parametrize("case", ["body", "hint", "limiter"])
async def test_verdict_comes_before_all_limits(kind, case):
    """An outcome that no strategy retries is no retry, with any limit in the way."""
    strategy = adaptive() if case == "limiter" and kind is standard else kind()
    if case == "limiter" and kind is standard:
        strategy.limiter_for(SCOPE).update(throttled=True)
        await asyncio.sleep(2.0)
    answer = (403, {"Retry-After": "3600"} if case == "hint" else {}, b"")
    data = chunks() if case == "body" else None
    client = session([answer], strategy, timeout=0.2)
    log = await log_of(client, method="POST", data=data)

    assert RetryStopReason.NO_RETRY == log.stop_reason
    assert isinstance(log.retry_error, smithy.RetryError)


async def test_strategy_may_retry_what_nobody_else_would():
    """Up to the limit of attempts, which is then the reason; other limits hold too."""
    asked = []

    class Stubborn(Plain):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            asked.append(error.status)
            return Token(token_to_renew.retry_count + 1, 0.25)

    log = await log_of(session([404] * 4, Stubborn(), max_total_attempts=4))
    assert [404] * 3 == asked
    other = await log_of(session([404], Stubborn()), method="POST", data=chunks())

    assert (4, 0.25) == (log.total_attempts, log.children[0].delay)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason
    assert RetryStopReason.BODY_NOT_REPLAYABLE == other.stop_reason


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("took", [1.0, 2.0])
async def test_no_attempt_begins_after_the_deadline(refuses, took):
    """Also where the strategy took its time to say so."""

    class Late(Plain):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            await asyncio.sleep(took)
            if refuses:
                raise smithy.RetryError
            return Token(0, 0.0)

    with capture_logs() as logs, pytest.raises(ResponseTimeoutError):
        await response_of(session([], Late(), timeout=1.0))

    assert ((), RetryStopReason.DEADLINE) == (logs[0].children, logs[0].stop_reason)


@pytest.mark.parametrize(
    ("name", "hint", "settings", "wait"),
    [
        # The strategy waits as long as the server asks, which is why it waits.
        ("Retry-After", "3", {}, (3.0, "retry_after")),
        # It alone would cap the hint; the retrying client stands above it.
        ("Retry-After", "10", {}, (10.0, "retry_after")),
        # Left to the strategy the hint is clamped to five seconds more.
        ("x-amz-retry-after", "10000", {"use_retry_after": False}, (5.5, "backoff")),
    ],
)
@pytest.mark.usefixtures("draw")
async def test_hint_of_the_server_is_obeyed_in_full(name, hint, settings, wait):
    """Unless it is left to the strategy on request."""
    answers = [(503, {name: hint}, b""), 200]
    log = await log_of(session(answers, standard(), **settings))

    assert wait == (log.children[0].delay, log.children[0].delay_source)


class Obeying(Plain):
    """Its tokens wait as long as the server asks, and do not tell how much that is."""

    def __init__(self, delay):
        super().__init__()
        self.backoff_strategy = smithy.from_backoff(Backoff.fixed(delay))

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        token = super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )
        return replace(token, retry_delay=max(token.retry_delay, error.retry_after))


@pytest.mark.parametrize(
    ("make", "wait"),
    [
        (standard, (6.25, "retry_after")),
        (adaptive, (6.25, "retry_after")),
        (
            lambda: smithy.SimpleRetryStrategy(backoff_strategy=HALF),
            (6.25, "retry_after"),
        ),
        (Plain, (6.25, "retry_after")),
        # A fifth, at most a second, where the backoff's own delay is not known.
        (lambda: Obeying(0.5), (6.5, "retry_after")),
        (lambda: Obeying(8.0), (10.0, "retry_after")),
    ],
)
async def test_part_of_the_backoff_is_added_to_a_hint(draw, make, wait):
    """Of the backoff's own delay, without the hint that is in a token's delay."""
    draw(0.5)
    log = await log_of(session([(503, {"Retry-After": "6"}, b""), 200], make()))

    assert wait == (log.children[0].delay, log.children[0].delay_source)


async def test_body_that_cannot_be_sent_again_costs_nothing():
    """The strategy is not asked for a retry that could not be made."""
    strategy = standard()
    log = await log_of(session([500], strategy), method="POST", data=chunks())

    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason
    assert 500 == available(strategy)


async def test_method_does_not_matter_to_a_strategy_of_smithy():
    """A POST is retried like a GET, as in the SDKs."""
    log = await log_of(session([500, 200], standard()), method="POST", data=b"x")

    assert (200, 2) == (log.response_status, log.total_attempts)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(200, None), (404, RetryStopReason.NO_RETRY), (503, RetryStopReason.LIMITER)],
)
async def test_refused_initial_token_means_one_attempt(answer, reason):
    """It is made, neither retried nor recorded, and the log has the refusal."""
    strategy = Refusing()
    status, log = await status_and_log(session([answer], strategy))

    assert (answer, reason) == (status, log.stop_reason)
    assert "none left" == str(log.retry_error)
    assert [] == strategy.seen


async def test_initial_delay_is_waited_and_seen_in_the_log():
    """An initial token may ask for a wait; the log of the call has it."""
    status, log = await status_and_log(session([200], Plain(1.5)))

    assert (200, 1.5, "backoff") == (status, log.delay, log.delay_source)
    assert 1.5 == log.duration
    assert 0.0 == log.children[0].duration
    assert log.render().splitlines()[0].endswith("first waited 1.500 s (backoff)")


async def test_initial_delay_beyond_the_deadline_ends_the_call_at_once():
    """Nobody waits for an attempt that cannot be made in time."""
    with capture_logs() as logs, pytest.raises(ResponseTimeoutError):
        await response_of(session([], Plain(5.0), timeout=5.0))

    assert 0.0 == now()
    assert RetryStopReason.DEADLINE == logs[0].stop_reason


@pytest.mark.parametrize("kind", [standard, adaptive])
async def test_open_circuit_never_reaches_the_strategy(kind):
    """Nothing was sent, so nothing is retried or measured."""
    strategy = kind()
    logs = []
    for _ in range(2):
        logs.append(await log_of(session([], strategy, open_circuit())))
        await asyncio.sleep(1.0)

    assert [(RetryStopReason.REFUSED, None)] * 2 == [
        (log.stop_reason, log.retry_error) for log in logs
    ]
    assert all(isinstance(log.response_cause, FailFastError) for log in logs)
    if kind is adaptive:
        assert 0.0 == strategy.limiter_for(SCOPE).measured_rate


async def test_open_circuit_is_found_in_a_group():
    """A decorator that sends from a task group raises the refusal in one."""

    @client_decorator
    async def in_a_group(delegate, ctx, request):
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(delegate.execute(ctx, request))
        return sent.result()

    strategy = Plain()
    with pytest.raises(ExceptionGroup):
        await response_of(session([], strategy, open_circuit(), in_a_group))

    assert [("acquire", SCOPE)] == strategy.seen


@pytest.mark.parametrize(("seconds", "deadline"), [("61", None), ("5", 5.0)])
async def test_hint_that_nobody_waits_for_costs_nothing(seconds, deadline):
    """The call ends with the response before the strategy is asked to pay."""
    strategy = standard()
    answer = (503, {"Retry-After": seconds}, b"")
    status, log = await status_and_log(session([answer], strategy, timeout=deadline))

    assert (503, 500) == (status, available(strategy))
    assert RetryStopReason.RETRY_AFTER_TOO_LONG == log.stop_reason


async def test_delay_beyond_the_deadline_ends_the_call():
    """With the last response, without a wait; what was not sent is paid back."""
    strategy = standard()
    status, log = await status_and_log(session([503, 503], strategy, timeout=0.75))

    assert (503, 0.5, 2) == (status, now(), log.total_attempts)
    assert RetryStopReason.DEADLINE == log.stop_reason
    assert 486 == available(strategy)


async def test_retry_that_is_cancelled_before_it_is_sent_is_paid_back():
    """Callers who give up must not use up the retries of all others."""
    strategy = standard()
    for _ in range(40):
        await log_of_cancelled(session([503], strategy), 0.25)

    assert 500 == available(strategy)


async def test_retry_that_was_sent_stays_paid():
    """Also where the caller gives up on it."""
    strategy = standard()
    await log_of_cancelled(session([503, silence], strategy), 1.0)

    assert 486 == available(strategy)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_attempt_that_the_deadline_cut_is_no_question(method):
    """The strategy has nothing to say about the end of time, safe to retry or not."""
    strategy = Plain()
    client = session([silence], strategy, classifiers=IDEMPOTENT, timeout=1.0)
    log = await log_of(client, method=method)

    assert str(log.response_cause).startswith("the deadline passed")
    assert isinstance(log.response_cause, ResponseTimeoutError)
    assert [("acquire", SCOPE)] == strategy.seen


class Choosy(Plain):
    """Says no, and has no limit of attempts in sight."""

    max_attempts = None

    def refresh_retry_token_for_retry(self, **_):
        raise smithy.RetryError


@pytest.mark.parametrize(
    ("strategy", "answers", "reason"),
    [
        (Plain(), [503, 503, 503], RetryStopReason.MAX_TOTAL_ATTEMPTS),
        (Plain(), [404], RetryStopReason.NO_RETRY),
        (Choosy(), [503], RetryStopReason.NO_RETRY),
    ],
)
async def test_reason_is_worked_out_for_strategies_of_ones_own(
    strategy, answers, reason
):
    """A bare RetryError does not say why; the attempts and the failure do."""
    assert reason == (await log_of(session(answers, strategy))).stop_reason


async def test_second_pass_that_never_begins_says_so():
    """Its initial wait follows the last attempt of the first pass."""
    builder = chain([200], RetryingClient.new_decorator(Plain(1.5)), twice)
    log = await log_of_cancelled(builder.build(), 2.0)

    assert RetryStopReason.CANCELLED == log.stop_reason
    assert (1.5, 0.5) == (log.delay, log.children[0].delay)


IDEMPOTENT = (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)


@pytest.mark.parametrize(
    ("name", "value"), [("classifiers", ()), ("raise_retry_error", True)]
)
def test_settings_for_smithy_strategies_are_refused_elsewhere(name, value):
    """An option that would be ignored is an error."""
    with bad_argument(name, value, "only for a Smithy strategy"):
        RetryConfig(RetryStrategy.failsafe(), **{name: value})


def test_description_shows_the_settings_for_smithy_strategies():
    """They have an effect here, and nowhere else."""
    decorator = RetryingClient.new_decorator(
        Plain(),
        classifiers=(smithy.by_status, smithy.only_idempotent),
        raise_retry_error=True,
    )
    shown = "classifiers=(by_status, only_idempotent), raise_retry_error=True)"

    assert decorator(None).describe().endswith(shown)


async def test_attempts_of_the_strategy_end_in_the_last_exception():
    """The caller gets what the last attempt raised, and no RetryError."""
    last = aiohttp.ServerDisconnectedError()
    with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
        await response_of(session([500, last], standard(max_attempts=2)))

    assert last is caught.value
    assert isinstance(RequestLog.of(last).retry_error, smithy.RetryError)
