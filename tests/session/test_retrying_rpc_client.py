"""The loop around a function: its settings, its strategies, what it returns."""

from __future__ import annotations

from contextlib import suppress

import pytest
from chains import NOW, notes_of, now

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    request_options,
    rpc,
    smithy,
)

KEY_ERRORS = RetryRule(exceptions=[KeyError], backoff=Backoff.fixed(1.0))


def scripted(outcomes, strategy=KEY_ERRORS, *settings, **options):
    """Return a function with these outcomes in turn, retried."""
    rest = iter(outcomes)

    @rpc(RetryingRpcClient.new_decorator(strategy, *settings, **options), name="call")
    async def call():
        outcome = next(rest)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return call


async def log_of(call):
    """Make a call, whatever comes of it, for its log."""
    with capture_logs() as logs, suppress(Exception):
        await call()
    return logs[0]


async def test_failures_are_retried_until_a_result_comes():
    """With the waits of the backoff between the attempts."""
    call = scripted([KeyError("a"), KeyError("b"), "done"])
    with capture_logs() as logs:
        result = await call()

    assert ("done", 2.0) == (result, now())
    assert [1.0, 1.0, None] == [child.delay for child in logs[0].children]
    assert (3, None) == (logs[0].total_attempts, logs[0].stop_reason)


@pytest.mark.parametrize("result", [None, 0, "", [], Exception])
async def test_anything_returned_is_a_success(result):
    """None too: the attempt has a result, even if it is nothing."""
    call = scripted([KeyError(), result, KeyError()])

    assert result is await call()


async def test_last_failure_is_raised_as_it_is():
    """The very object, with its own traceback and a note for each attempt."""
    last = KeyError("last")
    with capture_logs() as logs, pytest.raises(KeyError) as caught:
        await scripted([KeyError("a"), last], KEY_ERRORS, 2)()

    functions = [entry.name for entry in caught.traceback]
    assert last is caught.value
    assert logs[0] is RequestLog.of(last)
    assert "call" == functions[-1]
    assert [
        "attempt 1 of call: KeyError: 'a', 0.000 s, then waited 1.000 s (backoff)",
        "attempt 2 of call: KeyError: 'last', 0.000 s",
    ] == notes_of(last)


async def test_budget_is_paid_by_functions_that_return():
    """A success has no status, and is one."""
    budget = RetryBudget(deposit=0.5, capacity=2.0)
    await log_of(scripted([KeyError(), 1], limiter=budget))

    assert 1.5 == budget.tokens


async def test_budget_per_host_counts_all_functions_together():
    """They have none."""
    limiter = RetryBudget.per_host(capacity=1.0, brake_after=None)
    logs = [await log_of(scripted([KeyError()] * 3, limiter=limiter)) for _ in range(2)]

    assert [2, 1] == [log.total_attempts for log in logs]


class UntilFull(RetryStrategyWithContent):
    """Wants another attempt while a page is missing."""

    def __init__(self):
        self.seen = []

    def should_retry(self, ctx, cause, content):
        self.seen.append((cause, content))
        return NOW if not content else None


async def test_strategy_with_content_gets_what_was_returned():
    """The very object; None after a failure, or if that was returned."""
    strategy, page, failure = UntilFull(), ["page"], KeyError()
    result = await scripted([None, [], failure, page], strategy)()

    assert result is page
    assert [(None, None), (None, []), (failure, None), (None, page)] == strategy.seen
    assert strategy.seen[-1][1] is page


async def test_result_that_no_attempt_improves_is_handed_over():
    """As the last response of a session, with the reason in the log."""
    call = scripted([[], []], UntilFull(), 2)
    with capture_logs() as logs:
        result = await call()

    assert ([], RetryStopReason.MAX_TOTAL_ATTEMPTS) == (result, logs[0].stop_reason)


async def test_rule_may_ask_for_what_was_returned():
    """``on_content`` gets it, and ``|`` joins it to other strategies."""
    rule = RetryRuleWithContent(on_content=lambda page: page == [], backoff=NOW)
    call = scripted([[], KeyError(), ["page"]], rule | KEY_ERRORS)

    assert ["page"] == await call()


async def test_chain_in_a_strategy_hands_on_what_was_returned():
    """Only bytes are cut to a length."""
    inner, page = UntilFull(), {"page": 1}

    class Outer(RetryStrategyWithContent):
        chain = inner | RetryStrategy.never() | inner

        def should_retry(self, ctx, cause, content):
            return self.chain.should_retry(ctx, cause, content)

    await scripted([page], Outer())()

    assert [(None, page)] * 2 == inner.seen


async def test_rule_for_methods_is_about_no_function():
    """A function has none."""
    rule = RetryRule(methods=["GET"], exceptions=[KeyError], statuses=[200])
    log = await log_of(scripted([KeyError()], rule))

    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)


class TransientError(Exception):
    """A failure with Smithy's retry information."""

    is_retry_safe = True


async def test_smithy_strategy_retries_a_function():
    """Its classifiers see the exception; the scope is the name of the call."""
    scopes = []

    class Scoped(smithy.StandardRetryStrategy):
        def _acquire(self, scope):
            scopes.append(scope)
            return super()._acquire(scope)

    call = scripted([TransientError(), "done"], Scoped())
    with capture_logs() as logs:
        result = await call()

    assert ("done", 2, ["call"]) == (result, logs[0].total_attempts, scopes)


async def test_strategy_that_raises_ends_the_call():
    """The returned value is dropped, and the log says why."""

    class BrokenError(Exception):
        pass

    class Broken(RetryStrategy):
        def should_retry(self, ctx, cause):
            raise BrokenError

    log = await log_of(scripted(["result"], Broken()))

    assert ("error", BrokenError) == (log.stop_reason, type(log.response_cause))


@pytest.mark.parametrize("strategy", [UntilFull(), smithy.StandardRetryStrategy()])
async def test_block_with_buffered_responses_changes_nothing(strategy):
    """There is nothing to buffer: what is returned is whole."""
    config = RetryConfig(strategy, buffer_response=True)
    call = scripted(["page"])
    with request_options(retry=config):
        assert "page" == await call()


async def test_mapping_chooses_the_settings_of_a_call():
    """By its arguments, its name or its attributes."""
    mapping = RetryConfigMapping.of(
        lambda ctx, request: str(request.args[0]),
        lambda key: RetryConfig(KEY_ERRORS, int(key)),
    )

    @rpc(RetryingRpcClient.new_mapped_decorator(mapping))
    async def call(attempts):
        raise KeyError

    logs = [await log_of(lambda n=n: call(n)) for n in (1, 3)]

    assert [1, 3] == [log.total_attempts for log in logs]


@pytest.mark.parametrize(
    "mapping",
    [None, RetryConfig.no_retry(), RetryConfigMapping.per_host(lambda host: None)],
)
def test_mapping_by_host_is_refused(mapping):
    """A function has no host, and no method."""
    expected = r"^mapping: .*\(expected: what RetryConfigMapping.of returns\)$"
    with pytest.raises(ValueError, match=expected):
        RetryingRpcClient.new_mapped_decorator(mapping)


@pytest.mark.parametrize("name", ["buffer_response", "retry_count_header"])
def test_settings_of_http_are_refused(name):
    """A function has no response and no headers."""
    with pytest.raises(ValueError, match=rf"^{name}: None \(expected: only for sess"):
        RetryingRpcClient.new_decorator(KEY_ERRORS, **{name: None})


def test_whole_configuration_may_be_given():
    """Unless it wants responses to be buffered, or stands beside settings."""
    config = RetryConfig(KEY_ERRORS, 3)

    assert callable(RetryingRpcClient.new_decorator(config))
    with pytest.raises(ValueError, match="one without buffer_response"):
        RetryingRpcClient.new_decorator(RetryConfig(KEY_ERRORS, buffer_response=True))
    with pytest.raises(ValueError, match="none beside a RetryConfig"):
        RetryingRpcClient.new_decorator(config, 4)
