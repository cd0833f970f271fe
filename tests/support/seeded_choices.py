"""Choices of endpoints, whose chances are known."""

from __future__ import annotations

from balanced import call


async def asked(fleet, group, number, *decorators):
    """Make calls one after another, and return who was asked."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
    return fleet.text
