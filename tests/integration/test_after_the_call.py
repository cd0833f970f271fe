"""A call that is over leaves its log, and nothing else."""

import gc
import weakref

import pytest
from fault_server import FaultServer, answer
from story_chains import CHAINS
from story_text import Witness, told_log
from until import nothing_to_collect

from aioretry_smithy import capture_logs

USUAL = ("retry", "full", "standard", "standard, untouched", "Smithy", "mapping")
USUAL_REQUESTS = {
    "GET": ("GET", {}),
    "POST of JSON": ("POST", {"json": {"a": 1}}),
    "POST of bytes": ("POST", {"data": b"body"}),
    "all arguments": (
        "GET",
        {
            "headers": {"X-A": "1"},
            "params": {"a": "1"},
            "cookies": {"b": "2"},
            "timeout": 5,
        },
    ),
}

chains = pytest.mark.parametrize("chain", USUAL)


def opened(chain, url):
    return CHAINS[chain].open(Witness(), base_url=url)


@chains
@pytest.mark.parametrize("kind", USUAL_REQUESTS)
async def test_success_leaves_nothing_to_collect(chain, kind):
    """Not even what a collector would find: no cycle runs through a call."""
    method, options = USUAL_REQUESTS[kind]

    async def call():
        async with session.request(method, "/", **options) as response:
            await response.read()

    async with (
        FaultServer(then=answer(200, b"fine")) as server,
        opened(chain, server.url) as session,
    ):
        await call()
        with nothing_to_collect():
            await call()


async def called(chain, path="/", look=None):
    """Make a call that may be looked at meanwhile; return what it leaves."""
    with capture_logs() as logs:
        async with (
            FaultServer(then=answer(200, b"fine")) as server,
            opened(chain, server.url) as session,
            session.get(path) as response,
        ):
            if look is not None:
                look(logs[0])
            await response.read()
    return logs[0], response, session


@chains
async def test_log_alone_stays_as_it_was(chain):
    """It shows the same when response, session and context are gone."""
    log, response, session = await called(chain)
    before = told_log(log)
    gone = weakref.ref(response), weakref.ref(session)
    del response, session
    gc.collect()

    assert [None, None] == [reference() for reference in gone]
    assert before == told_log(log)


@chains
async def test_log_first_looked_at_afterwards_is_the_same(chain):
    """A look while the call was under way makes no difference."""
    logs = [(await called(chain, look=look))[0] for look in (None, told_log)]

    assert told_log(logs[0]) == told_log(logs[1])
