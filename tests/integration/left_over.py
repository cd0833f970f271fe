"""Find the garbage that a call leaves for the collector; there must be none."""

from __future__ import annotations

import contextlib
import gc
import types

PACKAGES = ("aioretry_smithy", "aiohttp")


def is_ours(thing):
    """Say whether the collector would have to find something of a call."""
    if isinstance(thing, types.FrameType):
        return "aioretry_smithy" in thing.f_code.co_filename
    module = type(thing).__module__.partition(".")[0]
    return module in PACKAGES or isinstance(thing, BaseException)


@contextlib.contextmanager
def nothing_to_collect():
    """Fail where something of ours would live on without the collector."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = [f"{type(thing)}: {thing!r}" for thing in gc.garbage if is_ours(thing)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert [] == left
