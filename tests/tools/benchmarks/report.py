"""The results of the benchmarks, as a table and as JSON."""

import platform
from datetime import UTC, datetime
from importlib import metadata
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rounds import Estimate, differences, estimate


class Row(NamedTuple):
    """The figures of a variant in a scenario."""

    variant: str
    kind: str
    samples: list[float]
    compared: Estimate


def rows_of(scenario, samples, kinds):
    """Compare the samples of a scenario with its base."""
    base = samples[scenario.base]
    return [
        Row(name, kinds[name], values, estimate(scenario.compare(values, base)))
        for name, values in samples.items()
    ]


def show(scenario, rows):
    """Print the table of a scenario."""
    rounds = len(rows[0].samples)
    table = Table(title=f"{scenario.title} ({rounds} rounds)", title_justify="left")
    table.add_column("variant", no_wrap=True)
    for heading in (scenario.unit, compared_with(scenario), "95 % interval"):
        table.add_column(heading, justify="right")
    counted = scenario.compare is differences
    digits = 0 if counted else 2
    for row in rows:
        measured = f"{median(row.samples):,.{0 if counted else 1}f}"
        value, low, high = (f"{number:,.{digits}f}" for number in row.compared)
        table.add_row(row.variant, measured, value, f"{low} - {high}")
    Console(width=100).print(table)


def compared_with(scenario):
    """Return what the figures beside the measured ones mean."""
    sign = "above" if scenario.compare is differences else "/"
    return f"{sign} {scenario.base}"


def content_of(scenarios, results):
    """Return all that was measured, with what it was measured on, as for JSON."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "aiohttp": metadata.version("aiohttp"),
        "machine": platform.platform(),
        "scenarios": {
            name: {
                "title": scenarios[name].title,
                "unit": scenarios[name].unit,
                "compared": compared_with(scenarios[name]),
                "variants": {
                    row.variant: {
                        "kind": row.kind,
                        "median": median(row.samples),
                        "compared": row.compared._asdict(),
                        "samples": [round(value, 3) for value in row.samples],
                    }
                    for row in rows
                },
            }
            for name, rows in results.items()
        },
    }
