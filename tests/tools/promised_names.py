"""Write each public name with its signature into ``docs/public-names.txt``.

Public is what ``__all__`` of a public module lists, and of a class what the reference
shows. Run this after a change of the promise, with all extras, and read what changed::

    python tests/tools/promised_names.py
"""

import ast
import importlib
import inspect
import re
from enum import Enum
from functools import cache
from pathlib import Path

import aioretry_smithy
from aioretry_smithy import DecoratingClient

PACKAGE = aioretry_smithy.__name__
EXTRAS = "limits", "opentelemetry", "prometheus", "redis"
MODULES = (
    PACKAGE,
    *(f"{PACKAGE}.{name}" for name in ("smithy", "smithy.sync", "testing", *EXTRAS)),
)
"""The modules whose ``__all__`` says what is public."""

MADE_BY_US = {
    *"""
    CircuitPermit ClientRequestContext ConnectionTimings EndpointGroup EndpointState
    EventCount HedgingDelay InjectedFault LogFormatter PerHostRetryBudget Report
    RequestLog RetryConfigMapping RetryDecision SimulatedRun SimulationResult
    SimulationSettings
    """.split()
}
"""The classes of which callers get instances, or make them by a factory."""

DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "public-names.txt"
LOG_PAGE = DOCS / "reference" / "log.rst"
"""Has a table of what a log knows."""

SHOWN = re.compile(
    r"^\.\. (?:currentmodule|module|auto(?:class|exception)):: ([\w.]+).*"
    r"(?:\n {3}:members:((?:.*)(?:\n {5,}.+)*))?",
    re.MULTILINE,
)
"""What a page of the reference shows of a class; or the module that it begins with."""
HEAD = """\
The public names of aioretry_smithy, with their signatures. They are a promise: see the
page "What may change". "python tests/tools/promised_names.py" writes them anew.
"..." is a default that the reference says in words.
"""
OPERATORS = "__aenter__", "__call__", "__enter__", "__len__", "__or__"
WIDTH = 88


def sections():
    """Yield each public module that can be imported here, and what it promises."""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            if name.rpartition(".")[2] not in EXTRAS:
                raise
            continue
        names = sorted(module.__all__, key=_place)
        yield name, "\n".join(_text_of(each, module) for each in names)


def sections_of_file():
    """Return the sections of the file, by the names of their modules."""
    _, *parts = FILE.read_text(encoding="utf-8").split("\n\n\n")
    split = (part.split("\n", 2) for part in parts)
    return {name: names.strip("\n") for name, _, names in split}


def _place(name):
    return name.lower(), name


def _text_of(name, module):
    value = getattr(module, name)
    if inspect.isclass(value):
        return "\n".join(_lines_of_class(name, value, module.__name__))
    if inspect.isroutine(value):
        return "\n".join(_lines_of_function(name, value))
    if isinstance(value, frozenset | tuple):
        return f"{name} = {_shown(value)}"
    return f"{name} = {_alias(name)}"


def _lines_of_class(name, cls, module):
    """Return the head of a class and its members, in the order of their names."""
    bases = ", ".join(_bases_of(cls))
    ours = [base for base in cls.__mro__ if _is_ours(base)]
    members = {name: each for base in ours[::-1] for name, each in vars(base).items()}
    for base in ours[::-1]:
        members |= _fields_of(base)
    lines = []
    if made := _constructor_of(cls, members):
        lines += _lines_of_function("__init__", made)
    shown = _members_shown()
    if f"{module}.{name}" not in shown:
        raise LookupError(f"{module}.{name} is shown on no page of docs/reference")
    listed = shown[f"{module}.{name}"]
    for member in sorted(members, key=_place):
        is_public = not member.startswith("_") if listed is None else member in listed
        if is_public or (member in OPERATORS and _is_added(member, cls)):
            lines += _lines_of_member(member, members[member], cls)
    head = f"class {name}({bases})" if bases else f"class {name}"
    return [head, *(f"    {line}" for line in lines)]


def _is_added(member, cls):
    """Say whether a member is of the class, and not of a public base."""
    (first, *_) = (each for each in cls.__mro__ if member in vars(each))
    return first is cls or (_is_ours(first) and first not in _public_classes())


def _lines_of_member(name, value, cls):
    """Return what there is to say about a member; nothing where it has no docstring."""
    match value:
        case ast.expr():
            return [f"{name}: {_type(ast.unparse(value))}"]
        case property(__doc__=str(), fget=get, fset=set_it):
            kind = _type(inspect.signature(get).return_annotation)
            return [f"{name}: {kind}" + ("" if set_it else " (read-only)")]
        case classmethod() | staticmethod() if value.__doc__:
            kind = type(value).__name__
            return _lines_of_function(name, value.__func__, kind)
        case Enum():
            return [f"{name} = {value.value!r}"]
    if inspect.isfunction(value) and inspect.getdoc(getattr(cls, name)):
        return _lines_of_function(name, value, "method")
    return [f"{name} = {_shown(value)}"] if name.isupper() else []


@cache
def _members_shown():
    """Return the members that the reference shows of each class; None for all."""
    shown = {}
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = PACKAGE
        for found in SHOWN.finditer(page.read_text(encoding="utf-8")):
            name, members = found.groups()
            if name.startswith(PACKAGE):
                module = name
            elif members == "":
                shown[f"{module}.{name}"] = None
            else:
                shown[f"{module}.{name}"] = {*re.findall(r"\w+", members or "")}
    page_of_logs = LOG_PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^ +\* - (``\w.+)", page_of_logs, re.MULTILINE)
    logs = shown[f"{PACKAGE}.RequestLog"]
    assert logs
    logs.update(re.findall(r"``(\w+)``", " ".join(table)))
    return shown


def _is_ours(cls):
    return cls.__module__.partition(".")[0] == PACKAGE


@cache
def _public_classes():
    modules = [importlib.import_module(name) for name in MODULES[: -len(EXTRAS)]]
    public = {getattr(module, name) for module in modules for name in module.__all__}
    return {*filter(inspect.isclass, public)}


def _bases_of(cls):
    """Return the bases that a caller knows: public ones, and those of others."""
    direct = {base for each in cls.__mro__ if _is_ours(each) for base in each.__bases__}
    known = []
    for base in cls.__mro__[1:-1]:
        if _is_ours(base):
            is_known = base in _public_classes()
        else:
            is_theirs = base in direct and base.__module__ not in {"abc", "typing"}
            is_known = is_theirs and not base.__name__.startswith("_")
        if is_known and not any(issubclass(each, base) for each in known):
            known.append(base)
    return [base.__name__ for base in known]


def _constructor_of(cls, members):
    """Return what a caller calls to make one, unless that is a factory."""
    is_client = issubclass(cls, DecoratingClient) and cls is not DecoratingClient
    if is_client or issubclass(cls, Enum) or getattr(cls, "_is_protocol", False):
        return None
    if cls.__name__ in MADE_BY_US:
        return None
    return members.get("__new__" if issubclass(cls, tuple) else "__init__")


@cache
def _written():
    """Return the classes and the aliases of the package by their names."""
    found = {}
    for module in sorted(Path(aioretry_smithy.__file__).parent.rglob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        blocks = [
            tree.body,
            *(node.body for node in tree.body if hasattr(node, "body")),
        ]
        for node in (node for block in blocks for node in block):
            match node:
                case (
                    ast.ClassDef(name=name)
                    | ast.Assign(targets=[ast.Name(name)])
                    | ast.AnnAssign(target=ast.Name(name), value=ast.expr())
                ):
                    found.setdefault(name, []).append(node)
    return found


def _alias(name):
    """Return what an alias of a type stands for, as the source says it."""
    (node, *_) = (n for n in _written()[name] if not isinstance(n, ast.ClassDef))
    return _type(ast.unparse(node.value))


@cache
def _fields_of(cls):
    """Return the types of the attributes that a class describes in its body."""
    (body, *_) = (
        node.body
        for node in _written()[cls.__name__]
        if isinstance(node, ast.ClassDef)
        and ast.get_docstring(node) == inspect.cleandoc(cls.__doc__ or "")
    )
    text = inspect.cleandoc(cls.__doc__ or "")
    described = {*re.findall(r"^    (\w+):", text, re.MULTILINE)}
    fields = {}
    for each, below in zip(body, [*body[1:], None], strict=True):
        match each, below:
            case (
                ast.AnnAssign(target=ast.Name(name), annotation=kind),
                ast.Expr(ast.Constant(str())),
            ):
                fields[name] = kind
            case ast.AnnAssign(target=ast.Name(name), annotation=kind), _:
                if name in described:
                    fields[name] = kind
    return fields


def _lines_of_function(name, function, kind=""):
    """Return a call on one line, or with a line for each argument."""
    signature = inspect.signature(function)
    arguments = [*signature.parameters.values()]
    if kind in {"method", "classmethod"} or name == "__init__":
        del arguments[0]
    shown = []
    by_position = [each for each in arguments if each.kind is each.POSITIONAL_ONLY]
    for each in arguments:
        if each.kind is each.KEYWORD_ONLY and not any(e.startswith("*") for e in shown):
            shown.append("*")
        settings = re.fullmatch(r"Unpack\[(\w+)\]", str(each.annotation))
        if settings and settings[1] != "SessionArguments":  # which are aiohttp's
            if not any(e.startswith("*") for e in shown):
                shown.append("*")
            shown += _keys_of(settings[1])
        elif not each.name.startswith("_"):
            shown.append(_argument(each))
        if by_position and each is by_position[-1]:
            shown.append("/")
    returned = _type(signature.return_annotation)
    tail = f") -> {returned}" if returned and name != "__init__" else ")"
    words = [
        "abstract" if getattr(function, "__isabstractmethod__", False) else "",
        kind.removeprefix("method"),
        "async" if inspect.iscoroutinefunction(function) else "",
        f"{name}(",
    ]
    head = " ".join(filter(None, words))
    if len(line := f"{head}{', '.join(shown)}{tail}") <= WIDTH:
        return [line]
    return [head, *(f"    {each}," for each in shown), tail]


def _keys_of(name):
    """Return the keys of a dictionary of keyword arguments, each as an argument."""
    for node in _written().get(name, ()):
        if isinstance(node, ast.ClassDef):
            inherited = [
                key for base in node.bases for key in _keys_of(ast.unparse(base))
            ]
            own = (each for each in node.body if isinstance(each, ast.AnnAssign))
            keys = [
                f"{ast.unparse(e.target)}: {ast.unparse(e.annotation)}" for e in own
            ]
            return [*inherited, *(f"{key} = ..." for key in keys)]
    return []


def _argument(given):
    """Return an argument with its type and its default."""
    stars = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
    kind = _type(given.annotation)
    text = f"{stars}{given.name}{kind and f': {kind}'}"
    if given.default is given.empty:
        return text
    return f"{text} = {_shown(given.default)}"


def _type(annotation):
    """Return a type as the source says it."""
    if annotation is inspect.Signature.empty:
        return ""
    text = getattr(annotation, "__forward_arg__", annotation)
    return " ".join(str(text).replace('"', "'").split())


def _shown(value):
    """Return a value, as it is on each machine."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    if type(value) is tuple:
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(_shown, value))}{comma})"
    if inspect.isroutine(value):
        return value.__name__
    text = repr(value)
    return "..." if text.startswith("<") else text


def main():
    """Write the file."""
    found = dict(sections())
    if missing := {*MODULES} - {*found}:
        raise SystemExit(f"the extras of {', '.join(sorted(missing))} are missing")
    parts = (f"\n\n{name}\n{'=' * len(name)}\n\n{found[name]}\n" for name in found)
    FILE.write_text(HEAD + "".join(parts), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
