from collections.abc import Iterator

import pytest
from aioresponses import aioresponses
from orders import count_orders, with_our_chain

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import patch_aioresponses

patch_aioresponses()


@pytest.fixture
def mocked() -> Iterator[aioresponses]:
    with aioresponses() as mock:
        yield mock


async def test_conflict_is_waited_out(mocked: aioresponses) -> None:
    mocked.get("https://api.example.com/orders", status=409)
    mocked.get("https://api.example.com/orders", payload=[1, 2])
    builder = with_our_chain(SessionBuilder("https://api.example.com"))

    async with builder.build() as session:
        assert await count_orders(session) == 2
