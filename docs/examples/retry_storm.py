"""A server that is slow for ten seconds, and five ways to call it.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib. Everything is
twenty times smaller than on the page; ``--scale 1`` is as large and takes a minute.
"""

import argparse
from pathlib import Path

from aioretry_smithy import (
    Backoff,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import simulate

URL = "http://orders.example"
SERVED_PER_SECOND = 1000
CALLS_PER_SECOND = 700
DIP = range(10, 20)
DIP_TO = 0.2
OUTAGE = DIP.start, len(DIP), DIP_TO


def retrying(**settings):
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    decorator = RetryingClient.new_decorator(
        RetryStrategy.failsafe(backoff), attempt_timeout=1.0, **settings
    )
    return SessionBuilder(URL).decorator(decorator).response_timeout(30.0)


def no_retries():
    return SessionBuilder(URL).response_timeout(1.0)


def three_retries():
    return retrying(max_total_attempts=4)


def budget_alone():
    return retrying(max_total_attempts=3, limiter=RetryBudget.per_host())


def standard_chain():
    return SessionBuilder.standard(URL, attempt_timeout=1.0)


def adaptive_limit():
    return SessionBuilder.standard(URL, attempt_timeout=1.0, concurrency="aimd")


CLIENTS = {
    "no retries": no_retries,
    "3 retries": three_retries,
    "budget alone": budget_alone,
    "standard chain": standard_chain,
    "adaptive limit": adaptive_limit,
}


def storm(clients, processes, *, scale=1, duration=60, outage=OUTAGE, error_rate=0.0):
    """Put clients by name through the dip; return what became of their calls."""
    result = simulate(
        clients,
        clients=processes // scale,
        rate=CALLS_PER_SECOND / scale,
        capacity=SERVED_PER_SECOND / scale,
        outage=outage,
        duration=duration,
        error_rate=error_rate,
        seed=7,
    )
    return result.runs


def measure(scale):
    """Return what happened to each kind of client, in 50 and in 500 processes."""
    few = storm(CLIENTS, 50, scale=scale)
    # Plain retries share nothing, so the number of processes does not matter.
    sharing = {name: CLIENTS[name] for name in CLIENTS if name != "3 retries"}
    many = storm(sharing, 500, scale=scale)
    return {(name, 50): few[name] for name in few} | {
        (name, 500): many[name] for name in many
    }


def row_of(name, processes, run):
    """Return what the table says of a kind of client."""
    back_after = run.seconds_to_recover
    return (
        name,
        f"{processes}",
        f"{run.load_in_outage:.2f}",
        "never" if back_after is None else f"{back_after:g} s",
        f"{1 - run.success:.0%}",
    )


def show(rows):
    print("                           attempts     99 % succeed    calls")
    print("client          processes  per call   again after dip  failed")
    print("                             in dip")
    for name, processes, load, back_after, failed in rows:
        print(f"{name:15}{processes:>10}{load:>10}{back_after:>18}{failed:>8}")


def plot(file, runs, scale):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use(Path(__file__).with_name("pictures.mplstyle"))
    figure, panels = plt.subplots(
        2, 2, figsize=(7.2, 5.2), sharex=True, sharey="row", layout="constrained"
    )
    names = ["C5", "C1", "C2", "C0", "C3"]
    colors = dict(zip(CLIENTS, names, strict=True))
    for column, count in zip(panels.T, (50, 500), strict=True):
        sent, succeeded = column
        for (name, processes), run in runs.items():
            if processes == count or name == "3 retries":
                style = {"baseline": None, "color": colors[name], "label": name}
                sent.stairs([many * scale for many in run.attempts], **style)
                pairs = zip(run.answered, run.calls, strict=True)
                succeeded.stairs([100 * good / begun for good, begun in pairs], **style)
        for panel in column:
            panel.axvspan(DIP.start, DIP.stop, color="#eaeef2", zorder=0)
            panel.set_xlim(0, 60)
            panel.set_ylim(bottom=0)
        served = [SERVED_PER_SECOND * (DIP_TO if n in DIP else 1) for n in range(60)]
        sent.stairs(served, baseline=None, color="0.5", ls=":", label="can be served")
        sent.set_title(f"{count} processes")
        succeeded.set_xlabel("seconds")
    panels[0, 0].set_ylabel("requests per second")
    panels[1, 0].set_ylabel("calls that succeed, %")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=20, help="how many times smaller")
    parser.add_argument("--plot", metavar="FILE", help="draw it, as SVG or PNG")
    arguments = parser.parse_args()
    runs = measure(arguments.scale)
    show(
        [
            row_of(name, processes // arguments.scale, run)
            for (name, processes), run in runs.items()
        ]
    )
    if arguments.plot:
        plot(arguments.plot, runs, arguments.scale)


if __name__ == "__main__":
    main()
