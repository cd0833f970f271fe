"""Fixtures for all tests: virtual time, no task left behind, mocks that fit aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import logging
import os
import platform
import random
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import aioresponses
import hypothesis
import pytest
from filelock import FileLock
from wire import Recorder
from yarl import URL

import aioretry_smithy
import aioretry_smithy.smithy
import aioretry_smithy.testing
from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.demo import Call, play
from aioretry_smithy.testing import VirtualTimeLoop, patch_aioresponses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
    from types import FrameType

TESTS = Path(__file__).parent
OURS = str(Path(aioretry_smithy.__file__).parent)

# What tests import, what type checkers read, and what is run by hand. Some of it
# imports what is not installed for tests.
collect_ignore = [
    "support",
    "typing",
    *(
        str(module)
        for module in (TESTS / "tools").rglob("*.py")
        if not module.stem.startswith("test_")
    ),
]

FACADES = (aioretry_smithy, aioretry_smithy.testing, aioretry_smithy.smithy)
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
"""Which of the processes of pytest-xdist this is, if it is one."""

REAL_TIME = [TESTS / name for name in ("docs", "integration", "tools/benchmarks")]
"""The folders whose tests meet sockets or processes, which need a real clock.

Those of them that do not are marked with ``virtual_time``."""

# The same examples each time in continuous integration, and no deadline for one of
# them on machines that are shared. "thorough" runs in one environment of tox.
IN_CI = bool(os.environ.get("CI"))
for profile, examples in {"quick": 20, "thorough": 100}.items():
    hypothesis.settings.register_profile(
        profile, deadline=None, derandomize=IN_CI, max_examples=examples
    )
# A few examples, always the same ones and not made smaller, for each mutant.
hypothesis.settings.register_profile(
    "mutation",
    deadline=None,
    derandomize=True,
    max_examples=25,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
)
hypothesis.settings.load_profile("quick")


def pytest_report_header() -> str:
    """Say what the tests run against; ``.ci/run`` collects these lines."""
    rich = "with" if importlib.util.find_spec("rich") else "without"
    return (
        f"tested: Python {platform.python_version()}, "
        f"aiohttp {importlib.metadata.version('aiohttp')}, {rich} rich"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Run half as many more than there are processors: many a test waits."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return len(os.sched_getaffinity(0)) * 3 // 2


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run async tests in virtual time, except where they meet the outside world."""
    is_real = any(map(item.path.is_relative_to, REAL_TIME))
    if is_real and not item.get_closest_marker("virtual_time"):
        name = os.environ.get("AIORETRY_SMITHY_TEST_LOOP", "asyncio")
        return {"real": importlib.import_module(name).new_event_loop}
    return {"virtual": VirtualTimeLoop}


def _move_methods_to_facade() -> None:
    """Let doctest find the methods of classes that say they are of the facade."""
    for module in FACADES:
        for name in module.__all__:
            public = getattr(module, name)
            for attribute in vars(public).values() if inspect.isclass(public) else ():
                function = getattr(attribute, "__func__", attribute)
                if inspect.isfunction(function):
                    function.__module__ = public.__module__


def pytest_configure(config: pytest.Config) -> None:
    """Prepare for doctests, only where they are run: the move confuses mutmut."""
    if config.getoption("doctestmodules"):
        _move_methods_to_facade()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the tests themselves out of what the collector of garbage looks at.

    There are thousands; many a test collects garbage, to see what is left.
    """
    gc.disable()
    collected = yield
    gc.enable()
    gc.freeze()
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Keep out of it, too, what pytest keeps of a file of tests."""
    ended = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return ended


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker go through a folder in an order of its own.

    In a fresh checkout none of them compiles what another is just compiling, then.
    """
    report = yield
    if WORKER and isinstance(collector, pytest.Directory):
        random.Random(WORKER).shuffle(report.result)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    items: list[pytest.Item],
) -> Generator[None, None, None]:
    """Bring the tests into the order that all workers have, and prepare doctests."""
    if WORKER:
        items.sort(key=lambda item: item.path)
    _let_examples_use_public_names(items)
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Leave out what takes a worker longest to tell of a test, and nobody reads."""
    report = yield
    report.keywords = {}
    return report


def _let_examples_use_public_names(items: list[pytest.Item]) -> None:
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


@pytest.fixture(autouse=True)
def _no_task_left(request: pytest.FixtureRequest) -> None:
    """Fail an async test that leaves a task behind."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_task_check")


@pytest.fixture
async def _task_check() -> AsyncIterator[None]:
    yield
    await asyncio.sleep(0)  # a task cancelled last needs one more turn to end
    left = asyncio.all_tasks() - {asyncio.current_task()}

    assert not left


class DemoRun(NamedTuple):
    """The output of the demo, and how long it took."""

    text: str
    json: str
    errors: str
    seconds: float


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, which waits for real: one run for all tests and all workers."""
    folder = tmp_path_factory.getbasetemp()
    if WORKER:
        folder = folder.parent
    file = folder / "demo.json"
    with FileLock(f"{file}.lock"):
        if not file.exists():
            file.write_text(json.dumps(run_demo()), encoding="utf-8")
    return DemoRun(*json.loads(file.read_text(encoding="utf-8")))


def run_demo() -> DemoRun:
    """Run the demo; what is printed for machines is of the same calls."""
    out, as_json, errors = io.StringIO(), io.StringIO(), io.StringIO()
    played: list[Call] = []

    async def record(show: Callable[[Call], None]) -> None:
        def record_and_show(call: Call) -> None:
            played.append(call)
            show(call)

        await play(record_and_show)

    async def replay(show: Callable[[Call], None]) -> None:
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


@pytest.fixture
def aioresponses_mock() -> Iterator[aioresponses.aioresponses]:
    """Mocked answers by aioresponses, on every aiohttp that we support."""
    with patch_aioresponses(), aioresponses.aioresponses() as mock:
        yield mock


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Record the requests of all sessions in place of sending them."""
    recorder = Recorder()

    async def _request(self: object, method: str, url: object, **options: Any) -> Any:
        return await recorder(self, method, url, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
    return recorder


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads that a test starts take turns inside our functions, so races are met.

    A thread gives up its turn before every few instructions of ours, by chance: where
    two threads read before either writes, one of them is bound to be such a place. It
    does so only for the first turns, since each costs time. What is to be shared has
    to be used at once then, by all threads at the same time.
    """
    interval, tracer = sys.getswitchinterval(), threading.gettrace()
    turns = iter(range(3000))
    chance = random.Random(0)

    def trace(frame: FrameType, event: str, arg: object) -> object:
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
