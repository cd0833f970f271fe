import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
from aioresponses import aioresponses

from aioretry_smithy.testing import VirtualTimeLoop, patch_aioresponses

patch_aioresponses()


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests in virtual time, except where they meet sockets."""
    if "integration" in item.path.parts:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}


@pytest.fixture
def mocked() -> Iterator[aioresponses]:
    with aioresponses() as mock:
        yield mock
