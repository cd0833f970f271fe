"""Say in a few words how the chains of a simulation did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .result import SimulatedRun, SimulationResult
    from .settings import SimulationSettings

_HEAD = "chain", "load", "recovery", "answered", "attempts", "answered, over time"
_BLOCKS = "▁▂▃▄▅▆▇█"
_CELLS = 20
"""How many characters the whole time takes."""

LEGEND = """\
load: requests in the outage, for each call that began in it
recovery: seconds after the outage until 99 % of the calls are answered, for good
attempts: requests for each call, in the whole time"""


def conditions(settings: SimulationSettings) -> tuple[str, str]:
    """Say in two sentences what was simulated."""
    calls = (
        f"{settings.clients} clients make {settings.rate:g} calls a second for"
        f" {settings.duration:g} s."
    )
    served = f"The server can answer {settings.capacity:g} a second"
    if settings.outage is not None:
        start, length, share = settings.outage
        end = start + length
        served += f", from second {start:g} to {end:g} only {share:.0%} of that"
    return calls, f"{served}."


def rows(result: SimulationResult) -> list[tuple[str, ...]]:
    """Return the head of a table, and a row for each chain."""
    return [_HEAD, *((name, *_cells(run)) for name, run in result.runs.items())]


def _cells(run: SimulatedRun) -> Iterator[str]:
    if run.outage is None or run.load_in_outage is None:
        yield from ("-", "-")
    else:
        seconds = run.seconds_to_recover
        yield f"{run.load_in_outage:.2f}"
        yield "never" if seconds is None else f"{seconds:g} s"
    yield f"{run.success:.1%}"
    yield f"{run.attempts_per_call:.2f}"
    yield "".join(_blocks(run))


def _blocks(run: SimulatedRun) -> Iterator[str]:
    """Yield a block for each part of the time, the higher the more were answered.

    Where no call began there is a gap, as in the picture.
    """
    seconds = len(run.calls)
    for cell in range(_CELLS):
        begin = cell * seconds // _CELLS
        part = slice(begin, max(begin + 1, (cell + 1) * seconds // _CELLS))
        calls = sum(run.calls[part])
        share = sum(run.answered[part]) / max(calls, 1)
        yield _BLOCKS[round(share * (len(_BLOCKS) - 1))] if calls else " "
