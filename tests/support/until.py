"""What no event tells: a condition, the lines that run, and what is left over."""

import asyncio
import contextlib
import gc
import sys
import types


async def until(condition):
    """Ask again and again whether something is so, for at most twenty seconds."""
    async with asyncio.timeout(20.0):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def lines_run(function):
    """Count the lines of Python that a call of *function* runs."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines


def is_ours(thing):
    """Say whether a thing, or the code of a frame, is from this package."""
    if isinstance(thing, types.FrameType):
        return "aioretry_smithy" in thing.f_code.co_filename
    return type(thing).__module__.partition(".")[0] == "aioretry_smithy"


def is_of_a_call(thing):
    """Say whether a thing is from this package, from aiohttp, or an exception."""
    if is_ours(thing) or isinstance(thing, BaseException):
        return True
    return type(thing).__module__.partition(".")[0] == "aiohttp"


@contextlib.contextmanager
def nothing_to_collect(counts=is_of_a_call):
    """Fail where something that counts would live on without the collector."""
    # What is collected may let go of more.
    while gc.collect():
        pass
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = [f"{type(thing)}: {thing!r}" for thing in gc.garbage if counts(thing)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert [] == left, "\n".join(left)
