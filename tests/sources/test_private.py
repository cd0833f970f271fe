"""Check the tests: what is private is for the tests of its room."""

import ast
import asyncio
import re
from collections import Counter
from functools import cache
from pathlib import Path

import aiohttp
import pytest
from parsed import attribute_of_another, nodes_in, nodes_of, text_of

from aioretry_smithy import ClientRequestContext, RequestLog

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "aioretry_smithy"
FOREIGN = {
    name
    for kind in (
        aiohttp.ClientSession,
        aiohttp.ClientResponse,
        aiohttp.StreamReader,
        aiohttp.TCPConnector,
        asyncio.SelectorEventLoop,
        asyncio.Task,
    )
    for name in (*dir(kind), *getattr(kind, "ATTRS", ()))
} | {
    *("_acquired", "_closed", "_conns", "_connection", "_resolver", "_scheduled"),
    *("_asdict", "_fields", "_replace", "_repr_html_", "_high_water", "_buffer"),
    *("_eof", "_size", "_timer", "_body", "_records", "_value"),
}
"""What others have: aiohttp, asyncio, named tuples, notebooks."""


GROUND = "ground"


def is_private(name):
    return re.match("_[a-z]", name) is not None


def room_of(path):
    """Return the part of the package, or of the tests, in which a file lies.

    What stands in no room is tested by what stands in no folder.
    """
    if len(path.parts) == 1 and path.name.startswith(("_", "test_")):
        return GROUND
    return path.parts[0].removesuffix(".py").removeprefix("_").removeprefix("test_")


@cache
def private_words():
    """Return the words without one of which a test knows nothing private."""
    modules = {part for path in PACKAGE.rglob("*.py") for part in path.parts}
    return {each.removesuffix(".py") for each in modules} | rooms_by_name().keys()


@cache
def rooms_by_name():
    """Return where in the package each private attribute or function is made."""
    rooms = {}
    for path in PACKAGE.rglob("*.py"):
        for node in nodes_of(path):
            match node:
                case (
                    ast.Attribute(attr=name, ctx=ast.Store())
                    | ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.AnnAssign(target=ast.Name(name))
                ) if is_private(name) and name not in FOREIGN:
                    room = room_of(path.relative_to(PACKAGE))
                    rooms.setdefault(name, set()).add(room)
    return rooms


def imported(node):
    """Return the modules of the package, private ones, which a statement imports."""
    match node:
        case ast.ImportFrom("aioretry_smithy", aliases):
            modules = [f"aioretry_smithy.{each.name}" for each in aliases]
        case ast.ImportFrom(str(module)):
            modules = [module]
        case ast.Import(aliases):
            modules = [each.name for each in aliases]
        case _:
            modules = []
    return [
        each for each in modules if re.match(r"aioretry_smithy(\.\w+)*\._[a-z]", each)
    ]


def known_in(source, room):
    """Return what a test knows that is private in another room than its own."""
    found = []
    if private_words().isdisjoint(re.findall(r"\b_[a-z]\w*", source)):
        return found
    for node in nodes_in(source):
        for module in imported(node):
            parts = [each.removeprefix("_") for each in module.split(".")[1:]]
            if len(parts) == 1 and (PACKAGE / f"_{parts[0]}.py").is_file():
                parts = [GROUND]
            if room not in parts:
                found.append(("imports", module))
        name = attribute_of_another(node)
        if name is not None and is_private(name):
            rooms = rooms_by_name().get(name)
            if rooms and room not in rooms:
                found.append(("names", name))
    return found


def test_what_is_private_is_known_to_the_tests_of_its_room():
    """Elsewhere there is no more of it than there was; with less, lower the bounds.

    A public name will do for most: ``RequestLog.of``, ``capture_logs``, those of
    ``aioretry_smithy.testing``.
    """
    found = {
        path.relative_to(TESTS): known_in(
            text_of(path), room_of(path.relative_to(TESTS))
        )
        for path in TESTS.rglob("*.py")
    }
    counted = Counter(kind for each in found.values() for kind, name in each)
    known = {str(path): each for path, each in found.items() if each}

    assert 86 >= counted["imports"], known
    assert 43 >= counted["names"], known


@pytest.mark.parametrize(
    ("source", "room", "expected"),
    [
        ("from aioretry_smithy._log.tree import draw", "cli", ["_log.tree"]),
        ("from aioretry_smithy._log.tree import draw", "log", []),
        ("from aioretry_smithy import _log", "cli", ["_log"]),
        ("import aioretry_smithy._log", "cli", ["_log"]),
        (
            "from aioretry_smithy.testing._virtual_time import Loop",
            "log",
            ["testing._virtual_time"],
        ),
        ("from aioretry_smithy.__main__ import main", "log", []),
        ("limit._try_enter(0.0)", "call", ["_try_enter"]),
        ("limit._try_enter(0.0)", "limits", []),
        ("monkeypatch.setattr(limit, '_try_enter', None)", "call", ["_try_enter"]),
        ("self._try_enter", "call", []),
        ("session._request", "call", []),
    ],
)
def test_ways_to_what_is_private_are_found(source, room, expected):
    """An import of any form, a name that is read, and one that is replaced."""
    found = [
        name.removeprefix("aioretry_smithy.") for _, name in known_in(source, room)
    ]

    assert expected == found


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
    *("CallResources", "ConnectionTimes", "Upload"),
    *("add_notes", "judge_request", "note", "watch_body"),
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


def known(source):
    """Return what a module knows of the inside of contexts and logs."""
    found = set()
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


def mirrored(path):
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
