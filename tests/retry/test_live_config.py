"""Settings of a retrying client that are swapped while it works."""

import asyncio

import pytest
from chains import SAFELY, URL, bad_argument, chain, retrying, session

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryingRpcClient,
    RetryStrategy,
    capture_logs,
    smithy,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

SLOWLY = RetryStrategy.failsafe(Backoff.fixed(1.0))
THREE = RetryConfig(SLOWLY, 3)
FIVE = RetryConfig(SLOWLY, 5)
MAPPED = RetryConfigMapping.per_method(lambda method: FIVE)


async def attempts_of(client, url=URL):
    """Make a call, and count its attempts."""
    async with client.get(url) as response:
        return RequestLog.of(response).total_attempts


def failing(*decorators, config=THREE):
    """Begin a chain to a server that always fails."""
    return session([503] * 99, *decorators, retrying(config), *decorators)


def swap(client, config):
    """Give a session other settings of its retries."""
    found = unwrap(client, RetryingClient)
    assert found is not None
    found.config = config


@pytest.mark.parametrize(
    ("config", "attempts"),
    [
        (FIVE, 5),
        (MAPPED, 5),
        (RetryConfig.no_retry(), 1),
        (RetryConfig(smithy.StandardRetryStrategy(max_attempts=2)), 2),
        (RetryConfig(SLOWLY, 2, 0.5, buffer_response=True), 2),
    ],
    ids=["config", "mapping", "no retry", "smithy", "buffered"],
)
async def test_it_holds_from_the_next_call_on(config, attempts):
    """Whatever kind of settings came before it, or comes after."""
    async with failing() as client:
        before = await attempts_of(client)
        swap(client, config)
        after = [await attempts_of(client), await attempts_of(client)]
        swap(client, THREE)
        back = await attempts_of(client)

    assert (3, [attempts, attempts], 3) == (before, after, back)


@pytest.mark.parametrize(
    "config", [THREE, RetryConfigMapping.per_host(lambda host: THREE)]
)
async def test_calls_under_way_keep_theirs(config):
    """One that waits, and one whose first attempt is under way: all of them."""
    release = asyncio.Event()

    async def late(ctx, request):
        await release.wait()
        return 503

    async with session([503, late] + [503] * 99, retrying(config)) as client:
        waiting = asyncio.create_task(attempts_of(client))
        await asyncio.sleep(0.25)
        sending = asyncio.create_task(attempts_of(client))
        await asyncio.sleep(0.25)
        swap(client, RetryConfig.no_retry())
        new = await attempts_of(client)
        release.set()

        assert (1, 3, 3) == (new, await waiting, await sending)


async def test_call_in_the_queue_of_a_limit_outside_gets_the_new_settings():
    """Those that hold when it reaches the retrying client."""
    limiting = ConcurrencyLimitingClient.new_decorator(ConcurrencyLimit.fixed(1))
    async with session([503] * 99, retrying(THREE), limiting) as client:
        calls = [asyncio.create_task(attempts_of(client)) for _ in range(2)]
        await asyncio.sleep(0.25)
        swap(client, FIVE)

        assert [3, 5] == [await call for call in calls]


async def test_many_swaps_mix_no_settings():
    """Each call has those of one moment: so many attempts, so far apart."""

    def configured(number):
        strategy = RetryStrategy.failsafe(Backoff.fixed(float(number)))
        return RetryConfig(strategy, number, retry_count_header=f"x-{number}")

    transport = ScriptedTransport([503] * 999)
    async with session(transport, retrying(configured(2))) as client:
        with capture_logs() as logs:
            calls = []
            for number in range(2, 8):
                swap(client, configured(number))
                calls.append(asyncio.create_task(attempts_of(client)))
                await asyncio.sleep(0.75)
            await asyncio.gather(*calls)

    assert [*range(2, 8)] == [log.total_attempts for log in logs]
    for number, log in zip(range(2, 8), logs, strict=True):
        *retried, last = log.children
        assert {float(number)} == {attempt.delay for attempt in retried}
        assert last.request_headers[f"x-{number}"] == f"{number - 1}"


async def test_it_is_for_one_session_of_a_builder():
    """The decorator made a client for each."""
    builder = chain([503] * 99, retrying(THREE))
    async with builder.build() as one, builder.build() as other:
        swap(one, FIVE)

        assert (5, 3) == (await attempts_of(one), await attempts_of(other))


NEITHER = "a RetryConfig or a RetryConfigMapping"


@pytest.mark.parametrize("given", [None, 5, "no_retry", SAFELY, object()])
async def test_anything_else_is_refused_and_changes_nothing(given):
    """At once, where it is set; a strategy alone is no settings either."""
    async with failing() as client:
        with pytest.raises(ValueError, match=rf"^config: .* \(expected: {NEITHER}\)$"):
            swap(client, given)

        assert 3 == await attempts_of(client)


def test_constructor_refuses_it_too():
    """A client of one's own may be made without its decorator."""
    with bad_argument("config", 5, NEITHER):
        RetryingClient(ScriptedTransport([]), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, NEITHER),
        (RetryConfig(SAFELY, buffer_response=True), "one without buffer_response"),
        (MAPPED, "what RetryConfigMapping.of returns"),
    ],
)
def test_client_of_a_function_takes_what_functions_can_have(given, expected):
    """As its decorator does; other attributes may be set to anything."""

    class Client:
        async def execute(self, ctx, request):
            """Be a function's client."""

    client = RetryingRpcClient(Client(), THREE)
    client.config = FIVE
    client.config = mapping = RetryConfigMapping.of(lambda ctx, request: "", len)
    with pytest.raises(ValueError, match=f"expected: {expected}"):
        client.config = given

    assert mapping is client.config
