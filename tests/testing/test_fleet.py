"""Processes with one chain, and the servers that they call."""

import asyncio
import logging
import random
from contextlib import asynccontextmanager, suppress
from functools import partial

import aiohttp
import pytest
from one_server import ScriptedServer, settings

from aioretry_smithy import (
    Backoff,
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.testing import simulate
from aioretry_smithy.testing._fleet import (
    CUT,
    REFUSED,
    SimulatedProcess,
    SimulatedReplicas,
    SimulatedServer,
    chance,
    isolated,
    run_fleet,
)

SETTINGS = settings(clients=3, rate=5.0, capacity=100.0)


async def test_all_calls_are_made_and_ended():
    """Calls begin until the duration is over; those under way end, sessions close."""
    processes = await run_fleet("chain", SessionBuilder, SETTINGS)
    begun = [process.calls for process in processes]

    assert 3 == len(processes)
    assert {0, 1, 2, 3} == {second for calls in begun for second in calls}
    assert begun == [process.answered for process in processes]
    assert all(process.session.closed for process in processes)


ONE_BUILDER = SessionBuilder()


@pytest.mark.parametrize("chain", [lambda: None, lambda: ONE_BUILDER])
async def test_chain_has_to_be_new_each_time(chain):
    """A function that returns no builder, or one that processes share, is refused."""
    with pytest.raises(ValueError, match=r"^chain\(\): .* a new SessionBuilder each"):
        await run_fleet("chain", chain, SETTINGS)


async def test_mistake_in_a_chain_ends_the_simulation():
    """The first error that is no failure of a request comes out as it is."""

    @client_decorator
    async def mistaken(delegate, ctx, request):
        raise KeyError("token")

    with pytest.raises(KeyError, match="token"):
        await run_fleet("chain", lambda: SessionBuilder().decorator(mistaken), SETTINGS)


def test_shared_chance_is_seeded():
    """In the block the module :mod:`random` gives the numbers of the seed."""
    numbers = []
    for _ in range(2):
        with isolated(7):
            numbers.append(random.random())

    assert [chance(7, 2).random()] * 2 == numbers


def test_chance_of_one_kind_is_its_own():
    """Sources of another kind or seed give other numbers."""
    sources = chance(7, 0), chance(7, 1), chance(8, 0)

    assert 3 == len({source.random() for source in sources})


def test_error_ends_the_block_too():
    """An error in the block leaves chance as it was."""
    random.seed(1)
    before = random.getstate()

    with suppress(KeyError), isolated(7):
        raise KeyError

    assert before == random.getstate()


def test_nothing_is_logged_in_the_block(caplog):
    """Thousands of failed calls would be as many lines; afterwards logs go on."""
    logger = logging.getLogger("aioretry_smithy")
    with isolated(7):
        logger.critical("inside")
    logger.critical("after")

    assert ["after"] == caplog.messages


@asynccontextmanager
async def new_process(builder, *answers):
    """Yield a process whose requests are answered with a status after seconds."""
    process = SimulatedProcess(builder, SimulatedReplicas([ScriptedServer(answers)]))
    async with process.session:
        yield process


def retrying(**settings):
    strategy = RetryStrategy.failsafe(Backoff.fixed(1.5))
    return RetryingClient.new_decorator(strategy, **settings)


@pytest.mark.parametrize("first", [503, CUT], ids=["answered", "cut"])
async def test_call_is_counted_where_it_began(first):
    """The attempts of a call count when they are sent, its answer when it began."""
    builder = SessionBuilder().decorator(retrying())
    async with new_process(builder, (first, 0.2), (200, 0.2)) as process:
        await process.call()

    assert {0: 1} == process.calls
    assert {(0, 0): 1, (0, 1): 1} == process.by_replica
    assert {0: 1} == process.answered


async def test_error_status_is_no_answer():
    """A call that ends with a status of 400 or more has failed."""
    async with new_process(SessionBuilder(), (503, 0.1)) as process:
        await process.call()

    assert 0 == process.answered.total()


@pytest.mark.parametrize(
    ("builder", "attempts"),
    [
        (SessionBuilder().response_timeout(1.0), 1),
        (SessionBuilder(timeout=aiohttp.ClientTimeout(1.0)), 1),
        (
            SessionBuilder().decorator(
                retrying(attempt_timeout=1.0, max_total_attempts=2)
            ),
            2,
        ),
    ],
    ids=["of the call", "of aiohttp", "of the attempts"],
)
async def test_timeout_cuts_a_slow_answer(builder, attempts):
    """The chain's time limits end requests, wherever they come from."""
    slow = [(200, 5.0)] * attempts
    async with new_process(builder, *slow) as process:
        await process.call()

    assert 0 == process.answered.total()
    assert attempts == process.by_replica.total()
    assert attempts * 1.0 + (attempts - 1) * 1.5 == asyncio.get_running_loop().time()


async def test_without_a_limit_it_waits():
    """A session without any limit waits for the answer."""
    builder = SessionBuilder().response_timeout(None)
    async with new_process(builder, (200, 1000.0)) as process:
        await process.call()

    assert 1 == process.answered.total()


@pytest.mark.parametrize(
    ("base_url", "host"),
    [(None, "server.example"), ("https://orders.example/v1/", "orders.example")],
)
async def test_calls_go_to_the_host_of_the_builder(base_url, host):
    """Settings per host apply as they will; a builder without a host gets one."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        seen.extend([request.url.host, response.url.host])
        return response

    builder = SessionBuilder(base_url).decorator(look)
    async with new_process(builder, (200, 0.1)) as process:
        await process.call()

    assert [host, host] == seen


def plain_retries():
    """Make the chain that the loop stands for."""
    backoff = Backoff.exponential(0.1, 20.0).with_full_jitter()
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(backoff), max_total_attempts=4, attempt_timeout=1.0
    )
    return SessionBuilder().decorator(retrying).response_timeout(30.0)


def no_retries():
    """Make a chain that sends each request once."""
    return SessionBuilder().response_timeout(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{}, {"error_rate": 0.3}, {"outage": None, "restart": "8:3"}],
    ids=["timeouts", "errors", "restart"],
)
def test_loops_do_what_real_chains_do(changes):
    """Each of their counts is that of sessions with the same calls, in each second."""
    run = partial(
        simulate,
        clients=3,
        rate=20.0,
        capacity=25.0,
        duration=20.0,
        **{"outage": "5:5:0.2"} | changes,
    )
    chains = {"plain retries": plain_retries, "no retries": no_retries}
    loops, sessions = run().runs, run(chains).runs

    assert chains.keys() < loops.keys()
    assert sessions == {name: loops[name] for name in chains}


def new_server(*, chance=lambda: 0.5, **changes):
    limits = {"capacity": 10.0, **changes}
    return SimulatedServer(settings(duration=100.0, **limits), chance)


def ready(server, *times):
    return [server.serve(now)[1] for now in times]


def test_requests_wait_for_those_before():
    """Requests that come together are served one after another."""
    assert pytest.approx([0.1, 0.2, 0.3]) == ready(new_server(), 0.0, 0.0, 0.15)


def test_outage_makes_it_slow():
    """In an outage a request takes longer, in proportion; else it does not."""
    server = new_server(outage=(10.0, 5.0, 0.2))

    assert pytest.approx([9.1, 10.5, 15.1]) == ready(server, 9.0, 10.0, 15.0)


def test_request_at_the_end_of_an_outage_goes_on_fast():
    """The part of a request that is left when the outage ends takes its usual time."""
    server = new_server(outage=(10.0, 5.0, 0.2))

    assert pytest.approx([15.05]) == ready(server, 14.75)


def test_outage_that_leaves_nothing_holds_requests_up():
    """Without any capacity left, requests are served when the outage is over."""
    server = new_server(outage=(10.0, 5.0, 0.0))

    assert pytest.approx([15.1, 15.2]) == ready(server, 10.0, 12.0)


def test_errors_come_at_their_rate():
    """A request is answered 503 where chance is below the rate."""
    chances = iter([0.09, 0.1])
    server = new_server(error_rate=0.1, chance=lambda: next(chances))

    assert [503, 200] == [server.serve(0.0)[0], server.serve(0.0)[0]]


def replicas(**trouble):
    """Make four servers that can answer 40 a second together."""
    shared = settings(
        duration=100.0, capacity=40.0, outage=(10.0, 5.0, 0.2), replicas=4, **trouble
    )
    return [SimulatedServer(shared, lambda: 0.5, number) for number in range(4)]


def test_replicas_have_the_capacity_together():
    """Each has its part of it, and of what an outage leaves."""
    servers = replicas()

    assert [0.1] * 4 == pytest.approx([server.serve(0.0)[1] for server in servers])
    assert [10.5] * 4 == pytest.approx([server.serve(10.0)[1] for server in servers])


def test_trouble_is_that_of_some_replicas():
    """In the outage some are dead, the next fail, one is slow, others are well."""
    servers = replicas(dead=1, failing=1, slow=3.0)
    before, meanwhile, after = (
        [server.serve(now) for server in servers] for now in (9.0, 10.0, 15.0)
    )

    assert [(200, pytest.approx(9.1))] * 4 == before
    assert [
        (REFUSED, 10.0),
        (503, 10.0),
        (200, pytest.approx(10.3)),
        (200, pytest.approx(10.1)),
    ] == meanwhile
    assert [(200, pytest.approx(15.1))] * 4 == after


def test_restart_cuts_what_it_has_and_takes_no_connections():
    """Until it is back, with an empty queue."""
    server = new_server(restart=(10.0, 3.0))
    before = [server.serve(now) for now in (9.8, 9.8, 9.8)]
    away = [server.serve(now) for now in (10.0, 12.9)]
    back = [server.serve(now) for now in (13.0, 13.0, 20.0)]

    assert [200, 200, CUT] == [status for status, _ in before]
    assert pytest.approx([9.9, 10.0, 10.0]) == [ready for _, ready in before]
    assert [(REFUSED, 10.0), (REFUSED, 12.9)] == away
    assert [(200, pytest.approx(ready)) for ready in (13.1, 13.2, 20.1)] == back


def test_full_queue_does_not_outlive_a_restart():
    """What came before is forgotten, also where nothing came meanwhile."""
    server = new_server(restart=(10.0, 3.0))
    for _ in range(200):
        server.serve(9.0)

    assert (200, pytest.approx(14.1)) == server.serve(14.0)


def test_one_of_several_replicas_restarts():
    """It is the first one."""
    servers = replicas(restart=(20.0, 1.0))

    assert [REFUSED, 200, 200, 200] == [server.serve(20.0)[0] for server in servers]


FEW = {"clients": 2, "rate": 20.0, "capacity": 60.0, "outage": "2:4:1", "duration": 8.0}
URLS = "http://a.example", "http://b.example/v1", "http://b.example/v1/eu"


def of_numbers(*numbers):
    drawn = iter(numbers)
    return SimulatedReplicas([ScriptedServer([])] * 4, lambda: next(drawn))


def process_of(base, numbers=()):
    return SimulatedProcess(SessionBuilder(base), of_numbers(*numbers))


async def test_without_endpoints_any_of_them_is_asked():
    """By chance."""
    process = process_of(None, [0.0, 0.99, 0.5])
    async with process.session:
        assert [0, 3, 2] == [process.replica_of("http://x.example/") for _ in range(3)]


def test_one_server_takes_no_chance():
    """So the numbers of simulations with one stay what they were."""
    assert 0 == SimulatedReplicas([ScriptedServer([])], lambda: 1 / 0).any()


async def test_endpoint_is_found_by_how_its_urls_begin():
    """By the longest such beginning."""
    bases = *URLS[::-1], "http://c.example"
    process = process_of(EndpointGroup.of(*bases))
    urls = "http://b.example/v1/x", "http://b.example/v1/eu/x", "http://a.example/x"

    async with process.session:
        assert [1, 0, 2] == [process.replica_of(url) for url in urls]
        assert [1, 0, 2] == [process.replica_of(url) for url in urls]


def balanced(*urls, **settings):
    return lambda: SessionBuilder.standard(
        EndpointGroup.of(*urls, **settings), logging=None
    )


def test_calls_of_a_group_go_to_its_endpoints():
    """In their order: the first one dies, and the others get its calls."""
    run = simulate({"ours": balanced(*URLS)}, replicas=3, dead=1, **FEW).runs["ours"]

    assert 1.0 == run.success
    assert run.attempts == tuple(map(sum, zip(*run.by_replica, strict=True)))
    assert run.shares[0] <= 0.1
    assert all(share >= 0.2 for share in run.shares[1:])


@pytest.mark.parametrize("trouble", [{"dead": 1}, {"failing": 1}, {"slow": 20.0}])
def test_chain_without_a_group_meets_the_bad_one_by_chance(trouble):
    """A third of its requests go there."""

    def alone():
        return SessionBuilder().response_timeout(0.5)

    runs = simulate({"alone": alone}, replicas=3, **trouble, **FEW).runs

    assert runs["alone"].shares[0] == pytest.approx(1 / 3, abs=0.15)
    assert runs["alone"].success < 0.95


def test_loops_meet_it_as_sessions_do():
    """Plain loops go to any of them."""
    runs = simulate(replicas=3, dead=1, **FEW).runs

    assert 1.0 == runs["standard chain"].success
    assert runs["no retries"].shares[0] == pytest.approx(1 / 3, abs=0.15)
    assert runs["no retries"].success < runs["plain retries"].success


@pytest.mark.parametrize("status", ["dead", "failing"])
def test_all_may_be_in_trouble(status):
    """Then nothing is answered until it is over."""
    run = simulate({"ours": balanced(*URLS)}, replicas=3, **{status: 3}, **FEW).runs[
        "ours"
    ]

    assert 0 == sum(run.answered[2:6])
    assert run.calls[6:] == run.answered[6:]


def chain_of_too_few():
    return SessionBuilder(EndpointGroup.of(*URLS[:2]))


def chain_of_addresses():
    them = [Endpoint(URLS[0], address=f"192.0.2.{n}") for n in range(3)]
    return SessionBuilder(EndpointGroup.of(*them))


def chain_of_none_yet():
    return SessionBuilder(DynamicEndpointGroup())


@pytest.mark.parametrize(
    "chain", [chain_of_too_few, chain_of_addresses, chain_of_none_yet]
)
def test_group_stands_for_the_replicas(chain):
    """One that has others, or none of its own, is refused."""
    expected = r"group: .*endpoints with URLs of their own, as many as replicas, 3\)$"
    with pytest.raises(ValueError, match=expected):
        simulate({"ours": chain}, replicas=3, **FEW)


async def test_refusal_says_who_refuses():
    """As aiohttp does."""
    builder = SessionBuilder("http://orders.example")
    process = SimulatedProcess(builder, SimulatedReplicas([ScriptedServer([(0, 0.0)])]))
    async with process.session:
        with pytest.raises(OSError, match=r"^Cannot connect to host orders.example:80"):
            await process.session.get("http://orders.example/")
