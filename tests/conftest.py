"""Fixtures for all tests: virtual time, no task left behind, mocks that fit aiohttp."""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import random
from pathlib import Path

import aioresponses
import hypothesis
import pytest
from fake_responses import Recorder, sent_to

from aioretry_smithy.testing import VirtualTimeLoop, patch_aioresponses

pytest_plugins = ["quick_workers", "runs", "served"]
"""Of ``tests/support/plugins``."""

TESTS = Path(__file__).parent

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

REAL_TIME = [
    TESTS / name for name in ("docs", "integration", "matrices", "tools/benchmarks")
]
"""The folders whose tests meet sockets or processes, which need a real clock.

Those of them that do not are marked with ``virtual_time``."""

# The same examples each time in continuous integration, and no deadline for one of
# them on machines that are shared. "thorough" runs in one environment of tox, "release"
# before a release.
IN_CI = bool(os.environ.get("CI"))
for profile, examples in {"quick": 10, "thorough": 30, "release": 100}.items():
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


def pytest_report_header():
    """Say what the tests run against; ``.ci/run`` collects these lines."""
    rich = "with" if importlib.util.find_spec("rich") else "without"
    return (
        f"tested: Python {platform.python_version()}, "
        f"aiohttp {importlib.metadata.version('aiohttp')}, {rich} rich"
    )


def pytest_asyncio_loop_factories(item):
    """Run async tests in virtual time, except where they meet the outside world."""
    is_real = any(map(item.path.is_relative_to, REAL_TIME))
    if is_real and not item.get_closest_marker("virtual_time"):
        name = os.environ.get("AIORETRY_SMITHY_TEST_LOOP", "asyncio")
        return {"real": importlib.import_module(name).new_event_loop}
    return {"virtual": VirtualTimeLoop}


@pytest.fixture(autouse=True)
def _no_task_left(request):
    """Fail an async test that leaves a task behind."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_task_check")


@pytest.fixture
async def _task_check():
    yield
    await asyncio.sleep(0)  # a task cancelled last needs one more turn to end
    left = asyncio.all_tasks() - {asyncio.current_task()}

    assert not left


@pytest.fixture
def draw(monkeypatch):
    """Let chance draw 0.0 each time, or the number that is given then."""

    def draw(number):
        monkeypatch.setattr(random, "random", lambda: number)

    draw(0.0)
    return draw


@pytest.fixture
def aioresponses_mock():
    """Mocked answers by aioresponses, on every aiohttp that we support."""
    with patch_aioresponses(), aioresponses.aioresponses() as mock:
        yield mock


@pytest.fixture
def wire(monkeypatch):
    """Record the requests of all sessions in place of sending them."""
    return sent_to(Recorder(), monkeypatch)
