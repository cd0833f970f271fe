"""Benchmarks: what a call costs, beside bare aiohttp and beside the others.

    tox run -e bench                                  # everything, some minutes
    tox run -e bench -- --only stub-1 --rounds 31
    tox run -e bench -- --json FILE --plot FILE

All are measured in turns, on loopback or without any network. Figures are medians; the
ratio is the median of the ratios of each round, with the interval that 95 of 100
repetitions would fall into. Compare ratios, not microseconds: those are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from calling import Variant
from report import Row, plot, rows_of, show, write_json
from rounds import interleaved
from scenarios import SCENARIOS, Scenario
from server import serving
from variants import installed


async def measure(
    scenario: Scenario, variants: Sequence[Variant], rounds: int, server: str
) -> list[Row]:
    """Measure all variants that can take part in a scenario."""
    able = [each for each in variants if each.retries or not scenario.retries]
    slices = {each.name: partial(scenario.measure, each, server) for each in able}
    samples = await interleaved(slices, min(rounds, scenario.rounds or rounds))
    return rows_of(scenario, samples, {each.name: each.kind for each in able})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--only", action="append", choices=SCENARIOS, help="a scenario; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="as SVG or PNG")
    arguments = parser.parse_args()
    variants, missing = installed()
    for variant in missing:
        print(f"left out: {variant.name} (needs {' and '.join(variant.needs)})")
    results = {}
    with serving() as server:
        for name in arguments.only or SCENARIOS:
            scenario = SCENARIOS[name]
            results[name] = asyncio.run(
                measure(scenario, variants, arguments.rounds, server)
            )
            show(scenario, results[name])
    if arguments.json:
        write_json(arguments.json, SCENARIOS, results)
    if arguments.plot:
        plot(arguments.plot, SCENARIOS, results)


if __name__ == "__main__":
    main()
