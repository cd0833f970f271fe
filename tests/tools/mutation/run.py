"""Mutation tests: change the code in small ways, and see whether a test notices.

Runs mutmut in a copy of the checkout, on the modules and with the tests that
``[tool.mutmut]`` in ``pyproject.toml`` names. Prints a score for each module and every
survivor that ``equivalent.toml`` does not explain.

    tox run -e mutation                         # all modules, some hours
    tox run -e mutation -- _policies/backoff.py       # one of them
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PACKAGE = "aioretry_smithy"
LIST = Path(__file__).with_name("equivalent.toml")
LOWEST_SCORE = 95.0
KILLED = {"killed", "timeout", "segfault"}


class Change(NamedTuple):
    """A change by a mutant; its number would move with each edit of the function."""

    module: str
    before: str
    after: str


def main():
    parser = argparse.ArgumentParser(description="Run mutation tests.")
    parser.add_argument("modules", nargs="*", help="such as _policies/backoff.py")
    parser.add_argument("--work", type=Path, default=Path("/tmp/mutation-work"))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    copy_checkout(options.work)
    names = [f"{PACKAGE}.{name}*" for name in map(dotted, options.modules)]
    mutmut(options.work, "run", "--max-children", str(options.processes), *names)
    return report(options.work, options.modules)


def copy_checkout(work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("__pycache__")
    for folder in (PACKAGE, "tests"):
        shutil.copytree(ROOT / folder, work / folder, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", work)
    for module in (work / PACKAGE).rglob("*.py"):
        module.write_text(open_properties(module.read_text()))


def open_properties(source):
    """Write each property as a function and a call, since mutmut skips decorators."""
    lines = source.splitlines()
    properties = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and [ast.unparse(decorator) for decorator in node.decorator_list]
        == ["property"]
    ]
    for node in sorted(properties, key=lambda node: node.lineno, reverse=True):
        getter = f"_get_{node.name}"
        call = f"{node.name} = property({getter})"
        lines.insert(node.end_lineno or 0, " " * node.col_offset + call)
        definition = lines[node.lineno - 1]
        lines[node.lineno - 1] = definition.replace(node.name, getter, 1)
        del lines[node.decorator_list[0].lineno - 1]
    return "\n".join(lines) + "\n"


def report(work, modules):
    """Print the scores and what is left; return the exit code."""
    explained = {change for change in equivalent() if chosen(change.module, modules)}
    counts = defaultdict(Counter)
    survivors = {}
    for name, status in statuses(work):
        module = path_of(name)
        if not chosen(module, modules):
            continue
        verdict = "killed" if status in KILLED else "survived"
        if verdict == "survived":
            change = change_of(work, name)
            verdict = "equivalent" if change in explained else verdict
            survivors[f"{name} ({status})"] = change
        counts[module][verdict] += 1
    print(f"\n{'module':32}{'killed':>8}{'of':>6}{'score':>9}{'equivalent':>12}")
    scores = [print_score(module, count) for module, count in sorted(counts.items())]
    for name, change in survivors.items():
        if change not in explained:
            print(f"\nsurvived: {name}\n  - {change.before}\n  + {change.after}")
    stale = explained - set(survivors.values())
    for change in sorted(stale):
        print(f"\nlisted as equivalent, but no survivor: {change}")
    return int(bool(stale) or not scores or min(scores) < LOWEST_SCORE)


def print_score(module, count):
    total = count["killed"] + count["survived"]
    score = 100 * count["killed"] / total if total else 100.0
    figures = f"{count['killed']:8}{total:6}{score:8.1f}%{count['equivalent']:12}"
    print(f"{module:32}{figures}")
    return score


def equivalent():
    """Return the mutants that change nothing which anybody could see."""
    return [
        Change(entry["module"], entry["before"], after)
        for entry in tomllib.loads(LIST.read_text())["equivalent"]
        for after in entry["after"]
    ]


def statuses(work):
    found = mutmut(work, "results", "--all", "true", capture=True)
    return re.findall(rf"^\s*({PACKAGE}\S+): (.+)$", found, re.MULTILINE)


def change_of(work, name):
    diff = mutmut(work, "show", name, capture=True).partition("@@")[2].splitlines()[1:]
    before, after = (
        " ".join(line[1:].strip() for line in diff if line[:1] == sign) for sign in "-+"
    )
    return Change(path_of(name), before, after)


def mutmut(work, *arguments, capture=False):
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(
        command, cwd=work, check=True, text=True, capture_output=capture
    )
    return done.stdout or ""


def dotted(module):
    return module.removesuffix(".py").replace("/", ".")


def path_of(name):
    module = name.removeprefix(f"{PACKAGE}.").rpartition(".x")[0]
    return module.replace(".", "/") + ".py"


def chosen(module, modules):
    return not modules or module in modules


if __name__ == "__main__":
    sys.exit(main())
