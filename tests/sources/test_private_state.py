"""Check the tests: one module makes contexts and logs, and writes into them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from parsed import attribute_of_another, nodes_in, text_of

from aioretry_smithy import ClientRequestContext, RequestLog

TESTS = Path(__file__).parents[1]
KNOWING = TESTS / "support" / "calls.py"
STATE = {"ClientRequestContext", "RequestLog"}
MODULES = {
    f"aioretry_smithy.{name}"
    for name in (
        "_call.call",
        "_call.outcome",
        "_call.record",
        "_call.recorder",
        "_context.context",
        "_context.recording",
        "_log.facts",
        "_log.request_log",
    )
}
BESIDE = {
    *("CallResources", "ConnectionTimes", "Route", "UNSET", "Upload"),
    *("add_notes", "current_options", "judge_request", "note", "sending_with"),
    "watch_body",
}
"""What stands in these modules beside the state, and holds nothing of it."""

WRITTEN = {"delay", "delay_source", "stop_reason"}
PRIVATE = {
    name
    for kind in (ClientRequestContext, RequestLog)
    for name in dir(kind)
    if re.match("_[a-z]", name)
}

MAY_KNOW = re.compile(
    rf"\b(?:{'|'.join(sorted(PRIVATE))})\b"
    rf"|\b(?:{'|'.join(sorted(STATE))})(?:\(|\.__)"
    rf"|\.(?:{'|'.join(sorted(WRITTEN))})\b.*="
    r"|aioretry_smithy\._"
    r"|aioretry_smithy import _"
)
"""What the text of a module has that knows something: most need not be parsed."""


def known(source: str) -> set[str]:
    """Return what a module knows of the inside of contexts and logs."""
    found: set[str] = set()
    if not MAY_KNOW.search(source):
        return found
    for node in nodes_in(source):
        named = attribute_of_another(node)
        if named in PRIVATE:
            found.add(named)
        match node:
            case ast.Attribute(ctx=ast.Store()) if named in WRITTEN:
                found.add(named)
            case ast.Attribute(ast.Name(name), "__init__" | "__new__") | ast.Call(
                ast.Name(name) | ast.Attribute(attr=name)
            ) if name in STATE:
                found.add(name)
            case ast.ImportFrom(str(module), aliases):
                names = {each.name for each in aliases}
                imported = {f"{module}.{name}" for name in names}
                found |= imported & MODULES
                if names - BESIDE:
                    found |= {module} & MODULES
            case ast.Import(aliases):
                found |= {each.name for each in aliases} & MODULES
    return {name.removeprefix("aioretry_smithy.") for name in found}


def mirrored(path: Path) -> set[str]:
    """Return the module that a test is about: it may know that one."""
    return {f"_{path.parent.name}.{path.stem.removeprefix('test_')}"}


def test_one_module_knows_the_inside_of_contexts_and_logs():
    """No other makes one, reads or calls what is private, or sets what is public."""
    found = {
        path.relative_to(TESTS).as_posix(): known(text_of(path)) - mirrored(path)
        for path in TESTS.rglob("*.py")
        if path != KNOWING
    }

    assert {} == {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("RequestLog(request, loop)", "RequestLog"),
        ("aioretry_smithy.ClientRequestContext(request)", "ClientRequestContext"),
        ("ClientRequestContext.__init__", "ClientRequestContext"),
        ("ctx.log._record.delay", "_record"),
        ("ctx._move_deadline(None)", "_move_deadline"),
        ("monkeypatch.setattr(log, '_call', None)", "_call"),
        ("log.delay, log.delay_source = 1.0, source", "delay"),
        ("from aioretry_smithy._call.recorder import end_call", "_call.recorder"),
        ("from aioretry_smithy._context import context", "_context.context"),
        ("import aioretry_smithy._call.record", "_call.record"),
    ],
)
def test_ways_inside_are_found(source, name):
    """By a constructor, a private name, a public one that is set, or an import."""
    assert name in known(source)
