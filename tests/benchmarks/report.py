"""The results of the benchmarks, as a table, as JSON and as a picture."""

from __future__ import annotations

import json
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
    """What was found out about a variant in a scenario."""

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
    """Draw a panel of bars for each scenario."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "benchmarks", "font.size": 9}
    )
    heights = [len(rows) + 3 for rows in results.values()]
    figure, panels = plt.subplots(
        len(results),
        figsize=(7.2, 0.2 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for panel, (name, rows) in zip(panels[:, 0], results.items(), strict=True):
        draw(panel, scenarios[name], rows)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def draw(panel, scenario: Scenario, rows: list[Row]) -> None:
    """Draw the bars of a scenario, with their intervals."""
    middles = [row.compared.median for row in rows]
    noise = [
        [row.compared.median - row.compared.low for row in rows],
        [row.compared.high - row.compared.median for row in rows],
    ]
    panel.barh(
        [row.variant for row in rows],
        middles,
        xerr=noise,
        color=[COLORS[row.kind] for row in rows],
        error_kw={"lw": 0.8},
    )
    if scenario.compare is not differences:
        panel.axvline(1.0, color="0.6", lw=0.8, ls=":")
    panel.invert_yaxis()
    panel.margins(y=0.01)
    unit = f", {scenario.unit}" if scenario.compare is differences else ""
    panel.set_title(f"{scenario.title}: {compared_with(scenario)}{unit}", loc="left")
