"""Servers and loggers that several files of tests share."""

import asyncio
import logging

import pytest
from lines_sink import Lines
from token_servers import Server

PATIENCE = 20.0


@pytest.fixture
async def own():
    """The session's own server."""
    async with asyncio.timeout(PATIENCE), Server() as server:
        yield server


@pytest.fixture
async def stranger():
    """Another one."""
    async with Server() as server:
        yield server


@pytest.fixture
def waits(monkeypatch):
    """The waits between the parts of a download, which are not waited for."""
    waited = []
    sleep = asyncio.sleep

    async def note(seconds, *rest):
        waited.append(seconds)
        await sleep(0, *rest)

    monkeypatch.setattr("aioretry_smithy._resuming.download.asyncio.sleep", note)
    return waited


@pytest.fixture
def lines():
    """The lines of the logger ``shop``."""
    handler, logger = Lines(), logging.getLogger("shop")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
