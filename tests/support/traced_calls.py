"""Traced calls, and the context that they carry."""

from __future__ import annotations

import itertools

import chains
import pytest

from aioretry_smithy import SessionBuilder

URL = "https://api.example.com/orders"


def chain(tracing, answers, *, inside=True, outside=True, **settings) -> SessionBuilder:
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
