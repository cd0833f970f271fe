import asyncio
import inspect
from types import SimpleNamespace

import aiohttp
import aioresponses
import pytest

from aioretry_smithy.testing import VirtualTimeLoop


def pytest_asyncio_loop_factories(item):
    """Run tests in virtual time, except where they meet sockets."""
    if "integration" in item.path.parts:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}


class MockedResponse(aiohttp.ClientResponse):
    """What aioresponses can make, though it knows no ``stream_writer``."""

    def __init__(self, *args, **options):
        parameters = inspect.signature(aiohttp.ClientResponse.__init__).parameters
        if "stream_writer" in parameters:
            options.setdefault("stream_writer", SimpleNamespace(output_size=0))
        super().__init__(*args, **options)


@pytest.fixture
def mocked(monkeypatch):
    monkeypatch.setattr(aioresponses.core, "ClientResponse", MockedResponse)
    with aioresponses.aioresponses() as mock:
        yield mock
