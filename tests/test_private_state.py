"""Check the tests: one module makes contexts and logs, and writes into them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from aioretry_smithy import ClientRequestContext, RequestLog

TESTS = Path(__file__).parent
KNOWING = TESTS / "calls.py"
STATE = {"CallFacts", "ClientRequestContext", "RequestLog"}
MODULES = {
    f"aioretry_smithy.{name}"
    for name in (
        "_call.context",
        "_call.recording",
        "_log.call_facts",
        "_log.outcome",
        "_log.record",
        "_log.request_log",
    )
}
WRITTEN = {"delay", "delay_source", "stop_reason"}
PRIVATE = {
    name
    for kind in (ClientRequestContext, RequestLog)
    for name in dir(kind)
    if re.match("_[a-z]", name)
}

EXCEPTIONS = {
    "call/test_recording.py": {"_call.recording"},  # what it tests
    "call/test_resources.py": {"_call.context", "_resources"},  # what it tests
    "integration/clients/test_fsspec.py": {"_session"},  # also a name of fsspec's
    "integration/test_short_lane_is_taken.py": {"ClientRequestContext"},  # counts them
    "integration/test_two_lanes_at_odds.py": {"_is_settled"},  # compares all of it
    "limits/test_short_lane.py": {"ClientRequestContext"},  # counts them
    "log/test_calls_inside.py": {"_calls"},  # no list is made unless one is needed
    "rpc/test_quick_lane.py": {"RequestLog"},  # counts them
    "simulation/test_process.py": {"ClientRequestContext"},  # counts them
    "typing/api.py": {"ClientRequestContext"},  # whose types are public
}
"""What a module may know all the same. Nothing is added here; what goes, goes here."""


def known(source: str) -> set[str]:
    """Return what a module knows of the inside of contexts and logs."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(ast.Name("self" | "cls")):
                pass
            case (
                ast.Attribute(attr=name)
                | ast.Call(args=[_, ast.Constant(str(name)), *_])
            ) if name in PRIVATE:
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()) if name in WRITTEN:
                found.add(name)
            case ast.Attribute(ast.Name(name), "__init__" | "__new__") | ast.Call(
                ast.Name(name) | ast.Attribute(attr=name)
            ) if name in STATE:
                found.add(name)
            case ast.ImportFrom(str(module), aliases):
                imported = {module, *(f"{module}.{each.name}" for each in aliases)}
                found |= imported & MODULES
            case ast.Import(aliases):
                found |= {each.name for each in aliases} & MODULES
    return {name.removeprefix("aioretry_smithy.") for name in found}


def test_one_module_knows_the_inside_of_contexts_and_logs():
    """No other makes one, reads or calls what is private, or sets what is public."""
    found = {
        path.relative_to(TESTS).as_posix(): known(path.read_text(encoding="utf-8"))
        for path in TESTS.rglob("*.py")
        if path != KNOWING
    }

    assert EXCEPTIONS == {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("RequestLog(request, loop)", "RequestLog"),
        ("aioretry_smithy.ClientRequestContext(request)", "ClientRequestContext"),
        ("ClientRequestContext.__init__", "ClientRequestContext"),
        ("ctx.log._record_failure(cause)", "_record_failure"),
        ("ctx._is_sent = True", "_is_sent"),
        ("monkeypatch.setattr(log, '_outcome', None)", "_outcome"),
        ("log.delay, log.delay_source = 1.0, source", "delay"),
        ("from aioretry_smithy._call.recording import record_cut", "_call.recording"),
        ("from aioretry_smithy._call import context", "_call.context"),
        ("import aioretry_smithy._log.record", "_log.record"),
    ],
)
def test_ways_inside_are_found(source, name):
    """By a constructor, a private name, a public one that is set, or an import."""
    assert name in known(source)
