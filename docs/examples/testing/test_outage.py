from orders import with_our_chain

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import simulate


def our_builder() -> SessionBuilder:
    return with_our_chain(SessionBuilder("https://api.example.com"))


def test_server_recovers_from_an_outage() -> None:
    result = simulate(
        {"ours": our_builder},
        clients=5,
        rate=7.0,  # calls per second
        capacity=10.0,
        outage="10:10:0.2",  # from second 10, for 10 s, at a fifth of the capacity
        duration=40.0,
    )
    run = result.runs["ours"]

    assert run.load_in_outage == 1.0  # as much as without retries
    assert run.seconds_to_recover is not None
