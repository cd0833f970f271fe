"""Rules with content: what a circuit breaker counts by what a body says."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import warnings
import weakref

import aiohttp
import pytest
from calls import ended
from chains import (
    URL,
    Scripted,
    bad_argument,
    now,
    response_of,
    retrying,
    session,
)
from fake_responses import unending

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    HedgingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    client_decorator,
    new_response,
    rpc,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState
BUSY, FINE = (200, {}, b"busy and more"), (200, {}, b"fine and more")


def is_busy(content):
    return content is not None and content.startswith(b"busy")


def busy(**conditions):
    """Return a rule by which a body that says so is a failure."""
    return CircuitBreakerRuleWithContent(on_content=is_busy, **conditions)


def noting(seen, **conditions):
    """Return the same rule, which keeps what it is shown."""
    return CircuitBreakerRuleWithContent(
        on_content=lambda content: seen.append(content) or is_busy(content),
        **conditions,
    )


class Own(CircuitBreakerStrategy):
    """A strategy of one's own, which takes its time."""

    def __init__(self, verdict):
        self.verdict = verdict

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return self.verdict


@client_decorator
async def foreign(delegate, ctx, request):
    """Stand in a chain, so that its rows are two."""
    return await delegate.execute(ctx, request)


def guarded(breaker, rules, **settings):
    return CircuitBreakerClient.new_decorator(breaker, rules, **settings)


@pytest.fixture
def breaker():
    """A circuit breaker that counts, and never opens by itself."""
    return CircuitBreaker("orders", failure_rate_threshold=1)


def silent(ctx, request):
    """Answer with a body that begins and never ends."""
    return unending(request, start=b"bu")


def breaking(ctx, request):
    """Answer with a body that breaks off."""
    response = unending(request, start=b"bu")
    response.content.set_exception(aiohttp.ClientPayloadError("broke off"))
    return response


chains = pytest.mark.parametrize(
    ("inside", "outside"), [((), ()), ((foreign,), ()), ((), (foreign,))]
)
"""What stands further in and further out than the circuit breaker."""


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

    def test_it_is_no_plain_strategy(self):
        """It is asked with one argument more."""
        assert not isinstance(busy(), CircuitBreakerStrategy)

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

    @pytest.mark.parametrize("length", [0, -1, 1.5, True, None, "9"])
    def test_it_looks_at_one_byte_at_least(self, length):
        """An integer, as for retry rules."""
        with bad_argument("max_content_length", length, "an integer >= 1"):
            busy(max_content_length=length)

    @pytest.mark.parametrize("function", [b"busy", Own(True).should_report_as_success])
    def test_on_content_is_a_plain_function(self, function):
        """It is asked between the answer and the caller, who waits."""
        expected = "a plain function of bytes or None, or None"
        with bad_argument("on_content", function, expected):
            CircuitBreakerRuleWithContent(on_content=function)

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
        with pytest.warns(RuntimeWarning, match="is never asked") as caught:
            CircuitBreakerRuleWithContent.success() | busy()
        with pytest.warns(RuntimeWarning, match="is never asked") as also:
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


class TestErrorInside:
    """Bodies that are looked at while they are whole."""

    @chains
    async def test_an_error_inside_a_200_is_a_failure(self, breaker, inside, outside):
        """The caller gets the whole body, as if nobody had looked."""
        decorators = (*inside, guarded(breaker, busy(max_content_length=4)), *outside)
        async with session([BUSY, FINE], *decorators) as client:
            async with client.get(URL) as response:
                assert b"busy and more" == await response.read()
            async with client.get(URL) as response:
                assert b"fine and more" == b"".join(
                    [part async for part in response.content.iter_any()]
                )

        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_it_opens_the_circuit(self):
        """As an error by status does."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        async with Scripted([BUSY], guarded(breaker, busy())) as scripted:
            await scripted.get()

        assert OPEN is breaker.state

    async def test_trials_are_judged_by_it_too(self):
        """A server that answers 200 with an error inside has not recovered."""
        breaker = CircuitBreaker(circuit_open_window=Backoff.exponential(5.0, 60.0))
        breaker.enter_state(OPEN)
        async with Scripted([BUSY, FINE], guarded(breaker, busy())) as scripted:
            await asyncio.sleep(5.0)
            await scripted.get()
            assert (OPEN, 10.0) == (breaker.state, breaker.retry_in)
            await asyncio.sleep(10.0)
            await scripted.get()

        assert CLOSED is breaker.state

    async def test_it_hears_of_failures_as_ever(self, breaker):
        """Without content, and of statuses with it."""
        seen = []
        answers = [TimeoutError(), (503, {}, b"down"), aiohttp.InvalidURL("x")]
        async with Scripted(answers, guarded(breaker, noting(seen))) as scripted:
            with pytest.raises(TimeoutError):
                await scripted.get()
            assert 503 == await scripted.get()
            await scripted.get()

        assert [None, b"down"] == seen
        assert EventCount(success=0, failure=2) == breaker.event_count

    async def test_retries_look_at_the_same_body(self, breaker):
        """What the circuit breaker has read is there for the strategy."""
        seen = []
        rule = RetryRuleWithContent(
            on_content=lambda content: seen.append(content) or is_busy(content),
            backoff=Backoff.fixed(0.5),
        )
        decorators = guarded(breaker, busy()), retrying(rule)
        response = await response_of(session([BUSY, FINE], *decorators))

        assert b"fine and more" == await response.read()
        assert [BUSY[2], FINE[2]] == seen
        assert EventCount(success=1, failure=1) == breaker.event_count

    @pytest.mark.parametrize("refused", [(), (FORCED_OPEN,)])
    async def test_a_fallback_answers_as_ever(self, breaker, refused):
        """Only in place of what is refused."""
        for state in refused:
            breaker.enter_state(state)
        decorator = guarded(
            breaker, busy(), fallback=lambda ctx, request: new_response(request, 418)
        )
        async with Scripted([BUSY], decorator) as scripted:
            assert (418 if refused else 200) == await scripted.get()

    async def test_it_may_only_watch(self, breaker):
        """What would have been refused is not even looked at."""
        seen = []
        breaker.enter_state(FORCED_OPEN)
        decorator = guarded(breaker, noting(seen), enforce=False)
        async with Scripted([BUSY], decorator) as scripted:
            assert 200 == await scripted.get()

        assert [] == seen

    @pytest.mark.parametrize("strategy", [busy, CircuitBreakerRuleWithContent, b"", 7])
    def test_anything_else_is_refused(self, breaker, strategy):
        """A function or a class is no rule."""
        with bad_argument("strategy", strategy, "a CircuitBreakerStrategy or a rule"):
            guarded(breaker, strategy)

    async def test_a_function_that_raises_is_the_callers(self, breaker):
        """The permit comes back, and the response is closed."""
        error, closed = ArithmeticError(), []

        def answer(ctx, request):
            response = new_response(request, 200, body=b"busy")
            close = response.close
            response.close = lambda: closed.append(True) or close()
            return response

        def divide(content):
            raise error

        rule = CircuitBreakerRuleWithContent(on_content=divide)
        breaker.enter_state(HALF_OPEN)
        async with Scripted([answer], guarded(breaker, rule)) as scripted:
            with pytest.raises(ArithmeticError) as caught:
                await scripted.get()

        assert error is caught.value
        assert isinstance(RequestLog.of(error).response_cause, ArithmeticError)
        assert closed
        assert 0.0 == breaker.retry_in

    async def test_in_a_hedged_call_each_request_is_looked_at(self, breaker):
        """The circuit breaker stands inside; the answer that wins has been judged."""

        def late(ctx, request):
            return unending(request, start=b"b")

        decorators = guarded(breaker, busy()), HedgingClient.new_decorator(0.5)
        response = await response_of(session([late, FINE], *decorators))

        assert b"fine and more" == await response.read()
        assert EventCount(success=1, failure=0) == breaker.event_count


class TestBodyThatFails:
    """A body that breaks or stalls while a rule reads it is a failed attempt."""

    @chains
    async def test_it_is_counted_and_raised(self, breaker, inside, outside):
        """The log has it as the cause."""
        decorators = (*inside, guarded(breaker, busy()), *outside)
        with pytest.raises(aiohttp.ClientPayloadError, match="broke off") as caught:
            await response_of(session([breaking], *decorators))

        log = RequestLog.of(caught.value)
        assert caught.value is log.response_cause
        assert not log.is_success
        assert EventCount(success=0, failure=1) == breaker.event_count

    @chains
    async def test_it_is_retried(self, breaker, inside, outside):
        """As any failure of an attempt."""
        decorators = (*inside, guarded(breaker, busy()), *outside, retrying(0.5))
        response = await response_of(session([breaking, FINE], *decorators))

        first, last = RequestLog.of(response).children
        assert b"fine and more" == await response.read()
        assert isinstance(first.response_cause, aiohttp.ClientPayloadError)
        assert None is last.response_cause
        assert EventCount(success=1, failure=1) == breaker.event_count

    @chains
    async def test_one_that_stalls_is_cut_at_the_limit_of_its_attempt(
        self, breaker, inside, outside
    ):
        """Its error says so, and the next attempt begins."""
        limited = retrying(0.5, attempt_timeout=2.0)
        decorators = (*inside, guarded(breaker, busy()), *outside, limited)
        response = await response_of(session([silent, FINE], *decorators))

        first, _ = RequestLog.of(response).children
        assert 2.5 == now()
        assert isinstance(first.response_cause, AttemptTimeoutError)
        assert "while its body was read" in str(first.response_cause)
        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_the_deadline_of_the_call_cuts_it_too(self, breaker):
        """With the error of that."""
        decorators = guarded(breaker, busy()), retrying(0.5)
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silent], *decorators, timeout=3.0))

        assert 3.0 == now()
        assert not isinstance(caught.value, AttemptTimeoutError)
        assert EventCount(success=0, failure=1) == breaker.event_count

    async def test_outside_of_retries_it_is_the_failure_of_the_call(self, breaker):
        """There is no other attempt by then."""
        decorators = retrying(0.5), guarded(breaker, busy())
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await response_of(session([503, breaking], *decorators))

        log = RequestLog.of(caught.value)
        assert 2 == log.total_attempts
        assert caught.value is log.response_cause
        assert EventCount(success=0, failure=1) == breaker.event_count

    async def test_outside_of_retries_the_deadline_holds(self, breaker):
        """Also for a body that aiohttp has no timer for."""
        decorators = retrying(0.5), guarded(breaker, busy())
        with pytest.raises(ResponseTimeoutError):
            await response_of(session([silent], *decorators, timeout=3.0))

        assert 3.0 == now()

    async def test_the_failure_is_what_the_rules_are_asked_about(self, breaker):
        """Once more, from the first of them."""
        rules = (
            CircuitBreakerRule.ignore(exceptions=aiohttp.ClientPayloadError) | busy()
        )
        async with Scripted([breaking], guarded(breaker, rules)) as scripted:
            assert aiohttp.ClientPayloadError is await scripted.get()

        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_a_rule_that_raises_about_it_goes_first(self, breaker):
        """Its error is the outcome then, with the failure as its context."""

        def divide(cause):
            raise ArithmeticError

        rules = CircuitBreakerRule.ignore(exceptions=divide) | busy()
        with pytest.raises(ArithmeticError) as caught:
            await response_of(session([breaking], guarded(breaker, rules)))

        assert isinstance(caught.value.__context__, aiohttp.ClientPayloadError)
        log = RequestLog.of(caught.value)
        assert isinstance(log.response_cause, ArithmeticError)
        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_what_answers_in_its_place_is_what_the_log_has(self, breaker):
        """A decorator further out may have something for such a case."""

        @client_decorator
        async def rescue(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except aiohttp.ClientPayloadError:
                return new_response(request, 203)

        decorators = guarded(breaker, busy()), rescue, retrying(0.5)
        response = await response_of(session([breaking], *decorators))

        log = RequestLog.of(response)
        assert (203, None) == (log.response_status, log.response_cause)
        assert log.is_success

    @chains
    async def test_cancelled_meanwhile_it_gives_its_trial_back(
        self, breaker, inside, outside
    ):
        """Nothing is counted, and the response is closed."""
        made = []

        def keeping(ctx, request):
            made.append(silent(ctx, request))
            return made[-1]

        breaker.enter_state(HALF_OPEN)
        decorators = (*inside, guarded(breaker, busy()), *outside)
        async with session([keeping], *decorators) as client:
            task = asyncio.create_task(client.get(URL))
            await asyncio.sleep(1.0)
            assert 2.0 == breaker.retry_in
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        assert (HALF_OPEN, 0.0) == (breaker.state, breaker.retry_in)
        assert made[0].closed

    async def test_the_failure_keeps_nothing_alive(self, breaker):
        """Nothing of it waits for the garbage collector."""
        gc.disable()
        try:
            client = session([silent], guarded(breaker, busy()), timeout=3.0)
            try:
                await response_of(client)
            except ResponseTimeoutError as error:
                kept = weakref.ref(error)

            assert None is kept()
        finally:
            gc.enable()


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
