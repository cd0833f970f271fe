"""Steps with waits between them, run by a coroutine and by a thread."""

import asyncio

import pytest

from aioretry_smithy.smithy.steps import awaited, slept


class Steps:
    """Steps of one kind or another, which remember how they ended."""

    def __init__(self, *pauses, error=None):
        self.pauses = pauses
        self.error = error
        self.ended = False

    def run(self):
        try:
            yield from self.pauses
            if self.error is not None:
                raise self.error
            return "result"
        finally:
            self.ended = True


def now():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("pauses", [(), (1.0,), (1.0, 0.5)])
async def test_steps_are_awaited(pauses):
    """The loop waits for each pause, and the result comes at the end."""
    result = await awaited(Steps(*pauses).run())

    assert ("result", sum(pauses)) == (result, now())


@pytest.mark.parametrize("pauses", [(), (1.0,), (1.0, 0.5)])
def test_steps_are_slept_through(pauses):
    """The thread sleeps for each pause, and the result comes at the end."""
    sleeps = []
    result = slept(Steps(*pauses).run(), sleeps.append)

    assert ("result", [*pauses]) == (result, sleeps)


async def test_error_between_steps_is_raised():
    """What a step raises, the caller gets."""
    for error in KeyError("mine"), ValueError("other"):
        with pytest.raises(type(error)) as caught:
            await awaited(Steps(1.0, error=error).run())
        assert error is caught.value
        with pytest.raises(type(error)) as caught:
            slept(Steps(1.0, error=error).run(), float)
        assert error is caught.value


async def test_cancelled_steps_end_at_once():
    """What they hold is let go, also while the error is still at hand."""
    steps = Steps(5.0)
    task = asyncio.create_task(awaited(steps.run()))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task

    assert steps.ended
    assert caught.value.__traceback__ is not None


def test_interrupted_steps_end_at_once():
    """Ctrl-C while the thread sleeps lets go of what they hold."""
    steps = Steps(5.0)

    def interrupted(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        slept(steps.run(), interrupted)

    assert steps.ended
    assert caught.value.__traceback__ is not None
