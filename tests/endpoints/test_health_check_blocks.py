"""Health checks begin and end with their block."""

import asyncio
import gc
import math
import weakref
from contextvars import ContextVar

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver
from chains import now, pass_on, refused
from group_servers import Servers, of, retrying

from aioretry_smithy import Endpoint, HealthCheckedEndpointGroup, decorate
from aioretry_smithy.testing import VirtualTimeLoop

pytestmark = pytest.mark.usefixtures("no_jitter")


async def test_use_outside_of_its_block_is_an_error(health):
    """Before and after; to look at it is none."""
    servers = Servers()
    group = HealthCheckedEndpointGroup(of("a"), "/healthz")
    async with servers.session(group, retrying()) as client:
        error = await servers.get(client)
        with pytest.raises(RuntimeError):
            await group.when_ready()
        async with group:
            assert 200 == await servers.get(client)
        after = await servers.get(client)

    expected = (
        "endpoint group 'http://a' is to be used in its block, in the same event loop:"
        " async with HealthCheckedEndpointGroup(...) as group:"
    )
    assert (RuntimeError, expected) == (type(error), str(error))
    assert (RuntimeError, expected) == (type(after), str(after))
    assert ["a"] == servers.asked
    assert ["a"] == [*map(str, group.endpoints)]


async def test_end_of_the_block_ends_waits_and_checks(health):
    """What was said is forgotten, for those who use the group itself."""
    servers = Servers()
    health.answers = {"a": math.inf, "b": 503}
    inner = of("a", "b")
    async with servers.session(inner) as plain:
        async with HealthCheckedEndpointGroup(inner, "/", timeout=9.0) as group:
            client = servers.session(group)
            call = asyncio.create_task(servers.get(client))
            ready = asyncio.create_task(group.when_ready())
            beside = asyncio.create_task(servers.get(plain))
            await asyncio.sleep(1.0)
        error = await call
        assert 200 == await beside
    await client.close()

    assert RuntimeError is type(error)
    assert isinstance(
        (await asyncio.gather(ready, return_exceptions=True))[0], RuntimeError
    )
    assert 1.0 == now()
    assert [None, None] == [each.reason for each in inner.states.values()]


async def test_group_is_checked_once_at_a_time(health):
    """A second check would contradict the first."""
    inner = of("a")
    group = HealthCheckedEndpointGroup(inner, "/healthz")
    expected = "endpoint group 'http://a' is checked already"
    async with group:
        for other in (group, HealthCheckedEndpointGroup(inner, "/")):
            with pytest.raises(RuntimeError, match=expected):
                async with other:
                    pass
    async with group:
        await group.when_ready()


async def test_checks_pass_the_decorators_of_a_session(health):
    """And are sent by it."""
    seen = []
    async with aiohttp.ClientSession() as session:
        decorate(session, lambda delegate: seen.append(1) or pass_on(delegate))
        seen.clear()
        async with HealthCheckedEndpointGroup(
            of("a"), "healthz", method="head", session=session
        ) as group:
            await group.when_ready()
        assert not session.closed

    assert [(0.0, "HEAD", "http://a/healthz")] == health.asked
    assert [session] == health.sessions
    (options,) = health.options
    assert not options["allow_redirects"]
    assert not options["raise_for_status"]


async def test_own_session_is_closed_at_the_end(health):
    """A plain one."""
    async with HealthCheckedEndpointGroup(of("a"), "/healthz") as group:
        await group.when_ready()

    (session,) = health.sessions
    assert session.closed


async def test_closed_session_ends_no_checks(health, caplog):
    """All are unhealthy, all are used, one warning says why."""
    servers = Servers()
    async with aiohttp.ClientSession() as session:
        pass
    group = HealthCheckedEndpointGroup(
        of("a", "b"), "/healthz", interval=1.0, session=session
    )
    async with group, servers.session(group) as client:
        await servers.get(client)
        await asyncio.sleep(3.5)
        assert "unhealthy" == group.states[Endpoint("http://a")].reason

    assert ["a"] == servers.asked
    assert [
        "endpoint group 'http://a, http://b': the session of the checks is closed"
    ] == caplog.messages


async def test_session_that_is_closed_during_a_check_ends_no_checks(caplog):
    """What waits for its connection then is cancelled by aiohttp, and has failed."""

    class Silent(AbstractResolver):
        async def resolve(self, host, port=0, family=0):
            await asyncio.sleep(math.inf)

        async def close(self):
            pass

    connector = aiohttp.TCPConnector(resolver=Silent())
    session = aiohttp.ClientSession(connector=connector)
    group = HealthCheckedEndpointGroup(
        of("a", "b"), "/healthz", interval=1.0, timeout=9.0, session=session
    )
    async with group:
        await asyncio.sleep(0.5)
        await session.close()
        assert ["a", "b"] == [*map(str, await group.when_ready(timeout=0.5))]
        await asyncio.sleep(1.5)

    assert [
        "endpoint group 'http://a, http://b': the session of the checks is closed"
    ] == caplog.messages


async def test_checks_know_nothing_of_the_code_around(health):
    """Nothing of it is kept for as long as they last."""
    variable = ContextVar("variable", default=None)
    variable.set("something large")
    seen = []

    class Noting(dict):
        def get(self, host, default):
            seen.append(variable.get())
            return default

    health.answers = Noting()
    async with HealthCheckedEndpointGroup(of("a"), "/healthz") as group:
        await group.when_ready()

    assert [None] == seen


async def test_cancelled_end_leaves_nothing(health):
    """The task ends, and the session is closed."""
    health.answers["a"] = math.inf

    async def use():
        async with HealthCheckedEndpointGroup(of("a"), "/healthz", timeout=9.0):
            await asyncio.sleep(math.inf)

    task = asyncio.create_task(use())
    await asyncio.sleep(1.0)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert health.sessions[0].closed
    assert {asyncio.current_task()} == asyncio.all_tasks()


async def test_end_without_a_beginning_is_none(health):
    """Nothing happens."""
    group = HealthCheckedEndpointGroup(of("a"), "/healthz")

    assert None is await group.__aexit__(None, None, None)


async def test_group_that_nobody_keeps_is_collected(health):
    """After its block."""
    group = HealthCheckedEndpointGroup(of("a"), "/healthz")
    async with group:
        await group.when_ready()
    reference = weakref.ref(group)
    del group
    gc.collect()

    assert None is reference()


def test_another_event_loop_is_none_of_its_block(health):
    """Where it is not checked."""
    group = HealthCheckedEndpointGroup(of("a"), "/healthz")

    async def begin():
        await group.__aenter__()
        await group.when_ready()

    async def use():
        with pytest.raises(RuntimeError, match="in the same event loop"):
            await group.when_ready()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(begin())
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as other:
            other.run(use())
        runner.run(group.__aexit__(None, None, None))


# The coroutines of a closed loop end when they are collected, and say so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_was_closed_is_in_its_block_no_more(health):
    """The next loop may begin one."""
    group = HealthCheckedEndpointGroup(of("a"), "/healthz")

    async def begin():
        await group.__aenter__()
        await group.when_ready()

    async def use():
        async with group:
            await group.when_ready()
            return len(group.endpoints)

    loop = VirtualTimeLoop()
    loop.run_until_complete(begin())
    loop.close()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert 1 == runner.run(use())
    gc.collect()


async def test_call_that_waits_when_the_block_ends_is_no_trial(health):
    """Otherwise its time would run, and cancel the caller's task at its end."""
    servers = Servers(a=refused())
    inner = of("a", "b")
    async with servers.session(inner, retrying()) as client:
        await servers.get(client)
    await asyncio.sleep(9.0)
    health.takes = 0.5
    group = HealthCheckedEndpointGroup(inner, "/healthz")

    async def call_and_rest():
        async with servers.session(group, retrying()) as client:
            error = await servers.get(client)
        await asyncio.sleep(9.0)
        return error

    async with group:
        task = asyncio.create_task(call_and_rest())
        await asyncio.sleep(0.25)
    error = await task

    assert RuntimeError is type(error)
    assert [None, None] == [each.trial for each in inner.states.values()]
