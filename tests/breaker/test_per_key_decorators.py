"""Circuit breakers per host, method or path."""

from functools import partial

import aiohttp
import pytest
from chains import Scripted, connected

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    FailFastError,
    SessionBuilder,
    new_response,
    unwrap,
)

guarded = CircuitBreakerClient.new_decorator
CLOSED, OPEN, _, _ = CircuitState


PER_KEY = [
    CircuitBreakerClient.new_per_host_decorator,
    CircuitBreakerClient.new_per_method_decorator,
    CircuitBreakerClient.new_per_host_and_method_decorator,
    CircuitBreakerClient.new_per_path_decorator,
]


class NeverContent(CircuitBreakerStrategy):
    """Takes every response for a failure."""

    def should_report_as_success(self, ctx, cause):
        return False


class TestKeys:
    """Circuit breakers by host and method."""

    @pytest.mark.parametrize(
        ("new_decorator", "keys"),
        [
            (CircuitBreakerClient.new_per_host_decorator, ["a:80", "b:443"]),
            (CircuitBreakerClient.new_per_method_decorator, ["GET", "PUT"]),
            (
                CircuitBreakerClient.new_per_host_and_method_decorator,
                ["a:80#GET", "a:80#PUT", "b:443#GET"],
            ),
            (CircuitBreakerClient.new_per_path_decorator, ["a:80/orders", "b:443/"]),
        ],
    )
    async def test_there_is_one_per_key(self, new_decorator, keys):
        """The factory is called once per key, with the key."""
        made = []

        def factory(key):
            made.append(CircuitBreaker(key))
            return made[-1]

        async with Scripted([200] * 6, new_decorator(factory)) as scripted:
            for _ in range(2):
                await scripted.session.get("http://a/orders?page=1")
                await scripted.session.put("http://A:80/orders")
                await scripted.session.get("https://b/")

        assert keys == [breaker.name for breaker in made]
        assert 6 == sum(breaker.event_count.success for breaker in made)

    @pytest.mark.parametrize("new_decorator", PER_KEY)
    async def test_strategy_and_fallback_are_taken(self, new_decorator):
        """They mean the same for hosts, methods and paths."""

        async def cached(ctx, request):
            return new_response(request, 203)

        def factory(key):
            return CircuitBreaker(key, minimum_request_threshold=1)

        decorator = new_decorator(factory, NeverContent(), fallback=cached)
        async with Scripted([200], decorator) as scripted:
            statuses = [await scripted.get() for _ in range(2)]

        assert [200, 203] == statuses

    async def test_a_broken_path_does_not_bother_the_others(self):
        """Whatever its query, a path has one circuit breaker, found by its key."""
        decorator = CircuitBreakerClient.new_per_path_decorator()
        async with Scripted([500] * 10 + [200], decorator) as scripted:
            for page in range(10):
                await scripted.get(f"http://a/orders?page={page}")

            assert FailFastError is await scripted.get("http://a/orders")
            assert 200 == await scripted.get("http://a/reports")
            client = unwrap(scripted.session, CircuitBreakerClient)
            assert {"a:80/orders": OPEN, "a:80/reports": CLOSED} == {
                key: breaker.state for key, breaker in client.circuit_breakers.items()
            }

    async def test_sessions_share_the_circuit_breakers(self):
        """All sessions of a decorator learn from the calls of one."""

        def factory(key):
            return CircuitBreaker(key, minimum_request_threshold=1)

        decorator = CircuitBreakerClient.new_per_host_decorator(factory)
        async with (
            Scripted([500], decorator) as first,
            Scripted([], decorator) as second,
        ):
            await first.get()

            assert FailFastError is await second.get()

    @pytest.mark.parametrize(
        "url", ["/orders", "http://", "http://[::1", "mailto:somebody@example.com", 7]
    )
    @pytest.mark.parametrize("new_decorator", PER_KEY)
    async def test_a_bad_url_raises_as_without_a_circuit_breaker(
        self, new_decorator, url
    ):
        """A bad URL is for aiohttp to report, in aiohttp's words."""
        made = []
        session = connected(None, new_decorator(made.append))
        async with session, aiohttp.ClientSession() as plain:
            with pytest.raises(Exception) as expected:
                await plain.get(url)
            with pytest.raises(Exception) as caught:
                await session.get(url)

        assert expected.type is caught.type
        assert str(expected.value) == str(caught.value)
        assert [] == made


class TestArguments:
    """Arguments of a decorator."""

    @pytest.mark.parametrize("new_decorator", PER_KEY)
    def test_a_factory_is_callable(self, new_decorator):
        """One circuit breaker is no factory of them."""
        breaker = CircuitBreaker("orders")
        with pytest.raises(ValueError) as caught:
            new_decorator(breaker)

        expected = f"factory: {breaker!r} (expected: a callable that takes the key)"
        assert expected == str(caught.value)

    def test_it_describes_itself(self):
        """The chain's description shows the settings in force."""

        async def cached(ctx, request):
            raise NotImplementedError

        breaker = CircuitBreaker("orders")
        one = guarded(breaker, fallback=cached)
        builder = (
            SessionBuilder()
            .decorator(one)
            .decorator(CircuitBreakerClient.new_per_host_decorator())
        )

        outer, inner, _ = builder.describe().splitlines()

        assert (
            "CircuitBreakerClient(per='host', factory=CircuitBreaker, "
            "strategy=CircuitBreakerStrategy.on_server_error_status())"
        ) == outer
        assert inner.startswith(
            f"  CircuitBreakerClient(circuit_breaker={breaker!r}, "
            "strategy=CircuitBreakerStrategy.on_server_error_status(), fallback="
        )
        assert inner.endswith("cached)")

    @pytest.mark.parametrize(
        ("new_decorator", "per"),
        [
            *zip(
                PER_KEY,
                ["host", "method", "host and method", "host and path"],
                strict=True,
            )
        ],
    )
    def test_it_describes_what_its_circuit_breakers_are_for(self, new_decorator, per):
        """A function without a name, such as a partial one, is shown whole."""
        factory = partial(CircuitBreaker, minimum_request_threshold=1)
        builder = SessionBuilder().decorator(new_decorator(factory))

        assert builder.describe().startswith(
            f"CircuitBreakerClient(per={per!r}, factory={factory!r}, strategy="
        )


class TestCircuitBreakers:
    """The circuit breakers in use, for health pages."""

    async def test_to_look_changes_nothing(self):
        """The mapping is read-only, and looking into it is no use of a key."""
        decorator = CircuitBreakerClient.new_per_host_decorator()
        async with Scripted([200] * 4, decorator) as scripted:
            client = unwrap(scripted.session, CircuitBreakerClient)
            await scripted.get("http://a/")
            await scripted.get("http://b/")
            breakers = client.circuit_breakers
            assert CLOSED is breakers["a:80"].state
            with pytest.raises(TypeError):
                breakers["a:80"] = None
            for _ in breakers:
                await scripted.get("http://c/")

            assert ["a:80", "b:80", "c:80"] == list(client.circuit_breakers)

    async def test_one_for_all_stands_under_its_name(self):
        """It has no key, for it is not looked for."""
        breaker = CircuitBreaker("orders")
        async with Scripted([], guarded(breaker)) as scripted:
            client = unwrap(scripted.session, CircuitBreakerClient)

            assert {"orders": breaker} == client.circuit_breakers


async def test_factory_that_makes_something_else_is_told():
    """Without a circuit breaker nothing would ever be refused."""
    decorator = CircuitBreakerClient.new_per_host_decorator(str.upper)
    async with Scripted([200], decorator) as scripted:
        with pytest.raises(ValueError) as caught:
            await scripted.get()

    expected = "factory('localhost:80'): 'LOCALHOST:80' (expected: a CircuitBreaker)"
    assert expected == str(caught.value)
