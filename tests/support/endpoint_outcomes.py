"""Outcomes of requests to endpoints, and who hears of them."""

from __future__ import annotations

from balanced import call, out


async def outcomes(fleet, group, number, *decorators):
    """Make calls one after another, and return who is out then."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
        return out(group)
