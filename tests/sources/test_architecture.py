"""Check the source: layers, sizes, names, hands off others' privates."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from code_size import docstring_lines, size_of
from parsed import nodes_of, text_of

import aioretry_smithy

ROOT = Path(aioretry_smithy.__file__).parent
PACKAGE = ROOT.name

GROUND_FLOOR = {
    "_checks",
    "_clock",
    "_errors",
    "_facade",
    "_values",
}
"""The modules that stand in no room, and that every room may use."""

FLOORS = (
    {"_text"},
    {"ground floor"},
    {"_failures"},
    {"_request"},
    {"_call"},
    {"_log"},
    {"_context", "_report"},
    {"_bodies", "_policies", "smithy.*"},
    {
        "_breaker",
        "_limits",
        "_logging",
        "_retry",
        "_tokens",
    },
    {"_endpoints", "_hedging", "_resuming"},
    {"_session"},
    {"smithy"},
    {"__init__"},
    {"_telemetry"},
    {"limits", "opentelemetry", "prometheus", "redis", "testing"},
    {"_cli"},
    {"__main__"},
)
"""The rooms, from the bottom up; those of one floor do not know each other."""

TOUCH_AIOHTTP = {
    "_bodies.replayable_payload",
    "_bodies.response_content",
    "_bodies.request_body",
    "_call.outcome",
    "_call.recorder",
    "_call.time_limits",
    "_context.recording",
    "_endpoints.health",
    "_endpoints.client",
    "_failures.hints",
    "_failures.frames",
    "_log.error_text",
    "_request.arguments",
    "_request.endpoint",
    "_resuming.download",
    "_resuming.part",
    "_resuming.client",
    "_session.aiohttp_transport",
    "_session.transport",
    "_session.builder",
    "_session.install",
    "_session.deadline",
    "_session.session_chain",
    "_session.middlewares",
    "_session.request_classes",
}
"""The modules that may know private names of aiohttp."""

PUBLIC_AIOHTTP = {"abc", "payload", "test_utils", "typedefs", "web"}
"""The modules of aiohttp, apart from the package itself, that its documents name."""

ASK_OUTSIDE = {
    "_call.call": {"time.time"},  # the time of day, for people
    "limits": {"time.time"},  # by which storages count
    # What is used outside of any event loop, the time of day, and dice unless others
    # are given.
    "_clock": {"random.random", "time.monotonic", "time.time"},
    "testing._virtual_time": {"time.time"},  # where virtual time begins
    # It seeds the dice for a simulation, and gives them back.
    "testing._fleet": {"random.Random", "random.getstate", "random.setstate"},
}
"""The modules that may use a clock other than the event loop's, or dice."""

NO_NAMES = {"_OTHER"}
"""Words that look like private names: what OpenTelemetry calls an unknown method."""

FORBIDDEN_NAMES = {"base", "helpers", "impl", "manager", "utils"}
MAX_CODE_LINES = 350

PUBLIC_TWICE = {
    *("AdaptiveRetryStrategy", "SimpleRetryStrategy", "StandardRetryStrategy"),
    *("CircuitBreakerMetrics", "ConcurrencyLimitMetrics"),
    *("EndpointGroupMetrics", "RetryBudgetMetrics"),
    *("Failure", "RetryStrategy"),
}
"""Classes that are public under one name in two modules, or have Smithy's name."""

PRIVATE_OF_OTHERS = {
    # aiohttp has attributes of these names too, and these are meant.
    ("_bodies.response_content", "_headers"),
    ("_bodies.replayable_payload", "_headers"),
    ("_bodies.response_content", "_body"),
    ("_bodies.response_content", "_size"),
    ("_endpoints.health", "_request"),
    ("testing._transport", "_request"),
    # Users derive from these classes, or see them, and these are not for users.
    ("_retry.smithy_strategies", "_may_wait"),
    ("_retry.smithy_strategies", "_release"),
    ("_session.functions", "_name"),
    ("redis._budget", "_become"),
    ("redis._budget", "_refuse"),
    ("redis._circuits", "_clock"),
    ("redis._circuits", "_enter"),
    ("redis._circuits", "_state"),
    ("testing._fleet", "_base_url"),
    ("testing._fleet", "_group"),
    ("_telemetry.series", "_seen"),
}
"""Private attributes of another room's objects. Nothing is added here."""


def module_name(path):
    """Return the module's name inside the package, a package's without ``__init__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = [name for name, path in MODULES.items() if path.name == "__init__.py"]


def modules():
    """Return the nodes of each module, once a test asks: each worker imports this."""
    return {name: nodes_of(path) for name, path in MODULES.items()}


def room(name):
    """Return the room that a module stands in."""
    if name in GROUND_FLOOR:
        return "ground floor"
    head, dot, _ = name.partition(".")
    return f"{head}.*" if dot and head == "smithy" else head


def floor(name):
    return next(level for level, rooms in enumerate(FLOORS) if room(name) in rooms)


def is_empty(name):
    return not text_of(MODULES[name]).strip()


def imported(name, *, without=()):
    """Return the modules of the package that a module imports, also for types."""
    package = [PACKAGE, *name.split(".")]
    if name not in PACKAGES or name == "__init__":
        package.pop()
    found = set()
    for node in nodes_of(MODULES[name]):
        if node in without:
            continue
        if isinstance(node, ast.Import):
            found |= {inside(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                target = inside(f"{source}.{alias.name}")
                found.add(target if target in MODULES else inside(source))
    return found & {*MODULES}


def inside(module):
    # Two of our modules have the name of the package that they are for.
    package, _, name = module.partition(".")
    return (name or "__init__") if package == PACKAGE else ""


@cache
def imports():
    """Return what each module imports of the package."""
    return {name: imported(name) for name in MODULES}


def test_imports_point_downwards():
    """A module imports only from rooms below its own or inside it, for types too."""
    upwards = [
        f"{name} imports {target}"
        for name, targets in imports().items()
        for target in targets
        if not is_empty(target)
        and room(target) != room(name)
        and floor(target) >= floor(name)
    ]

    assert [] == upwards


def imported_for_types(name):
    """Return the import statements of a module that only type checkers run."""
    blocks = (
        node
        for node in nodes_of(MODULES[name])
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    return {statement for block in blocks for statement in block.body}


def test_no_modules_import_each_other():
    """There is no circle of imports, but for types inside of a room."""
    rest = {
        name: {
            target
            for target in targets
            if room(target) != room(name)
            or target in imported(name, without=imported_for_types(name))
        }
        for name, targets in imports().items()
    }
    while free := [name for name, targets in rest.items() if not targets & {*rest}]:
        for name in free:
            del rest[name]

    assert {} == rest


@cache
def has_decorator(name):
    """Return whether a module defines a decorator of clients."""
    return any(
        isinstance(node, ast.ClassDef)
        and node.name.endswith("Client")
        and any("Client" in ast.unparse(base) for base in node.bases)
        for node in nodes_of(MODULES[name])
    )


def test_decorators_do_not_know_each_other():
    """Policies import no decorator, and neither do other decorators."""
    known = [
        f"{name} imports {target}"
        for name, targets in imports().items()
        for target in targets
        if has_decorator(target)
        and target != "_context.client"
        and floor(name) <= floor("_retry.client")
    ]

    assert [] == known


def may_be_long(path):
    """Say whether a module is worth being counted in tokens, which takes long."""
    docstrings = {*docstring_lines(nodes_of(path))}
    return len(text_of(path).splitlines()) - len(docstrings) > MAX_CODE_LINES


def test_modules_are_small():
    """A module that has grown over the limit is more than one idea."""
    lines = {
        name: size_of(text_of(path)).code_lines
        for name, path in MODULES.items()
        if may_be_long(path)
    }

    assert {} == {name: n for name, n in lines.items() if n > MAX_CODE_LINES}


def test_a_class_has_a_name_of_its_own():
    """Who searches for the name of a class finds it once.

    Public names of two modules may be the same: both back ends measure breakers.
    """
    homes = {}
    for name, nodes in modules().items():
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(name)
    alike = {name: sorted(found) for name, found in homes.items() if len(found) > 1}

    assert PUBLIC_TWICE == {*alike}, alike


def test_modules_have_telling_names():
    """A module is named for what it holds, not for being handy."""
    parts = {name: {part.strip("_") for part in name.split(".")} for name in MODULES}

    assert [] == [name for name in MODULES if parts[name] & FORBIDDEN_NAMES]


@pytest.mark.parametrize(
    "name", [name for name in PACKAGES if name.startswith("_") and name != "__init__"]
)
def test_private_packages_are_empty(name):
    """The ``__init__`` of a private package re-exports nothing."""
    assert is_empty(name)


@cache
def own_names():
    """Return all names that the package itself gives to anything."""
    names = set()
    for node in (node for nodes in modules().values() for node in nodes):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.ClassDef(name) | ast.Name(name, ast.Store()):
                names.add(name)
            case ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                names.add(name)
            case ast.alias(name, asname):
                names.add(asname or name)
    return names


def private_names(nodes):
    """Return the private names that a module uses and the package does not give.

    A key is suspect in any case, since an attribute of ours needs none.
    """
    used, keys = set(), set()
    for node in nodes:
        match node:
            case ast.Subscript(slice=ast.Constant(str(key))) | ast.Call(
                ast.Name("getattr" | "setattr" | "delattr" | "hasattr"),
                [_, ast.Constant(str(key)), *_],
            ):
                keys.add(key)
            case ast.Attribute(attr=name) | ast.Constant(str(name)):
                used.add(name)
    foreign = (used - own_names() - NO_NAMES) | keys
    return {
        name
        for name in foreign
        if re.fullmatch(r"_(?!_)\w+", name) and PACKAGE not in name
    }


def names_given(nodes):
    """Return the private attributes that a module gives to objects."""
    names = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.AnnAssign(ast.Name(name)) | ast.Attribute(
                ast.Name("self"), name, ast.Store()
            ):
                names.add(name)
            case ast.Assign([ast.Name("__slots__")], value):
                names |= {
                    each.value for each in ast.walk(value) if type(each) is ast.Constant
                }
            case ast.Assign([ast.Name(name)]):
                names.add(name)
    return {name for name in names if re.fullmatch(r"_(?!_)\w+", str(name))}


def private_of_others():
    """Return the private attributes of another room's objects that modules use."""
    given = {}
    for name, nodes in modules().items():
        given.setdefault(room(name), set()).update(names_given(nodes))
    used = set()
    for name, nodes in modules().items():
        own = given[room(name)]
        foreign = set().union(*(each for each in given.values() if each is not own))
        foreign -= own
        for node in nodes:
            match node:
                case ast.Attribute(ast.Name("self" | "cls")):
                    pass
                case ast.Attribute(attr=attribute) if attribute in foreign:
                    used.add((name, attribute))
    return used


def test_few_private_names_are_used_across_rooms():
    """What another room may use has a name without underscore."""
    assert PRIVATE_OF_OTHERS == private_of_others()


def inner_imports(nodes):
    """Return what a module imports from inside aiohttp, also for types alone."""
    names = set()
    for node in nodes:
        match node:
            case ast.Import(aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(str(module), aliases, 0):
                names |= {f"{module}:{alias.name}" for alias in aliases}
    public = rf"aiohttp(\.({'|'.join(PUBLIC_AIOHTTP)}))?(:[a-zA-Z]\w*)?"
    return {
        name
        for name in names
        if re.match(r"aiohttp\b", name) and not re.fullmatch(public, name)
    }


def test_privates_of_aiohttp_stay_in_few_modules():
    """No other module knows a private name, an inner module or a key of aiohttp's."""
    known = {
        name: private_names(nodes) | inner_imports(nodes)
        for name, nodes in modules().items()
        if name not in TOUCH_AIOHTTP
    }

    assert {} == {name: names for name, names in known.items() if names}


def asked_of_the_standard_library(nodes):
    """Return what a module calls of ``time`` and ``random``."""
    standard = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            standard |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            standard |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
            }
    called = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            head, dot, rest = ast.unparse(node.func).partition(".")
            called.add(standard.get(head, "") + dot + rest)
    return {call for call in called if re.match(r"(time|random)\.", call)}


def test_time_and_chance_come_from_outside():
    """Nothing asks the clock or the dice of the standard library on its own."""
    asked = {
        name: asked_of_the_standard_library(nodes) - ASK_OUTSIDE.get(name, set())
        for name, nodes in modules().items()
    }

    assert {} == {name: calls for name, calls in asked.items() if calls}
