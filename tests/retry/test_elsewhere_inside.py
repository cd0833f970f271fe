"""Attempts that go to another server, with circuit breakers inside."""

import asyncio

import aiohttp
import pytest
from balanced import IN_ORDER, ROUND_ROBIN, Fleet, call, group_of, out, state_of
from chains import SAFELY, after, now, refused, retrying
from functions import Breakers, certificate, delays, logged

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    FailFastError,
    OutlierDetection,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryConfig,
    RetryingClient,
    RetryRule,
    RetryStopReason,
    RetryStrategy,
    UnprocessedRequestError,
    smithy,
)
from aioretry_smithy._call.servers import is_unsent
from aioretry_smithy._failures.failure import judge

LATER = RetryStrategy.failsafe(Backoff.fixed(0.5))


class TestBrake:
    """What of several servers presses the brake of a budget."""

    async def test_one_that_is_gone_does_not(self):
        """All calls that meet it at once get through, and each retry is paid for."""
        budget = RetryBudget(brake_after=3, deposit=0.0)
        group = group_of("ab", selection=IN_ORDER)
        fleet = Fleet(a=after(0.1, refused()))
        config = RetryConfig(SAFELY, limiter=budget)
        async with fleet.session(group, RetryingClient.new_decorator(config)) as client:
            answers = await asyncio.gather(*(call(client) for _ in range(6)))

        assert [200] * 6 == [status for status, _ in answers]
        assert (0, 4.0) == (budget.failures_in_a_row, budget.tokens)

    async def test_one_that_another_group_stands_in_for_does_not(self):
        """It may be out, though it is alone in its group."""
        budget = RetryBudget(brake_after=3)
        config = RetryConfig(SAFELY, limiter=budget)
        group = group_of("a").or_else(group_of("b"))
        status, _, asked = await logged(
            Fleet(a=refused()), group, RetryingClient.new_decorator(config)
        )

        assert (200, "ab", 0) == (status, asked, budget.failures_in_a_row)

    @pytest.mark.parametrize(
        ("names", "answer"), [("a", refused()), ("ab", 500), ("ab", TimeoutError())]
    )
    async def test_others_do(self, names, answer):
        """The only one, and one that a request has reached."""
        budget = RetryBudget(brake_after=3)
        group = group_of(names, selection=IN_ORDER, outlier_detection=None)
        config = RetryConfig(SAFELY, limiter=budget, max_total_attempts=1)
        fleet = Fleet(a=answer)
        async with fleet.session(group, RetryingClient.new_decorator(config)) as client:
            await call(client)

        assert 1 == budget.failures_in_a_row


class TestBreakerInside:
    """Case 103: a circuit breaker per endpoint, further in."""

    @pytest.mark.parametrize("detection", [OutlierDetection(), None])
    @pytest.mark.parametrize(
        "strategy", [LATER, RetryStrategy.never(), RetryRule(statuses={418})]
    )
    async def test_goes_elsewhere_at_once_whatever_the_strategy_says(
        self, strategy, detection
    ):
        """As a further attempt that was not sent, and the endpoint is set aside."""
        group = group_of("ab", outlier_detection=detection)
        status, log, asked = await logged(
            Fleet(), group, Breakers("a").decorator, retrying(strategy)
        )

        assert (200, "b") == (status, asked)
        assert [(0.0, "next_endpoint")] == delays(log)
        first, second = log.children
        assert ("a.example", False) == (first.endpoint, first.sent)
        assert isinstance(first.response_cause, FailFastError)
        assert ({"a": "circuit_open"}, 20.0) == (
            out(group),
            state_of(group, "a").ejected_until,
        )
        assert second.sent

    @pytest.mark.parametrize(
        "strategy",
        [
            LATER,
            RetryStrategy.never(),
            RetryRule(exceptions=FailFastError, backoff=Backoff.fixed(5.0)),
        ],
    )
    async def test_beyond_the_two_switches(self, strategy):
        """Each of them is one that nothing was lost at."""
        group = group_of("abcde")
        status, log, asked = await logged(
            Fleet(), group, Breakers(*"abcd").decorator, retrying(strategy)
        )

        assert (200, "e", 0.0) == (status, asked, now())
        assert ["next_endpoint"] * 4 == [source for _, source in delays(log)]

    async def test_switches_are_left_for_what_is_refused_then(self):
        """They are not used up by circuits that are open."""
        fleet = Fleet(c=refused(), d=refused())
        status, _log, asked = await logged(
            fleet, group_of("abcde"), Breakers("a", "b").decorator, retrying(LATER)
        )

        assert (200, "cde", 0.0) == (status, asked, now())

    async def test_all_open_is_a_refusal(self):
        """There is no other; all but one are set aside."""
        group = group_of("ab")
        error, log, asked = await logged(
            Fleet(), group, Breakers("a", "b").decorator, retrying(LATER)
        )

        assert (FailFastError, "", 2) == (type(error), asked, log.total_attempts)
        assert {"a": "circuit_open"} == out(group)

    async def test_breaker_for_all_never_goes_elsewhere(self):
        """It says nothing of one endpoint."""
        breaker = CircuitBreaker("all")
        breaker.enter_state(CircuitState.OPEN)
        group = group_of("ab")
        error, log, asked = await logged(
            Fleet(), group, CircuitBreakerClient.new_decorator(breaker), retrying(LATER)
        )

        assert (FailFastError, "", 1, {}) == (
            type(error),
            asked,
            log.total_attempts,
            out(group),
        )

    async def test_nor_does_a_breaker_per_service(self):
        """Its key is the group's; rules that name the error may retry it."""
        breakers = Breakers("o")
        group = group_of("ab", name="orders")
        rule = RetryRule(exceptions=FailFastError, backoff=Backoff.fixed(1.0))
        error, _log, _ = await logged(
            Fleet(), group, retrying(rule, max_total_attempts=3), breakers.decorator
        )

        assert (["orders"], FailFastError) == (breakers.keys, type(error))

    async def test_limit_for_all_never_goes_elsewhere_at_once(self):
        """Its queue is full for any."""
        limit = ConcurrencyLimitingClient.new_decorator(1, max_pending=0)
        fleet = Fleet(a=after(9.0, 200), b=after(9.0, 200))
        group = group_of("ab")
        async with fleet.session(
            group, limit, retrying(LATER, max_total_attempts=2)
        ) as client:
            first = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            _, log = await call(client)
            await first

        assert [(0.5, "backoff")] == delays(log)
        assert {} == out(group)

    @pytest.mark.parametrize("method", ["GET", "POST"])
    @pytest.mark.parametrize("detection", [OutlierDetection(), None])
    @pytest.mark.parametrize("longest", [0.0, 2.0])
    async def test_full_limit_of_one_sends_elsewhere_at_once(
        self, method, detection, longest
    ):
        """Its server was not asked, and is not left alone for it."""
        limit = ConcurrencyLimitingClient.new_per_host_decorator(
            lambda key: 1, timeout=longest
        )
        fleet = Fleet(a=after(9.0, 200))
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group, limit, retrying(LATER)) as client:
            first = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            status, log = await call(client, method=method, data=b"x")
            assert 1.0 + longest == now()
            await first

        assert (200, "ab", [(0.0, "next_endpoint")]) == (
            status,
            fleet.text,
            delays(log),
        )
        assert {} == out(group)

    async def test_full_limits_of_all_are_waited_for(self):
        """Two switches, and then the backoff, until there is a place."""
        limit = ConcurrencyLimitingClient.new_per_host_decorator(
            lambda key: 1, max_pending=0
        )
        fleet = Fleet(a=after(2.2, 200), b=after(9.0, 200), c=after(9.0, 200))
        group = group_of("abc")
        budget = RetryBudget(brake_after=1, deposit=0.0)
        config = RetryConfig(LATER, limiter=budget)
        async with fleet.session(
            group, limit, RetryingClient.new_decorator(config)
        ) as client:
            others = [asyncio.create_task(call(client)) for _ in range(3)]
            await asyncio.sleep(1.0)
            status, log = await call(client)
            await asyncio.gather(*others)

        elsewhere, later = (0.0, "next_endpoint"), (0.5, "backoff")
        assert 200 == status
        assert [elsewhere, elsewhere, later, later, later] == delays(log)[:5]
        assert {*"abc"} == {*fleet.asked}
        assert 0 == budget.failures_in_a_row

    async def test_strategy_that_retries_nothing_is_obeyed(self):
        """A full limit is no open circuit, after which its server is gone."""
        limit = ConcurrencyLimitingClient.new_per_host_decorator(
            lambda key: 1, max_pending=0
        )
        fleet = Fleet(a=after(9.0, 200))
        group = group_of("ab")
        async with fleet.session(
            group, limit, retrying(RetryStrategy.never())
        ) as client:
            first = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            error, log = await call(client)
            await first

        assert ConcurrencyLimitError is type(error)
        assert error.is_of_endpoint
        assert ([], RetryStopReason.REFUSED) == (delays(log), log.stop_reason)

    async def test_rate_of_the_service_is_waited_for(self):
        """Quotas are the account's, whichever of its servers is asked."""
        limit = RateLimitingClient.new_per_host_decorator(
            lambda key: RateLimit(1, per=2.0), timeout=0.0
        )
        fleet = Fleet()
        group = group_of("ab")
        async with fleet.session(group, limit, retrying(LATER)) as client:
            await call(client)
            status, log = await call(client)

        assert 200 == status
        assert "next_endpoint" not in {source for _, source in delays(log)}


class TestCertificates:
    """Case 25: servers that cannot prove who they are."""

    async def test_is_tried_elsewhere_and_put_out(self):
        """The strategies say no, as to any permanent failure; nothing was sent."""
        group = group_of("ab")
        status, log, asked = await logged(
            Fleet(a=certificate()), group, retrying(LATER), method="POST"
        )

        assert (200, "ab", [(0.0, "next_endpoint")]) == (status, asked, delays(log))
        assert {"a": "connect_failures"} == out(group)

    async def test_twice_a_call(self):
        """As other switches."""
        fleet = Fleet(**dict.fromkeys("abcd", certificate()))
        error, log, asked = await logged(fleet, group_of("abcd"), retrying(LATER))

        assert (aiohttp.ClientConnectorCertificateError, "abc") == (type(error), asked)
        assert "no_retry" == log.stop_reason

    async def test_fingerprint_that_differs(self):
        """It is the same."""
        failure = aiohttp.ServerFingerprintMismatch(b"a", b"b", "a.example", 443)
        status, _, asked = await logged(
            Fleet(a=failure), group_of("ab"), retrying(LATER)
        )

        assert (200, "ab") == (status, asked)


class TestUnsent:
    """Which failures reached no server."""

    def test_kinds(self):
        """Not those that something shared has refused."""
        circuit = FailFastError(CircuitBreaker("a"))
        circuit.is_of_endpoint = True
        queued = refused()
        judge(queued).queue = "limit"

        assert [True, True, True, False, False, False, False] == [
            is_unsent(each)
            for each in (
                refused(),
                certificate(),
                circuit,
                queued,
                FailFastError(CircuitBreaker("all")),
                UnprocessedRequestError("ours"),
                TimeoutError(),
            )
        ]


RESTING = (503, {"Retry-After": "7"}, b"")


class TestSmithy:
    """Case 75: strategies of Smithy's."""

    @staticmethod
    def standard(**settings):
        return RetryingClient.new_decorator(smithy.StandardRetryStrategy(**settings))

    async def test_refused_connection_goes_elsewhere_at_once(self):
        """As with ours."""
        status, log, asked = await logged(
            Fleet(a=refused(), b=refused()),
            group_of("abc"),
            self.standard(max_attempts=3),
        )

        assert (200, "abc", 0.0) == (status, asked, now())
        assert ["next_endpoint"] * 2 == [source for _, source in delays(log)]

    async def test_error_of_a_503_has_no_retry_after(self):
        """While an untried one is well: the strategy would stop, or wait, for it."""
        group = group_of("ab")
        status, log, asked = await logged(Fleet(a=RESTING), group, self.standard())
        ((delay, source),) = delays(log)

        assert (200, "ab", "backoff") == (status, asked, source)
        assert delay <= 1.0
        assert {"a": "retry_after"} == out(group)

    async def test_certificate_does_not_use_up_the_token(self):
        """The strategy is not asked, since it would say no: another may fail too."""
        fleet = Fleet(**dict.fromkeys("abc", certificate()))
        error, log, asked = await logged(fleet, group_of("abc"), self.standard())

        assert (aiohttp.ClientConnectorCertificateError, "abc") == (type(error), asked)
        assert "no_retry" == log.stop_reason

    async def test_success_after_a_certificate_is_recorded(self, caplog):
        """With the token that the strategy has given."""
        await logged(Fleet(a=certificate()), group_of("ab"), self.standard())

        assert [] == caplog.messages

    async def test_scope_of_tokens_is_the_service(self):
        """Case 75: one quota for all endpoints."""
        scopes = []

        class Scoped(smithy.StandardRetryStrategy):
            async def acquire_initial_retry_token(self, *, token_scope=None):
                scopes.append(token_scope)
                return await super().acquire_initial_retry_token(
                    token_scope=token_scope
                )

        group = group_of("ab", name="orders", selection=ROUND_ROBIN)
        decorator = RetryingClient.new_decorator(Scoped())
        async with Fleet().session(group, decorator) as client:
            for _ in range(3):
                await call(client)

        assert {"orders"} == set(scopes)
