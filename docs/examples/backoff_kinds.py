"""A hundred clients meet a server that is down, with five kinds of delays.

Prints a table; ``--plot FILE`` draws it as well, which needs matplotlib.
"""

import argparse
import random
from collections import Counter
from pathlib import Path

from aioretry_smithy import Backoff

CLIENTS = 100
DOWN = 40.0
BRIEF = 1.0
STEP = 0.1


class Linear(Backoff):
    """Wait 0.2 s longer each time."""

    def next_delay(self, num_attempts_so_far: int) -> float:
        return 0.2 * num_attempts_so_far


exponential = Backoff.exponential(0.2, 10.0)
jittered = exponential.with_full_jitter(random=random.Random(7).random)
KINDS: dict[str, Backoff] = {
    "fixed, 0.2 s": Backoff.fixed(0.2),
    "fixed, 5 s": Backoff.fixed(5.0),
    "linear": Linear(),
    "exponential": exponential,
    "with jitter": jittered,
}


def requests_of(backoff, down):
    """Return when one client sends, from the first failure to the success."""
    sent_at = [0.0]
    while sent_at[-1] < down:
        sent_at.append(sent_at[-1] + backoff.next_delay(len(sent_at)))
    return sent_at


def measure(backoff, down):
    return [requests_of(backoff, down) for _ in range(CLIENTS)]


def sent_in_steps(clients):
    """Return how many retries there are in each tenth of a second."""
    return Counter(int(at / STEP + 1e-6) for sent_at in clients for at in sent_at[1:])


def row_of(backoff):
    """Return what the table says of a kind of delay."""
    brief, long = measure(backoff, BRIEF), measure(backoff, DOWN)
    return (
        sum(sent_at[-1] for sent_at in brief) / CLIENTS,
        sum(len(sent_at) - 2 for sent_at in long) / CLIENTS,
        max(sent for step, sent in sent_in_steps(long).items() if step * STEP >= 10),
    )


def show():
    times = f"down {BRIEF:.0f} s:        down {DOWN:.0f} s:     after 10 s:"
    print(f"                 {times}")
    print("delays           success after    retries in   most retries")
    print("                                  vain, each   in 0.1 s")
    for name, backoff in KINDS.items():
        success, retries, most = row_of(backoff)
        print(f"{name:12}{success:>11.1f} s{retries:>16.1f}{most:>13}")


def plot(file):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use(Path(__file__).with_name("pictures.mplstyle"))
    figure, panels = plt.subplots(
        len(KINDS), 1, figsize=(7.2, 7.0), sharex=True, sharey=True
    )
    figure.set_layout_engine("constrained")
    for panel, (name, backoff) in zip(panels, KINDS.items(), strict=True):
        clients = measure(backoff, DOWN)
        sent = sent_in_steps(clients)
        steps = range(int(DOWN / STEP))
        panel.stairs([sent[step] for step in steps], [n * STEP for n in (*steps, 400)])
        panel.set_title(name)
        panel.set_xlim(0, DOWN)
        panel.set_ylim(0, 1.1 * CLIENTS)
    panels[-1].set_xlabel("seconds since the server went down")
    figure.supylabel(f"retries of {CLIENTS} clients in {STEP} s")
    figure.savefig(file, metadata={"Date": None} if file.endswith(".svg") else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FILE", help="draw the table, as SVG or PNG")
    arguments = parser.parse_args()
    show()
    if arguments.plot:
        plot(arguments.plot)


if __name__ == "__main__":
    main()
