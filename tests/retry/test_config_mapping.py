"""Settings by key: which key, how often it is asked for, what may go wrong."""

from __future__ import annotations

import functools

import aiohttp
import pytest
from chains import URL, bad_argument, chain, raises_exactly, response_of

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    unwrap,
)

ALWAYS = RetryStrategy.on_server_error_status(Backoff.without_delay())


def attempts(number):
    return RetryConfig(ALWAYS, max_total_attempts=number)


def session(answers, mapping):
    """Build a session that gets *answers* and asks *mapping* how to retry."""
    return chain(answers, RetryingClient.new_mapped_decorator(mapping)).build()


async def attempts_of(client, url=URL, method="GET"):
    async with client.request(method, url) as response:
        return RequestLog.of(response).total_attempts


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("per_host", "localhost:80"),
        ("per_method", "GET"),
        ("per_host_and_method", "localhost:80#GET"),
    ],
)
async def test_ready_made_keys(name, key):
    """They are those of the circuit breakers; each is made once."""
    asked = []

    def factory(name):
        asked.append(name)
        return attempts(2)

    mapping = getattr(RetryConfigMapping, name)(factory)
    async with session([503] * 4, mapping) as client:
        made = [await attempts_of(client), await attempts_of(client)]

    assert ([2, 2], [key]) == (made, asked)
    assert repr(mapping).startswith(f"RetryConfigMapping.{name}(")


async def test_settings_differ_by_key():
    """Each call is made by its own."""
    mapping = RetryConfigMapping.per_method(
        lambda method: attempts(3 if method == "GET" else 1)
    )
    async with session([503] * 4, mapping) as client:
        made = [await attempts_of(client), await attempts_of(client, method="POST")]

    assert [3, 1] == made


async def test_key_of_ones_own_is_asked_for_once_per_call():
    """With the context and the request, however many attempts follow."""
    asked = []

    def key(ctx, request):
        asked.append((ctx.parent, request.url.path))
        return request.url.path

    mapping = RetryConfigMapping.of(key, lambda path: attempts(3))
    async with session([503] * 3, mapping) as client:
        await attempts_of(client)

    assert [(None, "/orders")] == asked


async def test_settings_of_many_keys_are_forgotten():
    """A crawler meets any number of hosts."""
    made = []

    def factory(host):
        made.append(host)
        return attempts(1)

    mapping = RetryConfigMapping.per_host(factory)
    async with session([200] * 1026, mapping) as client:
        for number in range(1025):
            await attempts_of(client, f"http://host{number}/")
        await attempts_of(client, "http://host0/")

    assert 1026 == len(made)


async def test_request_without_a_host_is_for_aiohttp_to_refuse():
    """Once, and without a key that was never meant."""
    mapping = RetryConfigMapping.per_host(lambda host: attempts(3))
    builder = SessionBuilder().decorator(RetryingClient.new_mapped_decorator(mapping))
    async with builder.build() as client:
        with pytest.raises(aiohttp.InvalidURL):
            await client.get("/orders")


@pytest.mark.parametrize("key", [None, 7])
async def test_key_of_ones_own_must_be_text(key):
    """It tells calls apart, and stands in a map."""
    mapping = RetryConfigMapping.of(lambda ctx, request: key, lambda key: attempts(1))
    with bad_argument("key_fn", key, "returns a str"):
        await response_of(session([200], mapping))


async def test_mapping_that_raises_ends_the_call_with_an_error():
    """As a strategy does that raises."""

    def factory(host):
        raise KeyError(host)

    with capture_logs() as logs, pytest.raises(KeyError):
        await response_of(session([], RetryConfigMapping.per_host(factory)))

    assert RetryStopReason.ERROR == logs[0].stop_reason


async def test_factory_must_return_settings():
    """A strategy alone is the likely slip."""
    mapping = RetryConfigMapping.per_host(lambda host: ALWAYS)
    with bad_argument("factory('localhost:80')", ALWAYS, "a RetryConfig"):
        await response_of(session([200], mapping))


async def test_key_without_settings_is_told():
    """The `get` of a dict has no answer for a method that was forgotten."""
    mapping = RetryConfigMapping.per_method({"POST": RetryConfig.no_retry()}.get)
    with raises_exactly("factory('GET'): None (expected: a RetryConfig)"):
        await response_of(session([200], mapping))


@pytest.mark.parametrize(
    ("arguments", "name"), [((None, attempts), "key_fn"), ((attempts, None), "factory")]
)
def test_arguments_must_be_functions(arguments, name):
    """Told when the mapping is made."""
    expected = {
        "key_fn": "a function of context and request",
        "factory": "a callable that takes the key",
    }
    with raises_exactly(f"{name}: None (expected: {expected[name]})"):
        RetryConfigMapping.of(*arguments)


def test_decorator_needs_a_mapping():
    """And no configuration, for which there is new_decorator()."""
    config = attempts(1)
    with bad_argument("mapping", config, "a RetryConfigMapping"):
        RetryingClient.new_mapped_decorator(config)


def test_description_names_the_factory():
    """By its name, or as it describes itself."""
    named = RetryConfigMapping.per_host(attempts)
    nameless = functools.partial(attempts, 1)

    assert "RetryConfigMapping.per_host(attempts)" == repr(named)
    assert f"RetryConfigMapping.of({nameless!r})" == repr(
        RetryConfigMapping.of(attempts, nameless)
    )


async def test_session_with_a_mapping_counts_as_one_that_retries():
    """So aiohttp sends nothing again on its own."""
    mapping = RetryConfigMapping.per_host(lambda host: attempts(2))
    async with session([], mapping) as client:
        retrying = unwrap(client, RetryingClient)

        assert not client._retry_connection
        assert f"RetryingClient(mapping={mapping!r})" == retrying.describe()
