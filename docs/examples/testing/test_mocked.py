from aioresponses import aioresponses
from orders import count_orders, with_our_chain

from aioretry_smithy import SessionBuilder


async def test_conflict_is_waited_out(mocked: aioresponses) -> None:
    mocked.get("https://api.example.com/orders", status=409)
    mocked.get("https://api.example.com/orders", payload=[1, 2])
    builder = with_our_chain(SessionBuilder("https://api.example.com"))

    async with builder.build() as session:
        assert await count_orders(session) == 2
