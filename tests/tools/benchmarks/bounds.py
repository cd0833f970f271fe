"""Check what a chain costs against the bounds."""

import sys
from typing import NamedTuple

from calling import BARE, BY_HAND
from function_variants import FUNCTIONS, RPC_RETRY, STAMINA_FUNCTION
from group_variants import CHOICE, GROUP, JOINED, NO_CHOICE
from peers import AIOHTTP_RETRY, WRAPPED_AIOHTTP_RETRY
from rich.console import Console
from rich.table import Table
from rounds import Estimate, estimate
from scenarios import SCENARIOS
from variants import (
    BREAKER,
    FULL,
    INSIDE,
    LOG_INSIDE,
    OUTSIDE,
    PLACES,
    RATE,
    README,
    RETRY,
    STANDARD,
)

IS_FASTER = sys.version_info >= (3, 13)
"""From here on Python runs more of a chain in the same time."""


class Bound(NamedTuple):
    """The most that a variant may cost, beside another one."""

    variant: str
    base: str
    most: float
    most_on_faster: float | None = None
    aim: float | None = None
    """What it might cost, where somebody looks further."""

    @property
    def limit(self):
        """The bound for the Python that runs."""
        on_faster = self.most_on_faster
        return self.most if on_faster is None or not IS_FASTER else on_faster


SHOWN = {
    "stub-1": (
        Bound(README, AIOHTTP_RETRY, 1.50, aim=1.40),
        Bound(STANDARD, AIOHTTP_RETRY, 1.70, aim=1.60),
        Bound(FULL, AIOHTTP_RETRY, 1.50, aim=1.38),
    ),
    "stub-least": (Bound(OUTSIDE, AIOHTTP_RETRY, 1.85, aim=1.50),),
    "stub-flaky": (Bound(README, BY_HAND, 4.0, aim=3.0),),
    "loopback-50": (Bound(LOG_INSIDE, BARE, 1.42, aim=1.30),),
    "memory": (Bound(README, BARE, 2600.0, aim=2000.0),),
}
"""Those of the chains that pages show, by the name of the scenario."""

# 0.35 of a bare call, of which a chain with a breaker takes about two.
_LIMITS = (Bound(PLACES, BREAKER, 1.18), Bound(RATE, BREAKER, 1.18))

_OWN_FUNCTION = (
    Bound(OUTSIDE, WRAPPED_AIOHTTP_RETRY, 2.2, 1.9),
    Bound(INSIDE, WRAPPED_AIOHTTP_RETRY, 2.4, 2.1),
)

BOUNDS = {
    **SHOWN,
    "stub-1": (*SHOWN["stub-1"], *_LIMITS, *_OWN_FUNCTION),
    "stub-1000": (Bound(FULL, AIOHTTP_RETRY, 1.20, 1.10),),
    "stub-post": (Bound(FULL, AIOHTTP_RETRY, 1.55, 1.35),),
    "stub-hosts": SHOWN["stub-1"],
    "stub-flaky": (
        *SHOWN["stub-flaky"],
        Bound(OUTSIDE, WRAPPED_AIOHTTP_RETRY, 2.8, 2.5),
        Bound(INSIDE, WRAPPED_AIOHTTP_RETRY, 3.6, 3.2),
    ),
    "flaky": (Bound(FULL, BY_HAND, 1.40, 1.30), Bound(RETRY, BY_HAND, 1.25)),
    "stub-group": (Bound(GROUP, JOINED, 1.25),),
    "choice": (Bound(CHOICE, NO_CHOICE, 0.7),),
    "function": (Bound(RPC_RETRY, STAMINA_FUNCTION, 0.40),),
}
"""By the name of the scenario."""

_SESSIONS = (BARE, BY_HAND, AIOHTTP_RETRY, RETRY, README, FULL, LOG_INSIDE, STANDARD)
_LIMITED = (BREAKER, PLACES, RATE)
_WITH_OWN = (WRAPPED_AIOHTTP_RETRY, OUTSIDE, INSIDE)
_OF_GROUPS = (JOINED, GROUP, NO_CHOICE, CHOICE)
NAMED = (*_SESSIONS, *_LIMITED, *_WITH_OWN, *FUNCTIONS, *_OF_GROUPS)
"""The variants that bounds speak of."""


class Verdict(NamedTuple):
    """A bound, and what was found."""

    scenario: str
    bound: Bound
    found: Estimate

    @property
    def is_kept(self):
        """Whether the rounds leave room for its costing no more."""
        return self.found.reaches(self.bound.limit)


def verdicts(results):
    """Judge all bounds whose variants were measured in the same rounds."""
    for scenario, rows in results.items():
        samples = {row.variant: row.samples for row in rows}
        for bound in BOUNDS.get(scenario, ()):
            if {bound.variant, bound.base} <= samples.keys():
                compare = SCENARIOS[scenario].compare
                found = compare(samples[bound.variant], samples[bound.base])
                yield Verdict(scenario, bound, estimate(found))


def show_verdicts(results):
    """Print a line for each bound."""
    table = Table(title="bounds", title_justify="left")
    for heading in ("scenario", "variant", "beside"):
        table.add_column(heading, no_wrap=True)
    for heading in ("at most", "found", "95 % interval", ""):
        table.add_column(heading, justify="right")
    for scenario, bound, found in (judged := [*verdicts(results)]):
        table.add_row(
            scenario,
            bound.variant,
            bound.base,
            _figure(bound.limit),
            _figure(found.median),
            f"{_figure(found.low)} - {_figure(found.high)}",
            "ok" if Verdict(scenario, bound, found).is_kept else "missed",
        )
    if judged:
        Console(width=160).print(table)


def _figure(number):
    # Ratios are small, bytes are many.
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}"
