"""Retries, circuit breakers and logs around functions."""

import asyncio
import json
import logging
import warnings
from contextlib import suppress

import pytest
from chains import NOW, bad_argument, notes_of, now, without_id

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerRpcClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    LogFormatter,
    LoggingRpcClient,
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


def guarded(breaker, *others, **settings):
    """Return a function that raises what it is given, or returns it."""

    @rpc(CircuitBreakerRpcClient.new_decorator(breaker, **settings), *others)
    async def call(outcome):
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return call


async def test_what_a_function_returns_is_a_success():
    """None too; it has no status that could say otherwise."""
    breaker = CircuitBreaker()
    call = guarded(breaker)
    results = [await call(outcome) for outcome in (1, None, KeyError)]

    assert [1, None, KeyError] == results
    assert (3, 0) == (breaker.event_count.success, breaker.event_count.failure)


async def test_what_a_function_raises_is_a_failure():
    """Cancellation and mistakes in the code say nothing of the other side."""
    breaker = CircuitBreaker()
    call = guarded(breaker)
    for outcome in (ConnectionResetError(), asyncio.CancelledError(), TypeError()):
        with pytest.raises(type(outcome)):
            await call(outcome)

    assert (0, 1) == (breaker.event_count.success, breaker.event_count.failure)


async def test_open_circuit_refuses_a_call():
    """The function is not called, and the log says that nothing was sent."""
    breaker = CircuitBreaker("reports")
    breaker.enter_state(CircuitState.OPEN)
    with pytest.raises(FailFastError, match="reports") as caught:
        await guarded(breaker)(1)

    assert not RequestLog.of(caught.value).sent


@pytest.mark.parametrize("is_async", [False, True])
async def test_fallback_answers_in_place_of_the_function(is_async):
    """With the arguments of the call, and any result."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)

    def plain(ctx, request):
        return ("kept", request.args, type(ctx.log.response_cause))

    async def later(ctx, request):
        return plain(ctx, request)

    call = guarded(breaker, fallback=later if is_async else plain)
    with capture_logs() as logs:
        result = await call(7)

    assert ("kept", (7,), FailFastError) == result
    assert (None, False) == (logs[0].response_cause, logs[0].sent)


async def test_strategy_of_one_s_own_judges():
    """The caller gets its error, and the returned value is dropped."""

    class Broken(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise LookupError

    breaker = CircuitBreaker()
    with pytest.raises(LookupError):
        await guarded(breaker, strategy=Broken())(1)

    assert 0 == breaker.event_count.total


RETRYING = RetryingRpcClient.new_decorator(
    RetryRule(exceptions=[KeyError], backoff=NOW), 2
)


async def lines_of(caplog, outcome, *decorators):
    """Return the levels and the lines of one call."""

    @rpc(*decorators, name="reports.fetch")
    async def call(secret):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with caplog.at_level(logging.DEBUG, "aioretry_smithy"), suppress(KeyError):
        await call("argument")
    return [(record.levelname, record.message) for record in caplog.records]


async def test_success_is_told_with_the_name(caplog):
    """Neither the arguments nor what was returned are in the lines."""
    lines = await lines_of(caplog, "result", LoggingRpcClient.new_decorator())
    (asked, request), (answered, response) = lines

    assert ("DEBUG", "DEBUG") == (asked, answered)
    assert "name=reports.fetch}" in request
    assert without_id(request).startswith("Request: {startTime=")
    assert (
        "Response: {duration=0.000s, totalDuration=0.000s, name=reports.fetch}"
    ) == without_id(response)


async def test_failure_is_told_with_its_cause(caplog):
    """At the level of failures; outside of the retrying client once a call."""
    decorators = [RETRYING, LoggingRpcClient.new_decorator()]
    lines = await lines_of(caplog, KeyError("gone"), *decorators)

    assert ["DEBUG", "WARNING"] == [level for level, _ in lines]
    assert lines[-1][1].endswith(
        "cause=KeyError: 'gone'}, {totalAttempts=2}, stopped: max_total_attempts"
    )


@pytest.mark.parametrize(("nested", "count"), [(False, 2), (True, 1)])
async def test_lines_may_be_json(caplog, nested, count):
    """With null where a function has nothing."""
    formatter = LogFormatter.json(nested=nested)
    decorator = LoggingRpcClient.new_decorator(formatter=formatter)
    lines = await lines_of(caplog, 7, decorator)
    first = json.loads(lines[0][1])

    assert count == len(lines)
    assert ("reports.fetch", None, None) == (
        first["name"],
        first["request_url"],
        first["request_method"],
    )


FAILSAFE = RetryStrategy.failsafe(NOW)
UNPROCESSED = RetryStrategy.on_unprocessed(NOW)
RULE = RetryRule(exceptions=[OSError], backoff=NOW)


async def fetch():
    raise ConnectionResetError


@pytest.mark.parametrize(
    "how",
    [
        FAILSAFE,
        UNPROCESSED | FAILSAFE,
        FAILSAFE | RetryStrategy.never(),
        RetryConfig(FAILSAFE),
        RetryConfig.standard(),
    ],
    ids=repr,
)
def test_function_that_is_hardly_retried_is_told(how):
    """Where it is decorated, once, with both remedies."""
    retrying = RetryingRpcClient.new_decorator(how)
    with pytest.warns(RuntimeWarning) as caught:
        rpc(retrying, LoggingRpcClient.new_decorator(), name="reports.fetch")(fetch)

    (warning,) = caught
    message = str(warning.message)
    assert message.startswith("reports.fetch: RetryStrategy.failsafe() ")
    assert "rpc(..., idempotent=True)" in message
    assert "RetryRule(exceptions=[...], on_timeout=True)" in message
    assert __file__ == warning.filename


def test_warning_points_at_the_decorated_function():
    """At the line of its decorator."""
    with pytest.warns(RuntimeWarning) as caught:

        @rpc(RetryingRpcClient.new_decorator(FAILSAFE))
        async def operation(): ...

    with pytest.warns(RuntimeWarning) as again:
        rpc(RetryingRpcClient.new_decorator(FAILSAFE))(operation.__wrapped__)

    assert operation.__wrapped__.__code__.co_firstlineno == caught[0].lineno
    assert again[0].lineno > caught[0].lineno
    assert str(caught[0].message).startswith(f"{operation.__qualname__}: ")


@pytest.mark.parametrize(
    ("how", "options"),
    [
        (FAILSAFE, {"idempotent": True}),
        (FAILSAFE, {"idempotent": False}),
        (UNPROCESSED, {}),
        (RULE, {}),
        (RULE | FAILSAFE, {}),
        (FAILSAFE | RULE, {}),
        (RetryStrategy.never(), {}),
        (RetryStrategy.on_server_error_status(NOW), {}),
        (smithy.StandardRetryStrategy(), {}),
        (RetryConfig(FAILSAFE, max_total_attempts=1), {}),
        (RetryConfigMapping.of(lambda *_: "all", lambda _: RetryConfig(FAILSAFE)), {}),
    ],
    ids=repr,
)
async def test_everything_else_is_left_alone(how, options):
    """What says what it means, and what retries more than that."""
    with warnings.catch_warnings(action="error"):
        decorated = rpc(RetryingRpcClient.new_decorator(how), **options)(fetch)

        with pytest.raises(ConnectionResetError):
            await decorated()


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_declaration_must_be_one(value):
    """As for any other setting."""
    with bad_argument("idempotent", value, "True or False"):
        rpc(idempotent=value)
