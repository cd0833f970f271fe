"""A server that is slow for ten seconds, and clients that hedge.

It carries out 50 requests a second, in the outage 10; there are 35 calls a second.
"""

from aioretry_smithy import (
    HedgingClient,
    HedgingDelay,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import simulate

URL = "http://orders.example"


def no_hedges() -> SessionBuilder:
    return SessionBuilder(URL).response_timeout(1.0)


def fixed_delay() -> SessionBuilder:
    return no_hedges().decorator(HedgingClient.new_decorator(0.1))


def percentile() -> SessionBuilder:
    delay = HedgingDelay.percentile(0.95)
    return no_hedges().decorator(HedgingClient.new_decorator(delay))


def with_a_budget() -> SessionBuilder:
    budget = RetryBudget.per_host()
    hedging = HedgingClient.new_decorator(HedgingDelay.percentile(0.95), limiter=budget)
    # It never retries, but tells the budget how the calls went.
    retrying = RetryingClient.new_decorator(RetryStrategy.never(), limiter=budget)
    return no_hedges().decorator(hedging).decorator(retrying)


CLIENTS = {
    "no hedges": no_hedges,
    "after 0.1 s": fixed_delay,
    "after p95": percentile,
    "p95, budget": with_a_budget,
}


def main() -> None:
    result = simulate(
        CLIENTS, clients=2, rate=35, capacity=50, outage=(10, 10, 0.2), duration=60
    )
    print("                requests    succeed again    calls")
    print("                per call    after outage    failed")
    print("               in outage")
    for name, run in result.runs.items():
        back_after = run.seconds_to_recover
        back = "never" if back_after is None else f"{back_after:g} s"
        load, failed = run.load_in_outage, 1 - run.success
        print(f"{name:12}{load:>12.2f}{back:>16}{failed:>10.0%}")


if __name__ == "__main__":
    main()
