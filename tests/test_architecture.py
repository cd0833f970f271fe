"""What the source must look like: layers, sizes, names, hands off others' privates."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import aioretry_smithy

ROOT = Path(aioretry_smithy.__file__).parent
PACKAGE = ROOT.name

LAYERS = (
    ("_fixed", "_frames", "_text", "_secret_members", "_preview", "_quoting"),
    ("_errors", "_mask", "_clock", "_extras"),
    ("_session_arguments", "_causes", "_retry_info"),
    ("_safety",),
    ("_call_facts", "_capture", "_outcome", "_render", "_listeners", "_timeline"),
    ("_svg", "_rich_tree", "_values"),
    ("_timeline_svg",),
    ("_log_views",),
    ("_request_side",),
    ("_response_side",),
    ("_log", "_request"),
    ("_context", "_origin"),
    ("_resources",),
    ("_keys", "_body", "_content", "_response", "_time_limits", "_uploads"),
    ("_client",),
    # Values
    ("_retry.spec", "_retry.hints", "_retry.stop_reason", "_breaker.window"),
    ("_rules.arguments", "_rules.chain", "_retry.exact_tokens"),
    ("_rules.conditions",),
    ("smithy.interfaces", "smithy.errors", "smithy.profile", "smithy.shared"),
    ("smithy.aws_config", "_retry.token_scope"),
    ("_retry.backoff", "_breaker.listener", "_breaker.settings"),
    ("smithy.cubic", "smithy.rate_meter", "smithy.token_bucket", "smithy.waiting_line"),
    ("smithy.steps",),
    ("smithy.backoff", "smithy.quota", "smithy.rate_limiter", "smithy.tokens"),
    ("smithy.attempts", "smithy.scopes", "_retry.decision"),
    # Policies
    ("_retry.strategy", "_breaker.breaker"),
    ("_retry.content_strategy", "_retry.rule", "_breaker.strategy"),
    ("_retry.content_rule", "_breaker.per_key", "_breaker.rule"),
    ("_breaker.per_key_decorators",),
    ("_logging.formatter", "_previewing.sent", "_logging.logger"),
    ("_logging.levels", "_logging.sampling"),
    ("_logging.settings",),
    ("smithy.simple_mode", "smithy.standard_mode", "smithy.error_code"),
    ("smithy.adaptive_mode", "smithy.simple", "smithy.standard", "smithy.failure"),
    ("smithy.adaptive", "smithy.classify", "smithy.sync"),
    ("smithy.mode",),
    ("smithy.environment", "smithy.resolver"),
    ("_retry.limiter", "_retry.limiter_calls", "_retry.own_strategy"),
    ("_retry.budget",),
    ("_retry.config",),
    ("_options", "_retry.config_mapping"),
    # Decorators
    ("_retry.http_exchange", "_retry.wait", "_retry.token_source"),
    ("_retry.retried_call",),
    ("_retry.strategy_call", "_retry.token_call"),
    ("_retry.client", "_breaker.client", "_logging.client", "_previewing.client"),
    ("_retry.sdk_headers",),
    # Assembly
    ("_assembly", "_deadline", "_standard"),
    ("_json_once",),
    ("_seam",),
    ("_session",),
    # The facade and what is built upon it
    ("__init__", "smithy"),
    ("_telemetry.outcome", "_telemetry.observing", "_telemetry.providers"),
    ("_telemetry.attributes", "_telemetry.instruments"),
    ("_telemetry.spans",),
    ("_telemetry.traced_body",),
    ("_telemetry.traced_attempt", "_telemetry.traced_call"),
    ("_telemetry.prometheus_metrics",),
    ("testing", "opentelemetry", "prometheus"),
    ("_cli",),
    ("__main__",),
)
"""From the bottom up. The name of a package stands for all of its modules."""

TOUCH_AIOHTTP = {
    "_body",
    "_content",
    "_deadline",
    "_fixed",
    "_frames",
    "_json_once",
    "_origin",
    "_response",
    "_seam",
    "_session",
    "_time_limits",
    "_uploads",
}
"""The modules that may know private names of aiohttp."""

PUBLIC_AIOHTTP = {"abc", "payload", "test_utils", "typedefs", "web"}
"""The modules of aiohttp, apart from the package itself, that its documents name."""

READ_CLOCKS = {
    "_call_facts": {"time.time"},  # the time of day, for people
    "_retry.http_exchange": {"time.time"},  # for a Retry-After without a Date
    "_clock": {"time.monotonic"},  # what is used outside of any event loop
}
"""The modules that may read a clock other than the event loop's."""

NO_NAMES = {"_OTHER"}
"""Words that look like private names: what OpenTelemetry calls an unknown method."""

FORBIDDEN_NAMES = {"base", "helpers", "impl", "manager", "utils"}
MAX_LINES = 320


def module_name(path: Path) -> str:
    """Return the module's name inside the package, a package's without ``__init__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = [name for name, path in MODULES.items() if path.name == "__init__.py"]
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def entry(name: str) -> str | None:
    """Return the name under which a module, or a package around it, is in LAYERS."""
    entries = {entry for layer in LAYERS for entry in layer}
    parts = name.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in entries), None)


def layer(name: str) -> int:
    ranks = (rank for rank, names in enumerate(LAYERS) if entry(name) in names)
    return next(ranks, len(LAYERS))


def is_empty(name: str) -> bool:
    return not MODULES[name].read_text().strip()


def run_time_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes but those that only a type checker sees."""
    nodes = []
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        nodes += [child, *run_time_nodes(child)]
    return nodes


def imported(name: str) -> set[str]:
    """Return the modules of the package that a module imports when it runs."""
    package = [PACKAGE, *name.split(".")]
    if name not in PACKAGES or name == "__init__":
        package.pop()
    found = set()
    for node in run_time_nodes(TREES[name]):
        if isinstance(node, ast.Import):
            found |= {inside(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                target = inside(f"{source}.{alias.name}")
                found.add(target if target in MODULES else inside(source))
    return found & {*MODULES}


def inside(module: str) -> str:
    # Two of our modules have the name of the package that they are for.
    package, _, name = module.partition(".")
    return (name or "__init__") if package == PACKAGE else ""


def test_every_module_has_a_layer():
    """Every module is in LAYERS, except empty packages."""
    assert [] == [name for name in MODULES if not (entry(name) or is_empty(name))]


def test_imports_point_downwards():
    """A module imports only from layers below its own, or inside its own entry."""
    upwards = [
        f"{name} imports {target}"
        for name in MODULES
        for target in imported(name)
        if not is_empty(target)
        and layer(target) >= layer(name)
        and entry(target) != entry(name)
    ]

    assert [] == upwards


def test_decorators_do_not_know_each_other():
    """Policies import no decorator, and neither do other decorators."""
    known = [
        f"{name} imports {target}"
        for name in MODULES
        for target in imported(name)
        if target.endswith(".client") and layer(name) <= layer("_retry.client")
    ]

    assert [] == known


def test_modules_are_small():
    """A module that has grown over the limit is more than one idea."""
    lines = {name: path.read_text().count("\n") for name, path in MODULES.items()}

    assert {} == {name: many for name, many in lines.items() if many > MAX_LINES}


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


def own_names() -> set[str]:
    """Return all names that the package itself gives to anything."""
    names = set()
    for node in (node for tree in TREES.values() for node in ast.walk(tree)):
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


OWN_NAMES = own_names()


def private_names(tree: ast.AST) -> set[str]:
    """Return the private names that a module uses and the package does not give.

    A key is suspect in any case, since an attribute of ours needs none.
    """
    used, keys = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=ast.Constant(str(key))) | ast.Call(
                ast.Name("getattr" | "setattr" | "delattr" | "hasattr"),
                [_, ast.Constant(str(key)), *_],
            ):
                keys.add(key)
            case ast.Attribute(attr=name) | ast.Constant(str(name)):
                used.add(name)
    foreign = (used - OWN_NAMES - NO_NAMES) | keys
    return {
        name
        for name in foreign
        if re.fullmatch(r"_(?!_)\w+", name) and PACKAGE not in name
    }


def inner_imports(tree: ast.AST) -> set[str]:
    """Return what a module imports from inside aiohttp, also for types alone."""
    names = set()
    for node in ast.walk(tree):
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
        name: private_names(tree) | inner_imports(tree)
        for name, tree in TREES.items()
        if name not in TOUCH_AIOHTTP
    }

    assert {} == {name: names for name, names in known.items() if names}


def asked_of_the_standard_library(tree: ast.AST) -> set[str]:
    """Return what a module calls of ``time`` and ``random``."""
    standard: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            standard |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            standard |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
            }
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            head, dot, rest = ast.unparse(node.func).partition(".")
            called.add(standard.get(head, "") + dot + rest)
    return {call for call in called if re.match(r"(time|random)\.", call)}


def test_time_and_chance_come_from_outside():
    """Nothing asks the clock or the dice of the standard library on its own."""
    asked = {
        name: asked_of_the_standard_library(tree) - READ_CLOCKS.get(name, set())
        for name, tree in TREES.items()
    }

    assert {} == {name: calls for name, calls in asked.items() if calls}
