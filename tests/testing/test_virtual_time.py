"""The virtual clock: exact, free of cost, never stuck, never ahead of the work."""

import asyncio
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aioretry_smithy.testing._virtual_time import VirtualTimeLoop


def run(coroutine):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


def now():
    return asyncio.get_running_loop().time()


async def wait_for_nothing():
    await asyncio.get_running_loop().create_future()


async def test_tests_run_in_virtual_time():
    """An async test needs no mark to run on the virtual loop, which starts at zero."""
    assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    assert 0.0 == now()


@pytest.mark.parametrize("delay", [0.1, 1 / 3, 1e-10, 86_400.0 * 400, 1e300])
async def test_any_sleep_ends_exactly(delay):
    """Fractions, billionths and years end exactly too, one after the other."""
    await asyncio.sleep(0.7)
    end = 0.7 + delay
    await asyncio.sleep(delay)
    assert end == now()

    await asyncio.sleep(delay)

    assert end + delay == now()


async def test_close_timers_stay_apart():
    """A timer a billionth after another one does not fire early with it."""
    loop = asyncio.get_running_loop()
    fired_at = []
    for when in (1.0, 1.0 + 5e-10):
        loop.call_at(when, lambda: fired_at.append(now()))
    await asyncio.sleep(2.0)

    assert [1.0, 1.0 + 5e-10] == fired_at


async def test_time_never_moves_backwards():
    """A timer set in the past fires at once, and the clock stays where it is."""
    await asyncio.sleep(5.0)
    fired_at = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_at(2.0, lambda: fired_at.set_result(now()))

    assert 5.0 == await fired_at
    assert 5.0 == now()


async def test_time_stands_still_while_there_is_work():
    """Passing control around costs no time, however often."""

    async def busy():
        for _ in range(1000):
            await asyncio.sleep(0)
        return now()

    sleeper = asyncio.create_task(asyncio.sleep(1.0))

    assert 0.0 == await busy()

    await sleeper


async def test_cancelled_timer_moves_no_time():
    """A timeout that was not needed leaves the clock alone."""
    async with asyncio.timeout(100.0):
        await asyncio.sleep(1.0)
    await asyncio.sleep(1.0)

    assert 2.0 == now()


def test_deadlock_names_the_tasks():
    """A run that nothing can wake ends in one line with the time and the tasks."""

    async def main():
        await asyncio.sleep(3.0)
        await wait_for_nothing()

    with pytest.raises(RuntimeError) as caught:
        run(main())

    message = str(caught.value)
    assert message.startswith(
        "deadlock at virtual time 3.0: no timer, thread or socket can wake Task-"
    )
    assert message.endswith("main)")
    assert "\n" not in message


def test_deadlock_of_many_tasks_names_a_few():
    """The message stays one readable line when very many tasks wait."""

    async def main():
        await asyncio.gather(*(wait_for_nothing() for _ in range(20)))

    with pytest.raises(RuntimeError, match=r"(Task-\d+ \(\S+\), ){5}16 more$"):
        run(main())


def test_deadlock_without_tasks():
    """A bare loop that was left to run for ever is told apart as well."""
    loop = VirtualTimeLoop()
    try:
        with pytest.raises(RuntimeError, match=r"can wake the loop$"):
            loop.run_forever()
    finally:
        loop.close()


def test_endless_sleep_is_a_deadlock():
    """A timer at infinity wakes nobody."""
    with pytest.raises(RuntimeError, match=r"^deadlock at virtual time 0\.0"):
        run(asyncio.sleep(math.inf))


async def test_endless_sleep_beside_a_timer():
    """A sleep without end is no deadlock while another timer is set."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(math.inf), 7.0)

    assert 7.0 == now()


@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_thread_is_waited_for(seconds):
    """Work in a thread is no deadlock and takes no virtual time."""
    result = await asyncio.to_thread(lambda: time.sleep(seconds) or "done")

    assert "done" == result
    assert 0.0 == now()


async def test_thread_wins_over_a_timeout():
    """A timer does not fire while a thread works, since the clock stands still."""
    async with asyncio.timeout(0.001):
        await asyncio.to_thread(time.sleep, 0.05)

    assert 0.0 == now()


async def test_executor_of_ones_own():
    """Any executor counts, and several threads at once are all waited for."""
    loop = asyncio.get_running_loop()
    sleeper = asyncio.create_task(asyncio.sleep(1.0))
    with ThreadPoolExecutor(2) as executor:
        calls = [loop.run_in_executor(executor, time.sleep, 0.02) for _ in range(4)]
        await asyncio.gather(*calls)
    assert 0.0 == now()

    await sleeper

    assert 1.0 == now()


async def test_error_of_a_thread():
    """A call that raises in its thread gives the clock free again."""
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(lambda: 1 / 0)
    await asyncio.sleep(1.0)

    assert 1.0 == now()


async def test_cancelled_thread_call():
    """A call nobody waits for any more does not hold the clock."""
    release = threading.Event()
    call = asyncio.create_task(asyncio.to_thread(release.wait))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await asyncio.sleep(1.0)
    release.set()

    assert 1.0 == now()


def test_shutdown_waits_for_threads():
    """Closing the runner waits for a running thread for real and without a warning."""
    ended = threading.Event()

    async def main():
        loop = asyncio.get_running_loop()
        started = loop.create_future()

        def work():
            loop.call_soon_threadsafe(started.set_result, None)
            time.sleep(0.05)
            ended.set()

        call = loop.run_in_executor(None, work)
        await started
        call.cancel()

    run(main())

    assert ended.is_set()


async def test_shutdown_takes_no_virtual_time():
    """The time limit of a shutdown does not fire: its clock stands still."""
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(int)
    await loop.shutdown_default_executor()

    assert 0.0 == now()


async def test_ready_sockets_come_before_time():
    """Bytes that are already there are read before the next timer fires."""
    server = await asyncio.start_server(echo_and_close, "127.0.0.1", 0)
    timer = asyncio.create_task(asyncio.sleep(60.0))
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()

    assert b"hello\n" == answer
    assert not timer.done()

    timer.cancel()


async def echo_and_close(reader, writer):
    writer.write(await reader.readline())
    writer.close()


@pytest.mark.skipif(
    "sys.version_info < (3, 12)", reason="asyncio.run has no loop_factory before 3.12"
)
def test_asyncio_run():
    """``asyncio.run`` takes the loop as its factory."""
    asyncio.run(asyncio.sleep(1.0), loop_factory=VirtualTimeLoop)


def test_debug_mode():
    """Debug mode works too, and no callback counts as slow."""

    async def main():
        await asyncio.sleep(10.0)
        await asyncio.to_thread(int)
        return now()

    with asyncio.Runner(debug=True, loop_factory=VirtualTimeLoop) as runner:
        assert 10.0 == runner.run(main())
