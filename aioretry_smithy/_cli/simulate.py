"""Put a chain, perhaps of a function of the user's, through an outage."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import testing
from .._errors import is_plain_function
from .._log.error_text import describe_error
from .._report.document import Table
from .._text.mask import DEFAULT_MASK
from .._text.printable import printable
from ..testing import _simulation as simulation
from ..testing import _views as views
from .arguments import NUMBERS
from .options import UsageError
from .output import ExitCode, new_output, save

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from ..testing._fleet import Chain


def simulate(arguments: argparse.Namespace) -> ExitCode:
    """Simulate a chain and what it is compared with, and print a table.

    Raises:
        UsageError: A number is out of range, or the user's function cannot be used.
    """
    numbers = {name: getattr(arguments, name) for name, *_ in NUMBERS}
    try:
        times = _times(arguments)
        simulation.SimulationSettings(**numbers, **times, error_rate=0.0)
    except ValueError as error:
        raise UsageError(error) from None
    name: str | None = arguments.chain
    chain = None if name is None else find_function(name)
    try:
        with new_output(sys.stderr).progress() as progress:
            result = testing.simulate(chain, **numbers, **times, progress=progress)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name}: {in_a_line(error)}") from None
    # The picture first: whoever reads the table may have left.
    plot: Path | None = arguments.plot
    drawn = ExitCode.OK
    if plot is not None:
        picture = views.draw(result)
        drawn = save("plot", partial(plot.write_text, picture, "utf-8", newline="\n"))
    if arguments.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _show(result, plot if drawn is ExitCode.OK else None)
    return drawn


def _times(arguments: argparse.Namespace) -> dict[str, Any]:
    restart = simulation.read_restart(arguments.restart)
    return {
        "outage": simulation.read_outage(arguments.outage, restart),
        "restart": restart,
    }


def _show(result: simulation.SimulationResult, plot: Path | None) -> None:
    output = new_output(sys.stdout)
    output.line(" ".join(views.conditions(result.settings)))
    output.line("")
    output.document([Table(views.rows(result), views.TEXTS)])
    output.line("")
    output.line(views.legend(result.settings))
    why = views.backlog(result)
    if why is not None:
        output.line(printable(why))
    if plot is not None:
        output.line(f"plot: {printable(str(plot))}")


def find_function(name: str) -> Chain:
    """Import what ``MODULE:FUNCTION`` or ``path/file.py:FUNCTION`` names.

    Modules are looked for in the working directory too, and what a file imports also
    beside it.

    Raises:
        UsageError: There is no such thing, or importing it fails.
    """
    source, _, function = name.rpartition(":")
    if not source or not function:
        expected = "MODULE:FUNCTION or path/file.py:FUNCTION"
        raise UsageError(f"{name!r} (expected: {expected})")
    try:
        module = _import(source)
    except (Exception, SystemExit) as error:
        raise UsageError(f"cannot import {source!r}: {in_a_line(error)}") from None
    try:
        found: Chain = attrgetter(function)(module)
    except AttributeError as error:
        raise UsageError(f"{name!r}: {error}") from None
    if not is_plain_function(found):
        expected = "a plain function that returns a SessionBuilder"
        raise UsageError(f"{name!r} (expected: {expected})")
    return found


def in_a_line(error: BaseException) -> str:
    """Describe an error of the user's code."""
    return describe_error(error, DEFAULT_MASK)


def _import(source: str) -> ModuleType:
    path = Path(source)
    if path.suffix != ".py":
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(source)
    sys.path.insert(0, str(path.resolve().parent))
    spec: Any = importlib.util.spec_from_file_location(f"simulated {path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module of their annotations there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
