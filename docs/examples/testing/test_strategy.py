import aiohttp
from orders import RetryOnConflict

from aioretry_smithy.testing import ask


async def test_conflict_is_retried() -> None:
    strategy = RetryOnConflict()

    assert await ask(strategy, status=409) is strategy.backoff


async def test_other_outcomes_are_not() -> None:
    assert await ask(RetryOnConflict(), status=503) is None
    assert await ask(RetryOnConflict(), cause=aiohttp.ServerDisconnectedError()) is None
