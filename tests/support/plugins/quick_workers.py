"""A plugin: processes of pytest-xdist spend their time on tests."""

import gc
import os
import random
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

TESTS = Path(__file__).parents[2]

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
"""Which of the processes this is, if it is one."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the tests themselves out of what the collector of garbage looks at.

    There are thousands; many a test collects garbage, to see what is left. A run took
    22 s of CPU until its first test, and 25 s with the collector at work.
    """
    gc.disable()
    collected = yield
    gc.enable()
    gc.freeze()
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Keep out of it, too, what pytest keeps of a file of tests.

    It is 20 objects a test: late in a run, ten collections took 0.1 s, and take 0.01 s.
    """
    ended = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return ended


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for no examples in the docstrings of tests, which have none."""
    collectors = yield
    if not file_path.is_relative_to(TESTS):
        return collectors
    return [each for each in collectors if not isinstance(each, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let each worker go through a folder in an order of its own.

    In a fresh checkout none of them compiles what another is just compiling, then: a
    run of three took 31 s of CPU until its first test, and 39 s in step.
    """
    report = yield
    if WORKER and isinstance(collector, pytest.Directory):
        random.Random(WORKER).shuffle(report.result)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Bring the tests into the order that all workers have."""
    if WORKER:
        items.sort(key=lambda item: item.path)
    yield


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """Let a worker tell what is printed, and no more.

    That a test begins, is set up, taken down and over makes four messages of six, each
    of which costs both processes time. They are sent where something reads them.
    """
    options = session.config.option
    if not WORKER or options.durations or options.xmlpath:
        return
    plugins = session.config.pluginmanager.get_plugins()
    (worker,) = (plugin for plugin in plugins if hasattr(plugin, "sendevent"))
    send = worker.sendevent

    def send_what_is_read(name, **about):
        if name in {"logstart", "logfinish"}:
            return
        if name == "testreport":
            report = about["data"]
            if report["outcome"] == "passed" and report["when"] != "call":
                return
        send(name, **about)

    worker.sendevent = send_what_is_read


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Leave out what takes a worker longest to tell of a test, and nobody reads."""
    report = yield
    report.keywords = {}
    return report
