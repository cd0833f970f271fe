"""Measure what a group of endpoints is worth, for the page about several servers.

    python tests/tools/benchmarks/endpoint_figures.py > docs/howto/...-figures.rst

In virtual time, so the figures are the same on every machine.
"""

import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "support"))

from replica_model import (
    BEGIN,
    LENGTH,
    SEEDS,
    Run,
    mean,
    refuses,
    run,
    slower,
    swallows,
    unavailable,
    well,
)

from aioretry_smithy import EndpointSelectionStrategy

TROUBLES = {
    "nothing": well,
    "refuses connections": refuses,
    "answers 503 at once": unavailable,
    "swallows requests": swallows,
    "is 10 times slower": slower(10),
}
SETTINGS = {
    "a group": {},
    "round robin": {
        "selection": EndpointSelectionStrategy.round_robin(),
        "outlier_detection": None,
    },
}
HEAD = """.. list-table::
   :header-rows: 1
   :widths: 26 20 16 18 20

   * - one of three
     - chain
     - success
     - 99th percentile
     - requests to it
"""


def row(trouble, name, replica, settings):
    """Measure a chain in a trouble; return the row of the table."""
    runs = [run(seed, {0: replica}, **settings) for seed in SEEDS]
    success = mean(runs, partial(Run.success, end=BEGIN + LENGTH))
    slowest = mean(runs, lambda each: each.percentile(0.99))
    share = mean(runs, lambda each: each.share(0))
    return (
        f"   * - {trouble}\n     - {name}\n     - {success:.1%}\n"
        f"     - {slowest:.0f} ms\n     - {share:.1%}\n"
    )


def table():
    """Return the table as reST."""
    rows = [
        row(trouble, name, replica, settings)
        for trouble, replica in TROUBLES.items()
        for name, settings in SETTINGS.items()
    ]
    return f"{HEAD}{''.join(rows)}"


if __name__ == "__main__":
    print(table(), end="")
