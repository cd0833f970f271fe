"""Put a chain through an outage, and show how it did."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from .. import testing
from .._simulation.picture import draw
from .._simulation.result import LEGEND, conditions, rows
from .._simulation.settings import SimulationSettings, read_outage
from .._text import printable
from .arguments import UsageError
from .output import ExitCode, complain, new_output
from .user_function import find_function, in_a_line

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from .._simulation.result import SimulationResult

_NUMBERS = "clients", "rate", "capacity", "duration", "seed"


def simulate(arguments: argparse.Namespace) -> ExitCode:
    """Simulate a chain and what it is compared with, and print a table.

    Raises:
        UsageError: A number is out of range, or the user's function cannot be used.
    """
    numbers = {name: getattr(arguments, name) for name in _NUMBERS}
    try:
        outage = read_outage(arguments.outage)
        SimulationSettings(**numbers, outage=outage, error_rate=0.0)
    except ValueError as error:
        raise UsageError(error) from None
    name: str | None = arguments.chain
    chain = None if name is None else find_function(name)
    try:
        with new_output(sys.stderr).progress() as progress:
            result = testing.simulate(
                chain, **numbers, outage=outage, progress=progress
            )
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name}: {in_a_line(error)}") from None
    # The picture first: whoever reads the table may have left.
    failure = _draw(result, arguments.plot)
    if arguments.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _show(result, arguments.plot if failure is None else None)
    if failure is not None:
        complain(f"--plot: {failure}")
        return ExitCode.CANNOT_WRITE
    return ExitCode.OK


def _draw(result: SimulationResult, file: Path | None) -> OSError | None:
    if file is not None:
        try:
            file.write_text(draw(result), encoding="utf-8", newline="\n")
        except OSError as error:
            return error
    return None


def _show(result: SimulationResult, plot: Path | None) -> None:
    output = new_output(sys.stdout)
    output.line(" ".join(conditions(result.settings)))
    output.line("")
    output.table(rows(result))
    output.line("")
    output.line(LEGEND)
    if plot is not None:
        output.line(f"plot: {printable(str(plot))}")
