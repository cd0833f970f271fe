"""What is swapped or computed in a client counts at once, as Python has it."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import pytest
from calls import REQUEST, begin
from chains import NOW, SAFELY, URL, retrying, session

from aioretry_smithy import (
    DecoratingClient,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    capture_logs,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport


async def patched(ctx, request):
    """Stand for the execute of a client."""
    raise LookupError


async def test_patch_of_a_transport_counts_at_once():
    """A scripted transport is patched for the second call, and not for the third."""
    transport = ScriptedTransport([200, 201])
    async with session(transport, retrying()) as client:
        statuses = [(await client.get(URL)).status]
        with (
            patch.object(transport, "execute", patched),
            pytest.raises(LookupError),
        ):
            await client.get(URL)
        statuses.append((await client.get(URL)).status)

    assert [200, 201] == statuses


async def test_a_replaced_execute_is_seen_and_forgotten():
    """As that of any object, at once."""
    async with session([503, 200, 503, 200], retrying(SAFELY)) as client:
        retries = unwrap(client, RetryingClient)
        first = await client.get(URL)
        with patch.object(retries, "execute", retries.delegate.execute):
            second = await client.get(URL)
        third = await client.get(URL)

    assert [200, 503, 200] == [each.status for each in (first, second, third)]


async def test_another_delegate_counts_from_the_next_attempt_on():
    """The attempts of a call that is under way go to it, too."""
    other = ScriptedTransport([200])

    async def swap(ctx, request):
        found.delegate = other
        return 503

    async with session(ScriptedTransport([swap]), retrying(0.0)) as client:
        found = unwrap(client, RetryingClient)
        response = await client.get(URL)

    assert (200, []) == (response.status, other.unused)


class Answering:
    """A client of the user's own, which may answer with anything."""

    def __init__(self, answer):
        self.answer = answer

    async def execute(self, ctx, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_failure_of_another_delegate_is_recorded():
    """A client of the user's own is put into a chain that has been built."""
    failure = LookupError()
    async with session([], retrying()) as client:
        unwrap(client, RetryingClient).delegate = Answering(failure)
        with capture_logs() as logs, pytest.raises(LookupError):
            await client.get(URL)

    assert repr(failure) == repr(logs[0].children[0].response_cause)


async def test_answer_of_another_delegate_is_recorded():
    """It is looked at as that of any client: what is no response is refused."""
    async with session([], retrying()) as client:
        unwrap(client, RetryingClient).delegate = Answering("a text")
        with pytest.raises(TypeError, match="Answering returned a str"):
            await client.get(URL)


async def test_outcome_of_the_delegate_of_a_dataclass_is_recorded():
    """A class whose constructor is made for it has its delegate recorded, too."""

    @dataclass
    class Named(DecoratingClient):
        delegate: object

    ctx, failure = begin(), LookupError()
    with pytest.raises(LookupError):
        await Named(Answering(failure)).execute(ctx, REQUEST)

    assert failure is ctx.log.response_cause


async def test_property_chooses_the_delegate_of_each_call():
    """A subclass may compute its delegate."""
    transports = [ScriptedTransport([200]), ScriptedTransport([201])]

    class Choosing(DecoratingClient):
        chosen = -1

        @property
        def delegate(self):
            self.chosen += 1
            return transports[self.chosen]

    client = object.__new__(Choosing)
    statuses = [(await client.execute(begin(), REQUEST)).status for _ in transports]

    assert [200, 201] == statuses


async def test_property_chooses_the_settings_of_each_call():
    """A subclass may compute its settings."""
    strategy = RetryStrategy.on_server_error_status(NOW)

    class Growing(RetryingClient):
        most = 1

        @property
        def config(self):
            return RetryConfig(strategy, self.most)

        @config.setter
        def config(self, config):
            pass

    transport = ScriptedTransport([503] * 3)
    client = Growing(transport, RetryConfig(strategy))
    await client.execute(begin(), REQUEST)
    client.most = 2
    await client.execute(begin(), REQUEST)

    assert [] == transport.unused


async def test_client_may_be_frozen():
    """The class of a client may refuse to be written on."""

    @dataclass(frozen=True)
    class Frozen(DecoratingClient):
        delegate: object

    client = Frozen(ScriptedTransport([200]))
    response = await client.execute(begin(), REQUEST)

    assert 200 == response.status
