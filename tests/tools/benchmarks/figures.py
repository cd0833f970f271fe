"""Figures that pages show: each the median of runs in processes of their own.

A process has its own place in memory and its own hashes, which make a chain some
hundredths cheaper or dearer for as long as it lives.
"""

import asyncio
import json
import subprocess
import sys
from functools import partial
from statistics import median
from typing import NamedTuple

from rounds import interleaved
from scenarios import SCENARIOS
from server import serving
from variants import installed


class Figure(NamedTuple):
    """What a variant costs beside another one that is measured in the same rounds."""

    scenario: str
    variant: str
    base: str


def in_runs(figures, rounds, runs):
    """Return what was found of each figure, run by run."""
    found = [_in_a_process(figures, rounds) for _ in range(runs)]
    return [*zip(*found, strict=True)]


def _in_a_process(figures, rounds):
    command = [sys.executable, __file__]
    said = json.dumps({"figures": figures, "rounds": rounds})
    return json.loads(subprocess.check_output(command, input=said, text=True))


def in_this_process(figures, rounds):
    """Measure all of a scenario in turns, one scenario after the other."""
    with serving() as server:
        samples = {
            scenario: asyncio.run(
                _measured(scenario, _names_in(scenario, figures), rounds, server)
            )
            for scenario in dict.fromkeys(each.scenario for each in figures)
        }
    for scenario, variant, base in figures:
        found = samples[scenario]
        yield median(SCENARIOS[scenario].compare(found[variant], found[base]))


def _names_in(scenario, figures):
    here = [each for each in figures if each.scenario == scenario]
    return {name for each in here for name in (each.variant, each.base)}


async def _measured(name, names, rounds, server):
    scenario = SCENARIOS[name]
    slices = {
        each.name: partial(scenario.measure, each, server)
        for each in installed()[0]
        if each.name in names
    }
    return await interleaved(slices, min(rounds, scenario.rounds or rounds))


def main():
    asked = json.load(sys.stdin)
    figures = [Figure(*each) for each in asked["figures"]]
    print(json.dumps([*in_this_process(figures, asked["rounds"])]))


if __name__ == "__main__":
    main()
