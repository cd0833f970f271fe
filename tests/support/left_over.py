"""Find the garbage that a call leaves for the collector; there must be none."""

from __future__ import annotations

import contextlib
import gc
import types


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
    gc.collect()
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
