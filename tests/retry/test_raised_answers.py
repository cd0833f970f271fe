"""What is raised for a status is retried as an answer with that status is."""

from __future__ import annotations

import aiohttp
import pytest
from chains import NOW, SAFELY, URL, log_of, retrying, session
from pairs import each_pair
from raised import raised, raising

from aioretry_smithy import (
    Backoff,
    RetryBudget,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStopReason,
    RetryStrategy,
    rpc,
)
from aioretry_smithy.smithy import (
    DEFAULT_CLASSIFIERS,
    RetryAction,
    StandardRetryStrategy,
    only_idempotent,
)
from aioretry_smithy.testing import ScriptedTransport

STATUSES = [400, 401, 403, 404, 408, 409, 425, 429, 500, 501, 502, 503, 504, 505, 599]
STRATEGIES = {
    "failsafe": SAFELY,
    "server errors": RetryStrategy.on_server_error_status(NOW),
    "never sent": RetryStrategy.on_unprocessed(NOW),
    "a function": RetryStrategy.on_status(
        lambda status, cause: NOW if cause or status in {404, 503} else None
    ),
    "statuses": RetryRule(statuses=[404, 503], backoff=NOW),
    "classes": RetryRule(status_classes=[5], backoff=NOW),
    "statuses and content": RetryRuleWithContent(
        status_classes=[4], on_content=lambda content: False, backoff=NOW
    ),
    "all but": RetryRule.no_retry(statuses=[503]) | SAFELY,
    "a time": RetryRule(slower_than=60.0, backoff=NOW),
}


async def attempts(strategy, status, *inside, method="GET"):
    answers = [(status, {}, b"")] * 4
    settings = {"max_total_attempts": 4}
    client = session(answers, *inside, retrying(strategy, **settings))
    log = await log_of(client, method=method)
    return log.total_attempts, log.stop_reason


@pytest.mark.slow
@each_pair(status=STATUSES, name=[*STRATEGIES], method=["GET", "POST"])
async def test_raised_status_is_retried_as_its_answer_is(status, name, method):
    """Each strategy judges the status, whichever way it comes."""
    answered = await attempts(STRATEGIES[name], status, method=method)

    assert answered == await attempts(STRATEGIES[name], status, raising, method=method)


@pytest.mark.parametrize("status", STATUSES)
async def test_smithy_retries_a_raised_status_as_its_answer(status):
    """Here the classifiers judge."""
    settings = {"max_total_attempts": 3}
    logs = [
        await log_of(
            session(
                [(status, {}, b"")] * 3,
                *inside,
                retrying(StandardRetryStrategy(), **settings),
            )
        )
        for inside in [(), (raising,)]
    ]

    assert logs[0].total_attempts == logs[1].total_attempts


async def test_a_404_is_final_and_a_503_is_not():
    """In figures."""
    assert (1, RetryStopReason.NO_RETRY) == await attempts(SAFELY, 404, raising)
    assert 4 == (await attempts(SAFELY, 503, raising))[0]


@pytest.mark.parametrize(
    ("exceptions", "expected"),
    [
        (aiohttp.ClientResponseError, 4),
        (lambda cause: getattr(cause, "status", None) == 404, 4),
        (aiohttp.ClientError, 1),
        (Exception, 1),
    ],
    ids=["its class", "a function", "a class above", "any exception"],
)
async def test_rule_on_exceptions_names_what_was_raised(exceptions, expected):
    """A class above that of raised answers means failures, and a 404 is none."""
    rule = RetryRule(exceptions=exceptions, backoff=NOW)

    assert expected == (await attempts(rule, 404, raising))[0]


async def test_rule_on_all_exceptions_retries_a_status_that_may_pass():
    """A 503 that was raised is a failure as well."""
    rule = RetryRule(exceptions=aiohttp.ClientError, backoff=NOW)

    assert 4 == (await attempts(rule, 503, raising))[0]


async def test_class_of_one_s_own_is_named():
    """Also where it has another base, which says nothing of statuses."""

    class ShopError(Exception):
        pass

    class ShopResponseError(ShopError, aiohttp.ClientResponseError):
        pass

    answers = [raised(404, kind=ShopResponseError), 200]
    rule = RetryRule(exceptions=ShopError, backoff=NOW)
    log = await log_of(session(answers, retrying(rule)))

    assert (2, 200) == (log.total_attempts, log.response_status)


@pytest.mark.parametrize("is_retry_safe", [True, False])
async def test_what_an_exception_says_of_retries_goes_before_its_status(is_retry_safe):
    """An exception of the user's own knows best."""
    status = 404 if is_retry_safe else 503
    causes = [raised(status), raised(status)]
    for cause in causes:
        cause.is_retry_safe = is_retry_safe
    strategy = RetryStrategy.on_status(
        lambda status, cause: None if status == 200 else NOW
    )
    strategy |= SAFELY
    log = await log_of(session([*causes, 200], retrying(strategy)))

    assert (3 if is_retry_safe else 1) == log.total_attempts


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (raised(503, {"Retry-After": "7"}), 7.0),
        (raised(429, {"retry-after": 7}), 7.0),
        (raised(503, {"x-amz-retry-after": "1500"}), 1.5),
        (ExceptionGroup("one", [raised(503, {"Retry-After": "7"})]), 7.0),
        (raised(503, {"Retry-After": "soon"}), 0.0),
        (raised(503), 0.0),
        (raised(503, "no headers"), 0.0),
    ],
)
async def test_hint_in_a_raised_answer_is_obeyed(cause, expected):
    """As that of a response."""
    log = await log_of(session([cause, 200], retrying(SAFELY)))
    first = log.children[0]

    assert (200, expected) == (log.response_status, first.delay)
    assert ("retry_after" if expected else "backoff") == first.delay_source


async def test_hint_that_is_too_long_ends_the_call():
    """At once, with the exception."""
    cause = raised(503, {"Retry-After": "61"})
    log = await log_of(session([cause, 200], retrying(SAFELY)))

    assert RetryStopReason.RETRY_AFTER_TOO_LONG == log.stop_reason
    assert 1 == log.total_attempts


async def test_own_wait_goes_before_the_headers():
    """The exception has read more than the headers."""
    cause = raised(503, {"Retry-After": "7"})
    cause.retry_after = 2.0
    log = await log_of(session([cause, 200], retrying(SAFELY)))

    assert 2.0 == log.children[0].delay


@pytest.mark.parametrize("status", [404, 429, 500, 503])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}])
async def test_budget_counts_a_raised_status_as_its_answer(status, headers):
    """Failures of the server press the brake; a 404 is a success."""
    counted = []
    for inside in [(), (raising,)]:
        budget = RetryBudget(brake_after=None, capacity=10, deposit=0.5)
        decorators = *inside, retrying(SAFELY, max_total_attempts=3, limiter=budget)
        for _ in range(2):
            await log_of(session([(status, headers, b"")] * 3, *decorators))
        counted.append((budget.failures_in_a_row, budget.tokens))

    assert counted[0] == counted[1]


@pytest.mark.parametrize(
    ("status", "failures"), [(404, 0), (429, 0), (500, 1), (503, 1), (777, 0)]
)
async def test_limiter_without_a_wish_for_a_retry(status, failures):
    """A client that never retries still tells its limiter of server errors."""
    budget = RetryBudget()
    retry = retrying(RetryStrategy.never(), limiter=budget)
    await log_of(session([raised(status)], retry))

    assert failures == budget.failures_in_a_row


class TestFunctions:
    """A function that calls a session which raises for statuses itself."""

    @pytest.mark.parametrize(("status", "expected"), [(404, 1), (503, 3), (429, 3)])
    async def test_is_retried_by_the_status(self, status, expected):
        """Its exceptions are the only answers that it has."""
        transport = ScriptedTransport([status] * 3)
        client = session(transport, raise_for_status=True)
        settings = {"max_total_attempts": 3}
        retry = RetryingRpcClient.new_decorator(SAFELY, **settings)

        @rpc(retry, idempotent=True)
        async def fetch():
            async with client.get(URL) as response:
                return await response.read()

        async with client:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await fetch()

        assert status == caught.value.status
        assert expected == len(transport.requests)

    async def test_does_not_retry_what_was_retried_inside(self):
        """The session has given up the 503, which goes before the status."""
        transport = ScriptedTransport([503] * 9)
        client = session(
            transport, retrying(SAFELY, max_total_attempts=3), raise_for_status=True
        )
        strategies = STRATEGIES["a function"], STRATEGIES["statuses"], SAFELY
        for strategy in strategies:
            retry = RetryingRpcClient.new_decorator(strategy)

            @rpc(retry, idempotent=True)
            async def fetch():
                await client.get(URL)

            before = len(transport.requests)
            with pytest.raises(aiohttp.ClientResponseError):
                await fetch()

            assert 3 == len(transport.requests) - before, strategy
        await client.close()


async def test_classifier_of_one_s_own_hears_of_a_raised_status():
    """A final status ends no chain of classifiers."""

    def conflicts(failure, previous):
        return RetryAction.retry() if failure.status == 409 else None

    retry = RetryingClient.new_decorator(
        StandardRetryStrategy(),
        classifiers=(*DEFAULT_CLASSIFIERS, conflicts, only_idempotent),
    )
    log = await log_of(session([raised(409), 200], retry))

    assert (2, 200) == (log.total_attempts, log.response_status)


async def test_answer_above_599_is_none_that_may_pass():
    """Nor is it retried where it is no exception."""
    assert 1 == (await attempts(SAFELY, 999))[0]
    log = await log_of(session([raised(999), 200], retrying(SAFELY)))

    assert 1 == log.total_attempts


async def test_wait_before_a_retry_is_that_of_the_backoff():
    """An answer that was raised does not change it."""
    strategy = RetryStrategy.failsafe(Backoff.fixed(2.0))
    log = await log_of(session([raised(503), 200], retrying(strategy)))

    assert (2.0, "backoff") == (log.children[0].delay, log.children[0].delay_source)
