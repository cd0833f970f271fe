"""Circuit breakers with ``enforce=False``: they decide, and nobody is refused."""

import asyncio
import logging
import math

import pytest
from chains import SAFELY, URL, Scripted, bad_argument, log_of, now, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitState,
    RequestLog,
    client_decorator,
    new_response,
    rpc,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


MAKERS = [
    CircuitBreakerClient.new_per_host_decorator,
    CircuitBreakerClient.new_per_method_decorator,
    CircuitBreakerClient.new_per_host_and_method_decorator,
    CircuitBreakerClient.new_per_path_decorator,
]


class Ears(CircuitBreakerListener):
    """A listener that notes what it hears."""

    def __init__(self):
        self.heard = []

    def on_state_changed(self, circuit_breaker, state):
        self.heard.append(state)

    def on_request_rejected(self, circuit_breaker):
        self.heard.append("rejected")


def watching(breaker, **settings):
    """Let a circuit breaker decide, and nothing act."""
    return CircuitBreakerClient.new_decorator(breaker, enforce=False, **settings)


class TestNobodyIsRefused:
    """What an open circuit would refuse goes out."""

    @pytest.mark.parametrize("state", [OPEN, FORCED_OPEN])
    async def test_what_would_be_refused_is_sent(self, state):
        """The caller and the log see an answer of the server, which is not counted."""
        breaker = CircuitBreaker("orders")
        breaker.enter_state(state)
        async with Scripted([200], watching(breaker)) as scripted:
            response = await scripted.session.get(URL)

        assert (200, True) == (response.status, RequestLog.of(response).sent)
        assert state is breaker.state

    async def test_a_bad_answer_is_no_refusal(self):
        """The call stops as it would without a circuit breaker."""
        breaker = CircuitBreaker("orders")
        breaker.enter_state(OPEN)
        once = retrying(SAFELY, max_total_attempts=1)
        log = await log_of(session([503], watching(breaker), once))

        assert "max_total_attempts" == log.stop_reason

    async def test_it_opens_and_tells_as_ever(self):
        """Listeners hear of each request that would have been refused."""
        ears = Ears()
        breaker = CircuitBreaker(minimum_request_threshold=2, listeners=[ears])
        async with Scripted([500] * 4, watching(breaker)) as scripted:
            for _ in range(4):
                await scripted.get()

        assert [OPEN, "rejected", "rejected"] == ears.heard

    async def test_a_fallback_is_not_called(self):
        """There is nothing to answer in place of."""
        breaker = CircuitBreaker()
        breaker.enter_state(OPEN)
        decorator = watching(
            breaker, fallback=lambda ctx, request: new_response(request, 418)
        )
        async with Scripted([200], decorator) as scripted:
            assert 200 == await scripted.get()

    async def test_an_attempt_refused_before_is_none_when_it_is_sent(self):
        """By another circuit breaker, before a decorator sent it once more."""

        @client_decorator
        async def twice(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except Exception:
                other.enter_state(CLOSED)
                return await delegate.execute(ctx, request)

        other, dry = CircuitBreaker(), CircuitBreaker()
        other.enter_state(OPEN)
        dry.enter_state(OPEN)
        acting = CircuitBreakerClient.new_decorator(other)
        async with Scripted([200], watching(dry), acting, twice) as scripted:
            response = await scripted.session.get(URL)

        assert RequestLog.of(response).sent

    @pytest.mark.parametrize("new_decorator", MAKERS)
    async def test_those_by_key_take_it_too(self, new_decorator):
        """Per host, method or path."""
        made = []

        def factory(key):
            made.append(CircuitBreaker(key, minimum_request_threshold=1))
            return made[-1]

        decorator = new_decorator(factory, enforce=False)
        async with Scripted([500, 200], decorator) as scripted:
            assert [500, 200] == [await scripted.get(), await scripted.get()]

        assert [OPEN] == [breaker.state for breaker in made]

    async def test_a_function_is_called(self):
        """As a request is sent."""
        breaker = CircuitBreaker("reports", minimum_request_threshold=1)

        @rpc(CircuitBreakerRpcClient.new_decorator(breaker, enforce=False))
        async def report(outcome):
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        with pytest.raises(ConnectionResetError):
            await report(ConnectionResetError())
        assert OPEN is breaker.state

        assert 7 == await report(7)
        assert OPEN is breaker.state


class TestHalfOpen:
    """What only ``enforce=False`` let through says nothing in a half-open circuit."""

    @pytest.fixture
    async def breaker(self):
        """A circuit breaker whose open window has passed."""
        breaker = CircuitBreaker("orders", circuit_open_window=5.0)
        breaker.enter_state(OPEN)
        await asyncio.sleep(5.0)
        return breaker

    @pytest.mark.parametrize("answer", [200, 500])
    async def test_beside_a_trial_outcomes_do_not_count(self, breaker, answer):
        """Neither a success closes it, nor a failure opens it."""
        answered = asyncio.Event()

        async def slow(ctx, request):
            await answered.wait()
            return 200

        async with Scripted([slow, answer], watching(breaker)) as scripted:
            trial = asyncio.create_task(scripted.get())
            await asyncio.sleep(1.0)
            assert HALF_OPEN is breaker.state
            assert answer == await scripted.get()
            assert HALF_OPEN is breaker.state
            answered.set()
            await trial

        assert CLOSED is breaker.state

    async def test_its_trial_decides(self, breaker):
        """As where it acts."""
        async with Scripted([500], watching(breaker)) as scripted:
            await scripted.get()

        assert OPEN is breaker.state
        assert 5.0 == breaker.retry_in

    async def test_a_cancelled_request_beside_a_trial_frees_no_place(self, breaker):
        """It had none."""

        async def hang(ctx, request):
            await asyncio.sleep(math.inf)

        async with Scripted([hang, hang], watching(breaker)) as scripted:
            trial = asyncio.create_task(scripted.get())
            await asyncio.sleep(1.0)
            beside = asyncio.create_task(scripted.get())
            await asyncio.sleep(1.0)
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
            assert 1.0 == breaker.retry_in
            trial.cancel()
            await asyncio.gather(trial, return_exceptions=True)

            assert 0.0 == breaker.retry_in

    async def test_a_request_from_before_the_opening_does_not_count_either(self):
        """Its permit is of an earlier state, as where it acts."""
        breaker = CircuitBreaker(minimum_request_threshold=1, circuit_open_window=5.0)

        async def slow(ctx, request):
            await asyncio.sleep(6.0)
            return 200

        async def hang(ctx, request):
            await asyncio.sleep(math.inf)

        async with Scripted([slow, 500, hang], watching(breaker)) as scripted:
            early = asyncio.create_task(scripted.get())
            await asyncio.sleep(0.5)
            await scripted.get()
            await asyncio.sleep(5.0)
            trial = asyncio.create_task(scripted.get())
            await early

            assert HALF_OPEN is breaker.state
            trial.cancel()


class TestWords:
    """What the logger and ``describe()`` say."""

    async def test_each_is_logged_and_the_first_warned_of(self, caplog):
        """With the request, without its secrets, and what it would have raised."""
        breaker = CircuitBreaker("orders")
        breaker.enter_state(FORCED_OPEN)
        with caplog.at_level(logging.DEBUG, "aioretry_smithy"):
            async with Scripted([200] * 2, watching(breaker)) as scripted:
                for _ in range(2):
                    await scripted.get(f"{URL}?api_key=hidden")

        said = [
            (record.levelname, record.getMessage())
            for record in caplog.records
            if "would have" in record.getMessage()
        ]
        assert ["DEBUG", "WARNING", "DEBUG"] == [level for level, _ in said]
        assert "hidden" not in str(said)
        assert "circuit breaker 'orders' is open" in said[0][1]
        assert said[1][1].startswith("circuit breaker 'orders' is not enforced: ")

    async def test_those_by_key_are_warned_of_together(self, caplog):
        """A host of hosts fills no log."""
        decorator = CircuitBreakerClient.new_per_host_decorator(
            lambda key: CircuitBreaker(key, minimum_request_threshold=1), enforce=False
        )
        async with Scripted([500] * 4, decorator) as scripted:
            for host in "a", "a", "b", "b":
                await scripted.get(f"http://{host}/")

        (warning,) = [each for each in caplog.messages if "would have" in each]
        assert warning.startswith("circuit breaker (per='host', factory=")

    @pytest.mark.parametrize(("enforce", "shown"), [(True, False), (False, True)])
    def test_describe_says_so(self, enforce, shown):
        """Only where it does not act."""
        decorator = CircuitBreakerClient.new_per_host_decorator(enforce=enforce)
        described = Scripted([], decorator).builder.describe()

        assert shown == (", enforce=False)\n" in described)

    @pytest.mark.parametrize("enforce", [None, 0, "no"])
    def test_it_is_a_bool(self, enforce):
        """Nothing else is taken for one."""
        with bad_argument("enforce", enforce, "True or False"):
            CircuitBreakerClient.new_per_host_decorator(enforce=enforce)


def quick(key="orders", **settings):
    return CircuitBreaker(
        key, consecutive_failures=1, circuit_open_window=1.0, **settings
    )


@pytest.mark.parametrize("make", MAKERS)
async def test_each_kind_of_decorator_has_it(make):
    """And says so."""
    decorator = make(quick, wait_for_ready=5.0)
    async with Scripted([503, 200], decorator) as scripted:
        await scripted.get()

        assert (200, 1.0) == (await scripted.get(), now())
        assert ", wait_for_ready=5.0)" in scripted.builder.describe()


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.inf, math.nan, True, "5"])
@pytest.mark.parametrize(
    "make",
    [
        *MAKERS,
        lambda **given: CircuitBreakerClient.new_decorator(quick(), **given),
        lambda **given: CircuitBreakerRpcClient.new_decorator(quick(), **given),
    ],
)
def test_bad_ones_are_refused(make, value):
    """At once, by name."""
    with bad_argument("wait_for_ready", value, "finite and > 0, or None"):
        make(wait_for_ready=value)


class Refusals(CircuitBreakerListener):
    """A listener that notes what was refused."""

    refused = 0

    def on_request_rejected(self, circuit_breaker):
        self.refused += 1


class TestWaits:
    """What is not enforced lets nobody wait."""

    async def test_it_says_what_would_have_waited(self, caplog):
        """And sends it at once; its outcome is not counted."""
        caplog.set_level(logging.DEBUG, "aioretry_smithy")
        ears = Refusals()
        breaker = quick(listeners=[ears])
        decorator = CircuitBreakerClient.new_decorator(
            breaker, enforce=False, wait_for_ready=0.75
        )
        async with Scripted([503, 200, 200], decorator) as scripted:
            await scripted.get()
            assert 200 == await scripted.get()
            await asyncio.sleep(0.5)
            assert 200 == await scripted.get()

            assert (0.5, CircuitState.OPEN, 0) == (now(), breaker.state, ears.refused)
        waits = [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.DEBUG
        ]
        request = "<HttpRequest GET http://localhost/orders>"
        assert [
            f"would have waited 0.750 s for 'orders': {request}",
            f"would have waited 0.500 s for 'orders': {request}",
        ] == waits

    async def test_a_trial_goes_as_ever(self):
        """When its time has come."""
        breaker = quick()
        decorator = CircuitBreakerClient.new_decorator(
            breaker, enforce=False, wait_for_ready=5.0
        )
        async with Scripted([503, 200], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(1.0)
            await scripted.get()

        assert CircuitState.CLOSED is breaker.state
