"""The results of the benchmarks, as a table, as JSON and as a picture."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rounds import Estimate, differences, estimate
from scenarios import Scenario

COLORS = {"bare": "0.4", "by hand": "0.4", "peer": "tab:orange", "ours": "tab:blue"}


class Row(NamedTuple):
    """The figures of a variant in a scenario."""

    variant: str
    kind: str
    samples: list[float]
    compared: Estimate


Results = Mapping[str, list[Row]]


def rows_of(
    scenario: Scenario, samples: Mapping[str, list[float]], kinds: Mapping[str, str]
) -> list[Row]:
    """Compare the samples of a scenario with its base."""
    base = samples[scenario.base]
    return [
        Row(name, kinds[name], values, estimate(scenario.compare(values, base)))
        for name, values in samples.items()
    ]


def show(scenario: Scenario, rows: list[Row]) -> None:
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


def compared_with(scenario: Scenario) -> str:
    """Return what the figures beside the measured ones mean."""
    sign = "above" if scenario.compare is differences else "/"
    return f"{sign} {scenario.base}"


def write_json(file: Path, scenarios: Mapping[str, Scenario], results: Results) -> None:
    """Write all that was measured, with what it was measured on."""
    content = {
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
                        "median": median(row.samples),
                        "compared": row.compared._asdict(),
                        "samples": row.samples,
                    }
                    for row in rows
                },
            }
            for name, rows in results.items()
        },
    }
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def plot(file: Path, scenarios: Mapping[str, Scenario], results: Results) -> None:
    """Draw a panel of bars for each scenario, with the variants on the same lines."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "font.size": 9}
    )
    columns = min(3, len(results))
    lines = math.ceil(len(results) / columns)
    names = max(([row.variant for row in rows] for rows in results.values()), key=len)
    figure, panels = plt.subplots(
        lines,
        columns,
        figsize=(2.4 + 2.4 * columns, lines * (0.18 * len(names) + 0.7)),
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for panel in panels.flat[len(results) :]:
        panel.axis("off")
    for panel, (name, rows) in zip(panels.flat, results.items(), strict=False):
        draw(panel, scenarios[name], rows, names)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def draw(panel, scenario: Scenario, rows: list[Row], names: list[str]) -> None:
    """Draw the bars of a scenario, with their intervals."""
    middles = [row.compared.median for row in rows]
    noise = [
        [row.compared.median - row.compared.low for row in rows],
        [row.compared.high - row.compared.median for row in rows],
    ]
    panel.barh(
        [names.index(row.variant) for row in rows],
        middles,
        xerr=noise,
        color=[COLORS[row.kind] for row in rows],
        error_kw={"lw": 0.8},
    )
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    unit = ", bytes"
    if scenario.compare is not differences:
        panel.axvline(1.0, color="0.6", lw=0.8, ls=":")
        unit = ""
    panel.set_title(scenario.title, loc="left", fontsize="medium")
    panel.set_xlabel(f"{compared_with(scenario)}{unit}")
