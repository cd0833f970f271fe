"""Rows of clients: compiled from what the clients are at the time of a call."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from calls import REQUEST, begin
from chains import NOW, URL, retrying, session

from aioretry_smithy import DecoratingClient, RetryConfig, RetryingClient, RetryStrategy
from aioretry_smithy._call.hooks import Hooks
from aioretry_smithy._context.client import Chain
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
    """A row is kept by a client whose class refuses to be written on."""

    @dataclass(frozen=True)
    class Frozen(DecoratingClient):
        delegate: object

    client = Frozen(ScriptedTransport([200]))
    response = await client.execute(begin(), REQUEST)

    assert 200 == response.status


def test_chain_that_could_not_be_compiled_is_compiled_again():
    """What was raised the first time is raised the second time, too."""

    class Broken(DecoratingClient):
        @property
        def _hooks(self):
            raise LookupError

    chain = Chain(Broken(SimpleNamespace()), Hooks())
    for _ in range(2):
        with pytest.raises(LookupError):
            chain.compiled()
