"""Servers at addresses of loopback: two of a group, and another."""

import pytest
from addressed import HOSTS, Servers


@pytest.fixture
async def servers():
    """Servers at two addresses."""
    async with Servers(*HOSTS[:2]) as opened:
        yield opened


@pytest.fixture
async def stranger():
    """A server that no group has."""
    async with Servers("127.0.0.1") as opened:
        yield opened
