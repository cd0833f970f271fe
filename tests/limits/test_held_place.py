"""A place of a limit, as the calls inside its attempt see it."""

from __future__ import annotations

from calls import http

from aioretry_smithy import ConcurrencyLimit
from aioretry_smithy._context.holdings import holdings_of, is_held
from aioretry_smithy._limits.client import HeldPlace


async def test_place_is_given_back_once():
    """What the attempt has taken a second time stays with it."""
    limit = ConcurrencyLimit.fixed(2)
    around, inside = http("http://shop/"), http("http://shop/inner")
    holdings = holdings_of(around)
    loop = around.call.loop
    one, two = (HeldPlace(limit._try_enter_in(loop), holdings, limit) for _ in "12")
    one.release()
    one.release()

    assert (1, True) == (limit.in_flight, is_held(inside, limit))

    two.release()

    assert (0, False) == (limit.in_flight, is_held(inside, limit))
    holdings.end()
