import asyncio

import pytest
from aioresponses import aioresponses

from aioretry_smithy.testing import VirtualTimeLoop, patch_aioresponses

patch_aioresponses()


def pytest_asyncio_loop_factories(item):
    """Run tests in virtual time, except where they meet sockets."""
    if "integration" in item.path.parts:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}


@pytest.fixture
def mocked():
    with aioresponses() as mock:
        yield mock
