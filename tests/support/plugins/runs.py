"""A plugin: one run of the demo, eager threads, and examples that find public names."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import logging
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from filelock import FileLock
from yarl import URL

import aioretry_smithy
import aioretry_smithy.smithy
import aioretry_smithy.testing
from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.demo import play


class DemoRun(NamedTuple):
    """The output of the demo, and how long it took."""

    text: str
    json: str
    errors: str
    seconds: float


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The demo, which waits for real: one run for all tests and all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    file = folder / "demo.json"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            file.write_text(json.dumps(run_demo()), encoding="utf-8")
    return DemoRun(*json.loads(file.read_text(encoding="utf-8")))


def run_demo():
    """Run the demo; what is printed for machines is of the same calls."""
    out, as_json, errors = io.StringIO(), io.StringIO(), io.StringIO()
    played = []

    async def record(show):
        def record_and_show(call):
            played.append(call)
            show(call)

        await play(record_and_show)

    async def replay(show):
        for call in played:
            show(call)

    start = time.monotonic()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(errors):
        patch.setattr("aioretry_smithy._cli.demo.play", record)
        with contextlib.redirect_stdout(out):
            code = main(["demo"])
        seconds = time.monotonic() - start
        patch.setattr("aioretry_smithy._cli.demo.play", replay)
        with contextlib.redirect_stdout(as_json):
            code_as_json = main(["demo", "--json"])

    assert [0, 0] == [code, code_as_json]
    return DemoRun(out.getvalue(), as_json.getvalue(), errors.getvalue(), seconds)


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


FACADES = (aioretry_smithy, aioretry_smithy.testing, aioretry_smithy.smithy)


def pytest_configure(config):
    """Prepare for doctests, only where they are run: the move confuses mutmut."""
    if config.getoption("doctestmodules"):
        _move_methods_to_facade()


def _move_methods_to_facade():
    """Let doctest find the methods of classes that say they are of the facade."""
    for module in FACADES:
        for name in module.__all__:
            public = getattr(module, name)
            for attribute in vars(public).values() if inspect.isclass(public) else ():
                function = getattr(attribute, "__func__", attribute)
                if inspect.isfunction(function):
                    function.__module__ = public.__module__


def pytest_collection_modifyitems(items):
    """Let the examples in docstrings use public names without importing them."""
    names = {"aiohttp": aiohttp, "asyncio": asyncio, "logging": logging, "URL": URL}
    common, testing, smithy = (
        {name: getattr(module, name) for name in module.__all__} for module in FACADES
    )
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            # RetryStrategy is in two facades.
            inside = item.path.parent.name == "smithy"
            own, other = (smithy, common) if inside else (common, smithy)
            item.dtest.globs |= names | testing | other | own
