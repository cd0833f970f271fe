import asyncio
from collections.abc import Callable, Mapping

import pytest

from aioretry_smithy.testing import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests in virtual time, except where they meet sockets."""
    if "integration" in item.path.parts:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}
