"""Rules with content: what a circuit breaker counts by what a body says."""

import asyncio
import dataclasses
import warnings

import aiohttp
import pytest
from calls import ended
from chains import Scripted, bad_argument, now, response_of, retrying, session
from circuits import busy, guarded, is_busy, noting, silent

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    EventCount,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    rpc,
)

BUSY, FINE = (200, {}, b"busy and more"), (200, {}, b"fine and more")


class Own(CircuitBreakerStrategy):
    """A strategy of one's own, which takes its time."""

    def __init__(self, verdict):
        self.verdict = verdict

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return self.verdict


@pytest.fixture
def breaker():
    """A circuit breaker that counts, and never opens by itself."""
    return CircuitBreaker("orders", failure_rate_threshold=1)


class TestRule:
    """What a rule says of an outcome."""

    @pytest.mark.parametrize(
        ("make", "expected"),
        [
            (CircuitBreakerRuleWithContent, False),
            (CircuitBreakerRuleWithContent.failure, False),
            (CircuitBreakerRuleWithContent.success, True),
            (CircuitBreakerRuleWithContent.ignore, None),
        ],
    )
    async def test_the_body_decides(self, make, expected):
        """What it does not apply to is judged as by default."""
        rule = make(on_content=is_busy)
        ask = rule.should_report_as_success

        assert expected is ask(ended(200), None, b"busy")
        assert True is ask(ended(200), None, b"fine")
        assert False is ask(ended(500), None, b"fine")

    async def test_other_conditions_are_those_of_a_plain_rule(self):
        """One of them has to be met, and the filters fit."""
        rule = busy(statuses=[429], methods=["GET"], request_filter=lambda _: True)
        ask = rule.should_report_as_success

        assert False is ask(ended(429), None, None)
        assert True is ask(ended(429, method="POST"), None, b"busy")

    async def test_on_content_hears_of_failures_that_are_not_permanent(self):
        """With None, for there is no body."""
        seen = []
        rule = noting(seen)
        for cause in TimeoutError(), aiohttp.InvalidURL("x"):
            rule.should_report_as_success(ended(cause=cause), cause, None)

        assert [None] == seen

    @pytest.mark.parametrize("name", ["failure", "success", "ignore"])
    def test_it_is_shown_as_it_was_made(self, name):
        """With what is not as by default."""
        make = getattr(CircuitBreakerRuleWithContent, name)
        rule = make(on_content=is_busy, max_content_length=9, statuses=[503])

        assert (
            f"CircuitBreakerRuleWithContent.{name}(statuses=[503],"
            f" on_content={is_busy!r}, max_content_length=9)"
        ) == repr(rule)

    def test_rules_are_values(self):
        """Equal ones are equal, and none can be changed."""
        assert busy() == busy()
        with pytest.raises(dataclasses.FrozenInstanceError):
            busy().max_content_length = 7

    async def test_a_failure_needs_a_condition(self):
        """A rule for everything is a mistake, unless it is written out."""
        expected = (
            "at least one of statuses, status_classes, exceptions, on_timeout,"
            " on_unprocessed, slower_than, on_response, on_content"
        )
        with bad_argument("conditions", None, expected):
            CircuitBreakerRuleWithContent(methods=["GET"])

        everything = CircuitBreakerRuleWithContent.ignore()
        assert None is everything.should_report_as_success(ended(200), None, b"")
        everything = CircuitBreakerRuleWithContent.success()
        assert True is everything.should_report_as_success(ended(500), None, b"")

    async def test_an_answer_to_be_awaited_is_refused(self):
        """By the name of the function that gave it."""

        async def later():
            return True

        rule = CircuitBreakerRuleWithContent(on_content=lambda content: later())
        with pytest.raises(ValueError, match=r"on_content: .*without awaiting it"):
            rule.should_report_as_success(ended(200), None, b"")


class TestChain:
    """Rules of both kinds in a row."""

    @pytest.mark.parametrize(
        ("rules", "expected"),
        [
            (CircuitBreakerRule.ignore(statuses=[200]) | busy(), EventCount(0, 0)),
            (busy() | CircuitBreakerRule.ignore(statuses=[200]), EventCount(0, 1)),
            (
                CircuitBreakerRule.ignore(statuses=[404])
                | CircuitBreakerRule.ignore(statuses=[405])
                | busy(),
                EventCount(0, 1),
            ),
            (
                CircuitBreakerRuleWithContent.success(on_content=is_busy) | busy(),
                EventCount(1, 0),
            ),
            (
                busy(methods=["PUT"]) | busy(methods=["POST"]) | Own(None),
                EventCount(0, 0),
            ),
            (busy(methods=["PUT"]) | Own(False), EventCount(0, 1)),
            (
                busy(methods=["PUT"]) | CircuitBreakerRule(statuses=[500]),
                EventCount(1, 0),
            ),
        ],
    )
    async def test_the_first_that_applies_decides(self, breaker, rules, expected):
        """The last one may be a strategy, and else it is the default one."""
        async with Scripted([BUSY], guarded(breaker, rules)) as scripted:
            assert 200 == await scripted.get()

        assert expected == breaker.event_count

    async def test_a_body_is_read_only_for_a_member_that_is_asked(self, breaker):
        """A stream that another rule leaves out comes at once."""
        rules = CircuitBreakerRule.ignore(request_filter=lambda _: True) | busy()
        async with Scripted([silent], guarded(breaker, rules)) as scripted:
            assert 200 == await scripted.get()

        assert 0.0 == now()

    @pytest.mark.parametrize(
        "conditions", [{"statuses": [200]}, {"methods": ["POST"]}, {}]
    )
    async def test_a_body_is_read_only_where_it_may_decide(self, breaker, conditions):
        """Not where the status has, or the method does not fit."""
        rule = CircuitBreakerRuleWithContent(
            **{"on_content": is_busy, "statuses": [503], **conditions}
            if conditions
            else {"statuses": [503]}
        )
        async with Scripted([silent], guarded(breaker, rule)) as scripted:
            assert 200 == await scripted.get()

        assert 0.0 == now()

    async def test_each_sees_as_much_as_it_wants(self, breaker):
        """And the caller all of it."""
        seen = []
        rules = noting(seen, max_content_length=2) | noting(seen, max_content_length=6)
        response = await response_of(session([FINE], guarded(breaker, rules)))

        assert "fine and more" == await response.text()

        assert [b"fi", b"fine a"] == seen

    def test_what_is_never_asked_is_warned_of(self):
        """At the line with the bar."""
        with pytest.warns(RuntimeWarning, match="is never reached") as caught:
            CircuitBreakerRuleWithContent.success() | busy()
        with pytest.warns(RuntimeWarning, match="is never reached") as also:
            CircuitBreakerRule.success() | busy()

        assert [__file__, __file__] == [caught[0].filename, also[0].filename]

    @pytest.mark.parametrize("other", [RetryRule(statuses=[500]), None, is_busy])
    def test_only_what_judges_for_a_circuit_breaker_can_follow(self, other):
        """Nor may anything else, or a strategy that is no rule, be in front."""
        with pytest.raises(TypeError):
            busy() | other
        with pytest.raises(TypeError):
            other | busy()
        with pytest.raises(TypeError):
            Own(True) | busy()

    def test_it_is_shown_with_bars(self):
        """In order, without brackets."""
        plain = CircuitBreakerRule.ignore(statuses=[404])
        one = busy(max_content_length=1)
        with warnings.catch_warnings():
            chain = (plain | one) | (one | plain)

        assert f"{plain!r} | {one!r} | {one!r} | {plain!r}" == repr(chain)
        assert (
            repr(chain)
            in CircuitBreakerClient.new_per_host_decorator(strategy=chain)(
                Scripted([]).transport
            ).describe()
        )


class TestFunctions:
    """Content is what a function returns."""

    def call(self, breaker, rules, *others):
        """Return a function that returns what it is given, or raises it."""

        @rpc(CircuitBreakerRpcClient.new_decorator(breaker, rules), *others)
        async def call(outcome):
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return call

    async def test_what_is_returned_decides(self, breaker):
        """None is a result too, and one that failed has none."""
        seen = []
        rule = CircuitBreakerRuleWithContent(
            on_content=lambda content: seen.append(content) or content == {"error": 1}
        )
        call = self.call(breaker, rule)
        assert {"error": 1} == await call({"error": 1})
        assert None is await call(None)
        with pytest.raises(ConnectionResetError):
            await call(ConnectionResetError())

        assert [{"error": 1}, None, None] == seen
        assert EventCount(success=1, failure=2) == breaker.event_count

    async def test_each_attempt_is_judged(self, breaker):
        """Inside of retries, as in a session."""
        outcomes = iter([1, 2])
        rule = CircuitBreakerRuleWithContent(on_content=lambda content: content == 1)
        again = RetryRuleWithContent(on_content=lambda content: content == 1)

        @rpc(
            CircuitBreakerRpcClient.new_decorator(breaker, rule),
            RetryingRpcClient.new_decorator(again),
        )
        async def call():
            return next(outcomes)

        assert 2 == await call()
        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_a_cancelled_call_is_not_counted(self, breaker):
        """Whatever it would have returned."""
        call = self.call(breaker, CircuitBreakerRuleWithContent(on_content=is_busy))
        with pytest.raises(asyncio.CancelledError):
            await call(asyncio.CancelledError())

        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_chains_of_rules_are_taken(self, breaker):
        """Plain ones in front, a strategy at the end."""
        rules = (
            CircuitBreakerRule.ignore(exceptions=KeyError)
            | CircuitBreakerRuleWithContent(on_content=lambda content: content == 1)
            | Own(None)
        )
        call = self.call(breaker, rules)
        await call(1)
        await call(2)
        with pytest.raises(KeyError):
            await call(KeyError())

        assert EventCount(success=0, failure=1) == breaker.event_count


async def test_strategies_without_content_are_asked_as_before(breaker):
    """The fast way stays; nobody reads a body."""
    strategy = RetryStrategy.never()
    decorators = guarded(breaker, None), retrying(strategy)
    response = await response_of(session([silent], *decorators))

    assert 200 == response.status
    assert 0.0 == now()
