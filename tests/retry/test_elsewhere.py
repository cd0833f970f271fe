"""Attempts that go to another of several servers.

Of the cases of endpoints.md (f): 59 to 75, 103; the ruling of case 25.
"""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    call,
    group_of,
    name_of,
    out,
    state_of,
)
from calls import begin, call_and_scope
from chains import NOW, SAFELY, Always, after, now, refused, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    ConcurrencyLimitingClient,
    FailFastError,
    OutlierDetection,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryBudgetListener,
    RetryConfig,
    RetryingClient,
    RetryRule,
    RetryStrategy,
    UnprocessedRequestError,
    smithy,
)
from aioretry_smithy._call.tries import is_unsent
from aioretry_smithy._failures.safety import mark_queued
from aioretry_smithy._retry.elsewhere import overrules

LATER = RetryStrategy.failsafe(Backoff.fixed(0.5))
RESTING = (503, {"Retry-After": "7"}, b"")


def certificate() -> aiohttp.ClientConnectorCertificateError:
    """Make the error of a server with a wrong certificate."""
    key = refused().args[0]
    return aiohttp.ClientConnectorCertificateError(
        key, ssl.SSLCertVerificationError(1, "Hostname mismatch")
    )


async def logged(fleet, group, *decorators, **options):
    """Make one call, and return its status, its log and who was asked."""
    settings = {name: options.pop(name) for name in ("timeout",) if name in options}
    async with fleet.session(group, *decorators, **settings) as client:
        status, log = await call(client, **options)
    return status, log, fleet.text


def delays(log):
    """Return the wait after each attempt but the last, and its source."""
    return [(each.delay, each.delay_source) for each in log.children[:-1]]


class TestOrder:
    """Where attempts go."""

    async def test_second_goes_elsewhere(self):
        """Case 59: whatever the strategy of selection likes."""
        _, log, asked = await logged(Fleet(a=503), group_of("ab"), retrying(0.5))

        assert ("ab", "b.example") == (asked, log.endpoint)

    async def test_three_go_to_three(self):
        """Case 60: not back to the first one."""
        status, _, asked = await logged(
            Fleet(a=503, b=503), group_of("abc"), retrying(0.5)
        )

        assert (200, "abc") == (status, asked)

    async def test_fourth_begins_the_round_anew(self):
        """Case 61: with those tried least."""
        fleet = Fleet(a=[503, 503, 200], b=503, c=503)
        group = group_of("abc", outlier_detection=None)
        status, _, asked = await logged(fleet, group, retrying(0.5))

        assert (200, "abcabca") == (status, asked)

    async def test_one_endpoint_gets_all(self):
        """Case 62: with the waits of the strategy."""
        _, log, asked = await logged(
            Fleet(a=[503, 503, 200]), group_of("a"), retrying(0.5)
        )

        assert "aaa" == asked
        assert [(0.5, "backoff")] * 2 == delays(log)

    async def test_untried_one_that_is_out_is_none(self):
        """Case 59: the tried one is asked again while no other is well."""
        fleet = Fleet(a=[503, 200, 503, 200], b=refused())
        group = group_of("ba")
        async with fleet.session(group, retrying(0.5)) as client:
            await call(client)
            assert {"b": "connect_failures"} == out(group)
            fleet.asked.clear()
            status, log = await call(client)

        assert (200, "aa", 2) == (status, fleet.text, log.total_attempts)

    async def test_round_robin_excludes_too(self):
        """Case 60: for each start."""
        for _ in range(10):
            fleet = Fleet(**dict.fromkeys("abc", 503))
            group = group_of("abc", selection=ROUND_ROBIN)
            _, _, asked = await logged(
                fleet, group, retrying(0.5, max_total_attempts=3)
            )

            assert "abc" == "".join(sorted(asked))

    async def test_503_waits_for_the_backoff(self):
        """Case 65: elsewhere, but not at once."""
        _, log, asked = await logged(Fleet(a=503), group_of("ab"), retrying(0.5))

        assert ("ab", [(0.5, "backoff")]) == (asked, delays(log))


class TestAtOnce:
    """No wait after what did not reach a server."""

    async def test_refused_connection(self):
        """Case 63: with a source of its own, and words."""
        _, log, asked = await logged(
            Fleet(a=refused()), group_of("ab"), retrying(LATER)
        )

        assert ("ab", [(0.0, "next_endpoint")]) == (asked, delays(log))
        assert 0.0 == log.duration
        assert "then at once to the next endpoint" in log.render()

    async def test_not_to_the_same_one(self):
        """Case 62: one endpoint is waited for."""
        _, log, _ = await logged(
            Fleet(a=[refused(), 200]), group_of("a"), retrying(LATER)
        )

        assert [(0.5, "backoff")] == delays(log)

    async def test_once_for_each_other_one(self):
        """Case 64: of three, two; then the round begins anew after a wait."""
        fleet = Fleet(**dict.fromkeys("abc", refused()))
        group = group_of("abc", outlier_detection=None)
        _, log, asked = await logged(
            fleet, group, retrying(LATER, max_total_attempts=5)
        )

        assert "abcab" == asked
        assert [
            (0.0, "next_endpoint"),
            (0.0, "next_endpoint"),
            (0.5, "backoff"),
            (0.5, "backoff"),
        ] == delays(log)

    async def test_twice_a_call(self):
        """Case 64: retries are not used up in no time where all refuse."""
        names = "abcdefghij"
        fleet = Fleet(**dict.fromkeys(names, refused()))
        _, log, asked = await logged(
            fleet, group_of(names), retrying(LATER, max_total_attempts=10)
        )

        assert names == asked
        assert ["next_endpoint"] * 2 + ["backoff"] * 7 == [
            source for _, source in delays(log)
        ]

    async def test_backoff_is_asked_and_counts(self):
        """Only its delay is dropped."""
        strategy = RetryStrategy.failsafe(Backoff.exponential(1.0, 100.0))
        fleet = Fleet(a=refused(), b=refused(), c=503)
        _, log, _ = await logged(fleet, group_of("abcd"), retrying(strategy))

        assert [0.0, 0.0, 4.0] == [delay for delay, _ in delays(log)]

    async def test_backoff_that_is_exhausted_ends_it(self):
        """Likewise."""
        strategy = RetryStrategy.failsafe(Backoff.fixed(1.0).with_max_attempts(2))
        fleet = Fleet(a=refused(), b=refused())
        error, log, asked = await logged(fleet, group_of("abc"), retrying(strategy))

        assert ("ab", "backoff_exhausted") == (asked, log.stop_reason)
        assert isinstance(error, aiohttp.ClientConnectorError)

    @pytest.mark.parametrize(
        "failure", [aiohttp.ServerDisconnectedError(), 503, TimeoutError()]
    )
    async def test_not_where_the_server_may_have_seen_it(self, failure):
        """Case 65: it is waited, then elsewhere."""
        _, log, asked = await logged(Fleet(a=failure), group_of("ab"), retrying(LATER))

        assert ("ab", [(0.5, "backoff")]) == (asked, delays(log))

    async def test_not_where_the_strategy_wants_no_retry(self):
        """It is asked first."""
        error, log, asked = await logged(
            Fleet(a=refused()), group_of("ab"), retrying(RetryStrategy.never())
        )

        assert ("a", "no_retry") == (asked, log.stop_reason)
        assert isinstance(error, aiohttp.ClientConnectorError)

    async def test_switch_counts_when_its_wait_begins(self):
        """A limiter lets a decision be planned twice."""
        fleet = Fleet(**dict.fromkeys("abc", refused()))
        budget = RetryBudget(brake_after=None)
        _, log, _ = await logged(
            fleet,
            group_of("abcd"),
            retrying(LATER, limiter=budget, max_total_attempts=4),
        )

        assert ["next_endpoint", "next_endpoint", "backoff"] == [
            source for _, source in delays(log)
        ]


class TestMethods:
    """What may be sent again is unchanged."""

    async def test_post_after_a_reset_is_not(self):
        """Case 68: another endpoint does not make it safe."""
        fleet = Fleet(a=aiohttp.ServerDisconnectedError())
        _, log, asked = await logged(
            fleet, group_of("ab"), retrying(LATER), method="POST"
        )

        assert ("a", "no_retry") == (asked, log.stop_reason)

    async def test_post_after_a_refused_connection_is(self):
        """Case 69: nothing was sent."""
        status, _, asked = await logged(
            Fleet(a=refused()), group_of("ab"), retrying(LATER), method="POST"
        )

        assert (200, "ab") == (status, asked)

    async def test_spent_body_stops(self):
        """Case 74: elsewhere too."""

        async def body():
            yield b"body"

        async def read(ctx, request):
            async for _ in request.arguments["data"]:
                pass
            return 503

        _, log, asked = await logged(
            Fleet(a=read), group_of("ab"), retrying(0.5), method="PUT", data=body()
        )

        assert ("a", "body_not_replayable") == (asked, log.stop_reason)


class TestHints:
    """What servers ask for."""

    async def test_503_sets_its_endpoint_aside(self):
        """Case 66: the next one after the backoff, which the hint does not delay."""
        group = group_of("ab")
        status, log, asked = await logged(Fleet(a=RESTING), group, retrying(0.5))

        assert (200, "ab", [(0.5, "backoff")]) == (status, asked, delays(log))
        assert {"a": "retry_after"} == out(group)

    async def test_503_of_the_only_one_is_waited_for(self):
        """Case 66: nobody else could answer."""
        _, log, asked = await logged(
            Fleet(a=[RESTING, 200]), group_of("a"), retrying(0.5)
        )

        assert ("aa", [(7.0, "retry_after")]) == (asked, delays(log))

    async def test_503_that_asks_for_too_long_stops_no_call(self):
        """Case 66: while another one is well."""
        fleet = Fleet(a=(503, {"Retry-After": "3600"}, b""))
        status, _, _ = await logged(fleet, group_of("ab"), retrying(0.5))
        only, log, _ = await logged(
            Fleet(a=(503, {"Retry-After": "3600"}, b"")), group_of("a"), retrying(0.5)
        )

        assert (200, 503, "retry_after_too_long") == (status, only, log.stop_reason)

    async def test_429_is_the_services(self):
        """Case 67: the hint is waited for, wherever the next one goes."""
        fleet = Fleet(a=(429, {"Retry-After": "7"}, b""))
        group = group_of("ab")
        strategy = RetryRule(statuses={429}, backoff=Backoff.fixed(0.5))
        status, log, asked = await logged(fleet, group, retrying(strategy))

        assert (200, "ab", [(7.0, "retry_after")]) == (status, asked, delays(log))
        assert {} == out(group)

    async def test_last_503_that_rests_is_waited_for(self):
        """Case 66: none is untried, so the hint of the last one counts."""
        fleet = Fleet(a=[RESTING, 200], b=[(503, {"Retry-After": "3"}, b""), 200])
        _, log, asked = await logged(fleet, group_of("ab"), retrying(0.5))

        assert [(0.5, "backoff"), (3.0, "retry_after")] == delays(log)
        assert "ab" == asked[:2]


class TestLimits:
    """What ends retries ends these too."""

    async def test_budget_pays_one_token_a_switch(self):
        """Case 70: as for any retry."""
        spent = []

        class Counting(RetryBudgetListener):
            def on_tokens_changed(self, budget):
                spent.append(budget.tokens)

        budget = RetryBudget(listeners=[Counting()])
        full = budget.tokens
        fleet = Fleet(a=refused(), b=refused())
        await logged(fleet, group_of("abc"), retrying(LATER, limiter=budget))

        assert [full - 1, full - 2] == spent[:2]

    async def test_total_attempts(self):
        """Case 73: all count."""
        fleet = Fleet(**dict.fromkeys("abcd", refused()))
        _, log, asked = await logged(
            fleet, group_of("abcd"), retrying(LATER, max_total_attempts=2)
        )

        assert ("ab", "max_total_attempts") == (asked, log.stop_reason)

    async def test_deadline_shorter_than_the_wait(self):
        """Case 72: it stops as ever; a switch takes no time."""
        slow = await logged(Fleet(a=503), group_of("ab"), retrying(5.0), timeout=2.0)
        quick = await logged(
            Fleet(a=refused()),
            group_of("ab"),
            retrying(RetryStrategy.failsafe(Backoff.fixed(5.0))),
            timeout=2.0,
        )

        assert (503, "deadline", 0.0) == (slow[0], slow[1].stop_reason, now())
        assert (200, "ab") == (quick[0], quick[2])

    async def test_deadline_that_has_passed(self):
        """Case 72: there is no switch any more."""
        fleet = Fleet(a=after(2.0, refused()))
        error, log, asked = await logged(
            fleet, group_of("ab"), retrying(LATER), timeout=2.0
        )

        assert ("a", "deadline") == (asked, log.stop_reason)
        assert isinstance(error, TimeoutError)


class TestKeys:
    """What is kept per service, and what per endpoint."""

    async def test_budget_is_the_services(self):
        """Case 71: one per endpoint would multiply the retries."""
        names = []

        class Named(RetryBudgetListener):
            def on_tokens_changed(self, budget):
                names.append(budget.name)

        fleet = Fleet(a=refused(), b=refused())
        budgets = RetryBudget.per_host(listeners=[Named()])
        group = group_of("abc", name="orders")
        await logged(fleet, group, retrying(LATER, limiter=budgets))

        assert {"orders"} == set(names)

    async def test_rate_is_the_services(self):
        """Case 102: quotas are per account."""
        keys = []

        def rate(key):
            keys.append(key)
            return RateLimit(100, per=1.0)

        decorator = RateLimitingClient.new_per_host_decorator(rate)
        group = group_of("abc", selection=ROUND_ROBIN, name="orders")
        async with Fleet().session(group, decorator, retrying(0.5)) as client:
            for _ in range(6):
                await call(client)

        assert ["orders"] == keys

    async def test_concurrency_is_the_endpoints(self):
        """Case 101: a slow one does not take the places of the others."""
        keys = []

        def limit(key):
            keys.append(key)
            return 1

        decorator = ConcurrencyLimitingClient.new_per_host_decorator(limit)
        fleet = Fleet(a=after(1.0, 200), b=after(1.0, 200))
        group = group_of("ab", selection=ROUND_ROBIN)
        async with fleet.session(group, decorator, retrying(0.5)) as client:
            await asyncio.gather(*(call(client) for _ in range(4)))

        assert ["a.example:80", "b.example:80"] == sorted(keys)
        assert 2.0 == now()

    async def test_keys_outside_are_the_groups_name(self):
        """No endpoint is chosen there yet."""
        keys = []

        def breaker(key):
            keys.append(key)
            return CircuitBreaker(key)

        decorator = CircuitBreakerClient.new_per_host_decorator(breaker)
        group = group_of("ab", name="orders")
        await logged(Fleet(), group, retrying(0.5), decorator)

        assert ["orders"] == keys


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


class Breakers:
    """A circuit breaker per host, the first failure of which opens it."""

    def __init__(self, *opened, window=20.0):
        self.window = window
        self.opened = opened
        self.keys = []
        self.decorator = CircuitBreakerClient.new_per_host_decorator(self.make)

    def make(self, key):
        self.keys.append(key)
        breaker = CircuitBreaker(
            key, minimum_request_threshold=1, circuit_open_window=self.window
        )
        if key[0] in self.opened:
            breaker.enter_state(CircuitState.OPEN)
        return breaker


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

    async def test_total_attempts_count_them(self):
        """They are attempts."""
        error, log, _ = await logged(
            Fleet(),
            group_of("abcd"),
            Breakers(*"abc").decorator,
            retrying(LATER, max_total_attempts=2),
        )

        assert (FailFastError, 2, "refused") == (
            type(error),
            log.total_attempts,
            log.stop_reason,
        )

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

    @pytest.mark.parametrize("detection", [OutlierDetection(), None])
    async def test_calls_after_it_ask_the_others(self, detection):
        """Until the circuit may be tried."""
        fleet = Fleet(a=503)
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group, Breakers().decorator, retrying(0.5)) as client:
            for _ in range(5):
                assert 200 == (await call(client))[0]

        assert "abbbbb" == fleet.text


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

    async def test_of_the_only_one_is_permanent(self):
        """There is nothing else."""
        _error, log, asked = await logged(
            Fleet(a=certificate()), group_of("a"), retrying(LATER)
        )

        assert ("a", "no_retry") == (asked, log.stop_reason)

    async def test_fingerprint_that_differs(self):
        """It is the same."""
        failure = aiohttp.ServerFingerprintMismatch(b"a", b"b", "a.example", 443)
        status, _, asked = await logged(
            Fleet(a=failure), group_of("ab"), retrying(LATER)
        )

        assert (200, "ab") == (status, asked)


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

    async def test_error_of_the_only_503_has_one(self):
        """Then the server is waited for."""
        _, log, _ = await logged(
            Fleet(a=[RESTING, 200]), group_of("a"), self.standard()
        )

        assert [(7.0, "retry_after")] == delays(log)

    async def test_429_is_the_services(self):
        """Case 67: its hint counts."""
        fleet = Fleet(a=[(429, {"Retry-After": "7"}, b"")])
        _, log, _ = await logged(fleet, group_of("ab"), self.standard())

        ((delay, source),) = delays(log)
        assert (delay >= 7.0, "retry_after") == (True, source)

    async def test_circuit_that_is_open_goes_elsewhere(self):
        """Case 103: whatever the strategy says."""
        _status, _log, asked = await logged(
            Fleet(), group_of("abcde"), Breakers(*"abcd").decorator, self.standard()
        )

        assert ("e", 0.0) == (asked, now())

    async def test_certificate_is_tried_elsewhere(self):
        """Case 25: likewise."""
        status, _, asked = await logged(
            Fleet(a=certificate()), group_of("ab"), self.standard()
        )

        assert (200, "ab") == (status, asked)

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


class TestUnsent:
    """Which failures reached no server."""

    def test_kinds(self):
        """Not those that something shared has refused."""
        circuit = FailFastError(CircuitBreaker("a"))
        circuit.is_of_endpoint = True
        queued = refused()
        mark_queued(queued)

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

    async def test_success_overrules_nothing(self):
        """There is no failure, or no choice."""
        record, _ = call_and_scope(begin())

        assert not overrules(record, record, None)
        assert not overrules(record, record, refused())


async def test_always_is_no_reason_to_stay():
    """A strategy that wants another attempt whatever happens goes elsewhere too."""
    _, _log, asked = await logged(
        Fleet(a=404), group_of("ab"), retrying(Always(NOW), max_total_attempts=2)
    )

    assert "ab" == asked


async def test_verdicts_of_outlier_detection_do_not_matter():
    """Elsewhere is where the call has not been."""

    class Blind(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            return None

    group = group_of("ab", outlier_detection=OutlierDetection(strategy=Blind()))
    status, _log, asked = await logged(Fleet(a=refused()), group, retrying(SAFELY))

    assert (200, "ab", {}) == (status, asked, out(group))
    assert "b" == name_of(group.endpoints[1])
