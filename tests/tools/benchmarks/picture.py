"""The results of the benchmarks as a picture: a panel of bars for each scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from calling import BY_HAND
from function_variants import MARKED, RPC, RPC_RETRY, STAMINA_FUNCTION, WRAPPED
from peers import AIOHTTP_RETRY
from rounds import Estimate
from scenarios import SCENARIOS
from variants import FULL, RETRY, STANDARD

STYLE = Path(__file__).parents[3] / "docs" / "examples" / "pictures.mplstyle"
COLOURS = {"ours": "C0"}
OTHERS = "#a0a8b1"
COLUMNS = 2
ROUGH = {"error_kw": {"lw": 1.0, "ecolor": "C5"}}

_CALLS = BY_HAND, "1 middleware: retry", AIOHTTP_RETRY, "stamina", "tenacity, @retry"
_FUNCTIONS = WRAPPED, MARKED, STAMINA_FUNCTION, RPC, RPC_RETRY
PICTURED = (*_CALLS, RETRY, FULL, STANDARD, *_FUNCTIONS)
"""The variants that get a bar: no more than eight in a panel, which can be read."""


class Panel(NamedTuple):
    """The bars of a scenario."""

    title: str
    bars: Mapping[str, Mapping[str, Any]]
    """What was found, by variant."""


def panels_of(content: Mapping[str, Any]) -> list[Panel]:
    """Choose what is drawn of all that was measured; all stand beside the base."""
    return [
        Panel(
            f"{found['title']}\n{found['compared'].replace('/', 'times')}"
            + (", bytes" if found["unit"] == "bytes" else ""),
            {
                variant: found["variants"][variant]
                for variant in PICTURED
                if variant in found["variants"] and variant != SCENARIOS[name].base
            },
        )
        for name, found in content["scenarios"].items()
    ]


def plot(file: Path, content: Mapping[str, Any]) -> None:
    """Draw what was measured, now or on another day."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use([STYLE, {"font.size": 11, "figure.constrained_layout.w_pad": 0.12}])
    panels = panels_of(content)
    lines = -(-len(panels) // COLUMNS)
    figure, places = plt.subplots(
        lines, COLUMNS, figsize=(11, 3.1 * lines), layout="constrained", squeeze=False
    )
    for place in places.flat[len(panels) :]:
        place.axis("off")
    for place, panel in zip(places.flat, panels, strict=False):
        _draw(place, panel)
    versions = (f"{name} {content[name.lower()]}" for name in ("Python", "aiohttp"))
    said = f"measured on {content['date']}, {', '.join(versions)}"
    figure.supxlabel(said, fontsize="medium")
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    plt.close(figure)


def _draw(place, panel: Panel) -> None:
    found = [Estimate(**bar["compared"]) for bar in panel.bars.values()]
    lengths = [max(0.0, each.median) for each in found]
    noise = [
        [each.median - each.low for each in found],
        [each.high - each.median for each in found],
    ]
    colours = [COLOURS.get(bar["kind"], OTHERS) for bar in panel.bars.values()]
    bars = place.barh([*panel.bars], lengths, xerr=noise, color=colours, **ROUGH)
    digits = ",.0f" if max(lengths) >= 100 else ".2f"
    place.bar_label(bars, [format(each.median, digits) for each in found], padding=4)
    place.invert_yaxis()
    place.set_xlim(0, 1.35 * max(lengths))
    place.set_title(panel.title)
    place.tick_params(axis="y", length=0, labelcolor="C5")
    place.tick_params(axis="x", bottom=False, labelbottom=False)
    place.grid(visible=False)
    place.spines.bottom.set_visible(False)
