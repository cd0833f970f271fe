"""Measure a way to call with this checkout and with another, in processes in turn.

    git worktree add ../then 1c04278
    python tests/tools/benchmarks/between_commits.py ../then
    python tests/tools/benchmarks/between_commits.py ../then --variant "ours: retry"

Scenarios and variants are those of this checkout; only the package is the other's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from rounds import estimate, interleaved, ratios
from scenarios import SCENARIOS
from server import serving
from variants import IN_FUNCTION, installed

import aioretry_smithy

HERE = Path(__file__).parents[3]
SLICES = 7
"""A process begins slowly: the median of so many does not show it."""


async def in_this_process(scenario: str, variant: str, server: str) -> float:
    """Measure with the package that this process has imported."""
    (found,) = (each for each in installed()[0] if each.name == variant)
    measure = SCENARIOS[scenario].measure
    return median([await measure(found, server) for _ in range(SLICES)])


async def in_a_process(checkout: Path, *arguments: str) -> float:
    """Measure with the package of a checkout."""
    command = [sys.executable, __file__, str(checkout), "--once", *arguments]
    paths = os.environ | {"PYTHONPATH": str(checkout)}
    run = partial(subprocess.check_output, command, env=paths, text=True)
    return float(await asyncio.to_thread(run))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("then", type=Path, help="the folder of the other checkout")
    parser.add_argument("--scenario", choices=SCENARIOS, default="stub-1")
    names = [each.name for each in installed()[0]]
    parser.add_argument(
        "--variant", choices=names, default=IN_FUNCTION, metavar="VARIANT"
    )
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--once", help=argparse.SUPPRESS, metavar="SERVER")
    arguments = parser.parse_args()
    then = arguments.then.resolve()
    what = arguments.scenario, arguments.variant
    if arguments.once:
        assert Path(aioretry_smithy.__file__).is_relative_to(then)
        print(asyncio.run(in_this_process(*what, arguments.once)))
        return
    with serving() as server:
        options = [server, "--scenario", what[0], "--variant", what[1]]
        measure = {
            name: partial(in_a_process, checkout, *options)
            for name, checkout in {"then": then, "now": HERE}.items()
        }
        samples = asyncio.run(interleaved(measure, arguments.rounds))
    found = estimate(ratios(samples["now"], samples["then"]))
    unit = SCENARIOS[what[0]].unit
    for name, values in samples.items():
        print(f"{name:6}{median(values):10,.1f} {unit}")
    print(f"ratio {found.median:10.2f}    {found.low:.2f} - {found.high:.2f}")


if __name__ == "__main__":
    main()
