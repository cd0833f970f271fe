"""A plugin: one run of the demo, for all tests that look at it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from typing import NamedTuple

import pytest
from filelock import FileLock

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
