"""A plugin: threads that take turns wherever a race can be."""

import random
import sys
import threading
import time
from pathlib import Path

import pytest

import aioretry_smithy

OURS = str(Path(aioretry_smithy.__file__).parent)


@pytest.fixture
def eager_threads():
    """Let threads that a test starts take turns inside our functions, so races are met.

    A thread gives up its turn before every few instructions of ours, by chance: where
    two threads read before either writes, one of them is bound to be such a place. It
    does so only for the first turns, since each costs time. What is to be shared has
    to be used at once then, by all threads at the same time.
    """
    interval, tracer = sys.getswitchinterval(), threading.gettrace()
    turns = iter(range(3000))
    chance = random.Random(0)

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and chance.random() < 0.2:
            if next(turns, None) is None:
                sys.settrace(None)
                return None
            time.sleep(0)
        return trace

    sys.setswitchinterval(1e-6)
    # Python 3.12.1 may crash where several threads trace instructions.
    if sys.version_info[:2] != (3, 12):
        threading.settrace(trace)
    yield
    threading.settrace(tracer)
    sys.setswitchinterval(interval)
