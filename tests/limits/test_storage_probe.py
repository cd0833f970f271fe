"""The way to a storage that may be away."""

import asyncio
import gc
import logging
from contextvars import ContextVar
from functools import partial

import pytest
from chains import now

from aioretry_smithy._limits.storage import StorageProbe
from aioretry_smithy.testing import VirtualTimeLoop

LOST = ConnectionError("no route")
variable = ContextVar("variable", default="none")


@pytest.fixture
def probe():
    return StorageProbe("orders", "calls go on")


class Storage:
    """Answers a question after some seconds, or raises."""

    def __init__(self, *answers, seconds=0.0):
        self.answers = list(answers)
        self.seconds = seconds
        self.asked = []

    async def __call__(self):
        self.asked.append(now())
        await asyncio.sleep(self.seconds)
        answer = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("storage", "ends"),
    [(Storage(LOST, seconds=0.3), 0.6), (Storage("late", seconds=5.0), 1.0)],
    ids=["error", "silence"],
)
async def test_a_storage_that_does_not_answer_is_away(probe, storage, ends, caplog):
    """It has a second; the warning says whose it is, what follows and why."""
    assert None is await probe.ask(storage)
    assert probe.is_down
    assert ends == now()
    (message,) = caplog.messages
    assert "orders: no answer from the storage, so calls go on: " in message


async def test_a_storage_that_fails_once_is_asked_once_more(probe, caplog):
    """It may have closed a connection that was idle, which says nothing of it."""
    storage = Storage(LOST, "yes", seconds=0.1)

    assert "yes" == await probe.ask(storage)
    assert ([0.0, 0.1], False, []) == (storage.asked, probe.is_down, caplog.messages)


async def test_silence_after_a_failure_takes_no_longer_than_any(probe):
    """There is one second for both questions."""

    async def fail_and_hang():
        asked.append(now())
        await asyncio.sleep(0.4 if len(asked) == 1 else 60.0)
        raise LOST

    asked = []

    assert None is await probe.ask(fail_and_hang)
    assert ([0.0, 0.4], 1.0, True) == (asked, now(), probe.is_down)


async def test_a_deadline_that_is_sooner_says_nothing_of_the_storage(probe, caplog):
    """There is no answer, and no warning either; the question goes on."""
    asked = probe.ask(Storage("late", seconds=0.5))

    assert None is await probe.answer(asked, deadline=0.2)
    assert 0.2 == now()
    assert "late" == await asked
    assert (0.5, False, []) == (now(), probe.is_down, caplog.messages)


async def test_a_storage_that_is_away_is_so_for_all_who_ask(probe, caplog):
    """One of the questions has waited for a second, and the others end with it."""
    first = probe.ask(Storage("late", seconds=5.0))
    await asyncio.sleep(0.75)
    second = probe.ask(Storage("late", seconds=5.0))

    assert None is await probe.answer(second)
    assert None is await probe.answer(first)
    assert (1.0, 1) == (now(), len(caplog.messages))


async def test_one_look_a_second_finds_out_that_it_is_back(probe):
    """The first one a second after the storage was lost."""
    await probe.ask(Storage(LOST))
    storage = Storage(LOST, LOST, "yes")
    aways = []
    for _ in range(8):
        await asyncio.sleep(0.5)
        probe.probe(storage)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        aways.append(probe.is_down)

    assert [1.0, 2.0, 3.0, 4.0] == storage.asked
    assert [True] * 5 + [False] * 3 == aways


async def test_a_look_that_finds_silence_ends_after_a_second(probe):
    """And the next one begins a second later."""
    await probe.ask(Storage(LOST))
    storage = Storage("late", seconds=60.0)
    for _ in range(9):
        await asyncio.sleep(0.5)
        probe.probe(storage)
    await asyncio.sleep(1.0)

    assert [1.0, 3.0] == [at for at in storage.asked if at < 5.0][:2]
    assert probe.is_down


async def test_a_look_belongs_to_no_call(probe):
    """It sees nothing of the context of the call that began it."""
    seen = []

    async def question():
        seen.append(variable.get())

    await probe.ask(Storage(LOST))
    await asyncio.sleep(1.0)
    variable.set("a call")
    probe.probe(question)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert ["none"] == seen


async def test_there_is_one_warning_a_minute(probe, caplog):
    """However often the storage is looked for."""
    for _ in range(150):
        probe.probe(Storage(LOST))
        await asyncio.sleep(1.0)

    assert 3 == len(caplog.messages)
    assert {logging.WARNING} == {record.levelno for record in caplog.records}


async def test_a_cancelled_call_says_nothing_of_the_storage(probe):
    """The cancellation goes on outwards, and the question goes on."""
    asked = probe.ask(Storage("late", seconds=0.5))
    task = asyncio.create_task(probe.answer(asked))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert "late" == await asked
    assert not probe.is_down


async def test_a_library_that_cancels_a_question_has_no_answer(probe, caplog):
    """Nobody here has: what it waited for was given up, such as a connection."""

    async def given_up():
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        return await gone

    assert None is await probe.answer(probe.ask(given_up))
    assert probe.is_down
    (message,) = caplog.messages
    assert message.endswith("ConnectionError('the query was cancelled')")


async def deaf():
    """Answer when it is cancelled, as asyncio.wait_for could before Python 3.12."""
    try:
        await asyncio.sleep(5.0)
    except asyncio.CancelledError:
        return "late"


async def test_a_cancellation_that_a_library_swallows_ends_the_call(probe):
    """A task that is cancelled must not go on, or its owner waits forever."""
    asking = probe.ask(deaf)
    await asyncio.sleep(0.5)
    asking.cancel()
    await asyncio.wait([asking])

    assert asking.cancelled()
    assert not probe.is_down


async def test_a_late_answer_to_a_cancellation_is_none(probe):
    """The second that a storage has is over."""
    assert None is await probe.ask(deaf)
    assert probe.is_down


def test_questions_of_a_closed_loop_end_with_it(probe, caplog):
    """They are not there to be cancelled where the storage is found away."""
    hung = Storage("late", seconds=60.0)

    async def leave():
        probe.ask(hung)
        probe.send(hung)
        await asyncio.sleep(0.1)

    loop = VirtualTimeLoop()
    loop.run_until_complete(leave())
    loop.close()

    async def ask():
        other = probe.ask(hung)
        lost = await probe.ask(Storage(LOST))
        await asyncio.wait([other])
        return lost, other.cancelled()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert (None, True) == runner.run(ask())
    # So that no other test hears of the tasks that were lost.
    gc.collect()
    assert 1 == sum("no answer from the storage" in each for each in caplog.messages)


def test_a_new_loop_looks_at_once(probe):
    """Whatever the clock of the last one said."""

    async def lose():
        await asyncio.sleep(50.0)
        await probe.ask(Storage(LOST))

    async def look():
        probe.probe(Storage("yes"))
        await asyncio.sleep(0.1)
        return probe.is_down

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(lose())
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert not runner.run(look())


def loop_closed_with_questions(probe):
    """Return a loop that was closed while more questions were asked than go at once."""

    async def begin():
        for _ in range(100):
            probe.ask(Storage("late", seconds=0.5))
        await asyncio.sleep(0.1)

    loop = VirtualTimeLoop()
    loop.run_until_complete(begin())
    loop.close()
    return loop


class TestManyQuestions:
    """So many that the storage has no connection for each."""

    async def test_few_are_under_way_at_once(self, probe):
        """The others wait, in order, and each has its answer."""

        async def ask(number):
            nonlocal under_way
            under_way += 1
            most.append(under_way)
            await asyncio.sleep(0.001)
            under_way -= 1
            return number

        under_way, most = 0, []
        asked = [probe.ask(partial(ask, number)) for number in range(1, 1001)]

        assert [*range(1, 1001)] == await asyncio.gather(*map(probe.answer, asked))
        assert 32 == max(most)

    async def test_they_have_a_second_together(self, probe):
        """Of a storage that is silent, all hear at the same time."""
        asked = [probe.ask(Storage("late", seconds=5.0)) for _ in range(100)]

        assert [None] * 100 == await asyncio.gather(*map(probe.answer, asked))
        assert 1.0 == now()

    def test_a_loop_that_was_closed_holds_none_of_the_next_one_up(self, probe):
        """Its questions never end."""

        async def ask():
            return await probe.ask(Storage("yes"))

        loop = loop_closed_with_questions(probe)
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert "yes" == runner.run(ask())
        # So that no other test hears of the tasks that were lost.
        del loop
        gc.collect()

    def test_a_loop_that_was_closed_says_nothing_of_the_storage(self, probe):
        """Its questions are collected one after another, and wake each other."""

        async def look():
            probe.send(Storage("yes"))
            gc.collect()
            await asyncio.sleep(0.1)
            return probe.is_down

        loop = loop_closed_with_questions(probe)
        del loop
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            assert not runner.run(look())
