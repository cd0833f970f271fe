"""Functions that answer in turn, and calls that are traced on both sides."""

import asyncio
import itertools

import chains
import pytest

from aioretry_smithy import Backoff, RetryingRpcClient, RetryRule, rpc


def lookups(*outcomes, seconds=0.25):
    """Make a function that raises or returns each of the outcomes in turn."""
    pending = iter(outcomes)

    async def fetch():
        await asyncio.sleep(seconds)
        outcome = next(pending)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return fetch


def observed(telemetry, *inside, name="fetch", **settings):
    """Decorate with telemetry in both places around a retrying client."""
    rule = RetryRule(exceptions=[LookupError], backoff=Backoff.fixed(1.0))
    retry = RetryingRpcClient.new_decorator(rule, **settings)
    return rpc(*inside, telemetry, retry, telemetry, name=name)


URL = "https://api.example.com/orders"


def chain(tracing, answers, *, inside=True, outside=True, **settings):
    """Tracing in one or both places around a retrying client."""
    parts = [tracing] * inside, [chains.retrying(chains.SAFELY)], [tracing] * outside
    return chains.chain(answers, *itertools.chain(*parts), **settings)


async def get(builder, **options):
    async with builder.build() as session, session.get(URL, **options):
        pass


async def get_in_vain(builder, answer):
    """Make a call that ends with an answer, or is ended by it."""
    if answer == 200:
        await get(builder)
    else:
        with pytest.raises(type(answer)):
            await get(builder)
