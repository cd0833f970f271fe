"""Benchmarks: what a call costs, beside bare aiohttp and beside the others.

    tox run -e bench                                  # everything, some minutes
    tox run -e bench -- bounds                        # the bounds of what pages show
    tox run -e bench -- costs                         # the table of the README
    tox run -e bench -- imports                       # beside that of aiohttp
    tox run -e bench -- restarts                      # calls lost in a restart
    tox run -e bench -- --quick                       # the bounds, about half a minute
    tox run -e bench -- --only stub-1 --rounds 31
    tox run -e bench -- --json FILE

All are measured in turns, on loopback or without any network. Figures are medians; the
ratio is the median of the ratios of each round, with the interval that 95 of 100
repetitions would fall into. Compare ratios, not microseconds: those are the machine's.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import restarts
from bounds import BOUNDS, NAMED, show_verdicts
from calling import BY_HAND
from report import content_of, rows_of, show
from rounds import interleaved
from scenarios import SCENARIOS
from server import serving
from tables import TABLES, show_table
from variants import installed


async def measure(scenario, variants, rounds, server):
    """Measure all variants that can take part in a scenario."""
    able = [each for each in variants if _takes_part(each, scenario)]
    slices = {each.name: partial(scenario.measure, each, server) for each in able}
    samples = await interleaved(slices, min(rounds, scenario.rounds or rounds))
    return rows_of(scenario, samples, {each.name: each.kind for each in able})


def _takes_part(variant, scenario):
    if scenario.group or variant.group:
        return scenario.group == variant.group
    if scenario.is_function or variant.is_function:
        return scenario.is_function and variant.is_function
    if scenario.retries:
        return variant.retries
    # Not all of the others have a place for options.
    return not scenario.posts or variant.name in {*NAMED} - {BY_HAND}


def main():
    if {*sys.argv[1:2]} & {*TABLES}:
        show_table()
        return
    if sys.argv[1:2] == ["restarts"]:
        restarts.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help="15 unless given")
    parser.add_argument(
        "--quick", action="store_true", help="only what has bounds, 5 rounds"
    )
    parser.add_argument(
        "--only", action="append", choices=SCENARIOS, help="a scenario; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    results = _measured(arguments)
    if arguments.json:
        text = json.dumps(content_of(SCENARIOS, results), indent=1)
        arguments.json.write_text(f"{text}\n", encoding="utf-8")


def _measured(arguments):
    """Measure and show what was asked for."""
    variants, missing = installed()
    rounds = arguments.rounds or (5 if arguments.quick else 15)
    names = arguments.only or [*(BOUNDS if arguments.quick else SCENARIOS)]
    if arguments.quick:
        variants = [variant for variant in variants if variant.name in NAMED]
    for variant in missing:
        print(f"left out: {variant.name} (needs {' and '.join(variant.needs)})")
    results = {}
    with serving() as server:
        for name in names:
            scenario = SCENARIOS[name]
            if arguments.quick and scenario.rounds:
                scenario = replace(scenario, rounds=1)
            results[name] = asyncio.run(measure(scenario, variants, rounds, server))
            show(scenario, results[name])
    show_verdicts(results)
    return results


if __name__ == "__main__":
    main()
