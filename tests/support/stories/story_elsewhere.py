"""Calls whose connection was broken meanwhile, sent again, to another endpoint too."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from addressed import PoolAt
from chains import drawing
from fault_server import End, Fault, answer, cut, response
from pool_server import RESET
from story import errors_of_loop, told_of, told_request
from story_calls import generated
from story_chains import breaking, chain, logging_with, plain, retrying
from story_data import plain as as_values
from story_decorators import watching
from story_groups import FailingChoice, looked_at, settings_of
from story_hedges import limited
from story_log import told_log
from story_parts import FILE, TAG, TOTAL
from story_service import drawn_alike
from story_text import settled
from story_witness import LimiterWitness, Witness

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    IdempotencyKeyClient,
    RefreshingClient,
    ResumingClient,
    capture_logs,
    request_options,
)


@dataclass(frozen=True)
class Stale:
    """What happens to the connections between two calls, and what is asked then."""

    method: str = "GET"
    make: Callable[[], Any] | None = None
    """Makes the body."""
    how: Fault = RESET
    """How the first server breaks a connection that is used again."""
    all_break: bool = False
    """Whether the second one does so too."""
    scripts: tuple[tuple[str, Fault], ...] = ()
    """What each server does next with a request to ``/x``, by its name."""
    pin: str | None = None
    path: str = "/x"
    calls: int = 1


def endpoint_at(name, server):
    """Return a server as an endpoint with a name of its own."""
    url = f"http://{name}.test:{server.url.port}/{name}"
    return Endpoint(url, address=server.url.host)


async def group(witness, servers, **settings):
    """Make a group of the servers, each with a name of its own."""
    urls = [endpoint_at(*each) for each in servers.items()]
    return looked_at(witness, EndpointGroup.of(*urls, **settings_of(witness, settings)))


async def in_turn(witness, servers):
    return await group(
        witness, servers, selection=EndpointSelectionStrategy.round_robin()
    )


async def failing(witness, servers):
    return await group(witness, servers, selection=FailingChoice)


async def or_else(witness, servers):
    first, second = [
        await group(witness, {name: each}, name=name) for name, each in servers.items()
    ]
    return looked_at(witness, first.or_else(second))


async def alone(witness, servers):
    return await group(witness, {"a": servers["a"]})


async def no_group(witness, servers):
    return servers["a"].url


def told_anew(scenario, parts, base):
    """Describe calls to two servers, the connections of which break in between."""

    async def tell():
        witness = Witness()
        async with PoolAt("127.0.0.1", 0) as a, PoolAt("127.0.0.2", 0) as b:
            servers = {"a": a, "b": b}
            ports = {server.url.port: name for name, server in servers.items()}
            with (
                witness.listening(0),
                capture_logs() as witness.logs,
                errors_of_loop(witness),
                drawing(),
                drawn_alike(),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                where = await base(witness, servers)
                async with chain(*parts).open(witness, base_url=where) as session:
                    result = await played(scenario, witness, servers, session)
                await asyncio.sleep(0)
                state = [each() for each in witness.states]
        wire = {
            name: [told_request(each) for each in server.requests]
            for name, server in servers.items()
        }
        story = {
            "result": result,
            "wire": wire,
            "seen": witness.seen,
            "state": state,
            "logs": [told_log(log) for log in witness.logs],
        }
        return named(story, ports)

    return tell


def named(story, ports):
    """Return a story in which a name stands for each port."""
    text = json.dumps(as_values(settled(as_values(story))))
    for port, name in ports.items():
        text = text.replace(f":{port}", f":{name * 5}")
    return json.loads(text)


async def played(scenario, witness, servers, session):
    """Use a connection to each server, break them, and make the calls."""
    for name, server in servers.items():
        with request_options(endpoint=endpoint_at(name, server)):
            await told_of(witness, one(session, "GET", "/warm"))
    servers["a"].leave_stale(scenario.how)
    if scenario.all_break:
        servers["b"].leave_stale(scenario.how)
    for name, fault in scenario.scripts:
        target = f"/{name}/x"
        servers[name].scripts.setdefault(target, []).append(fault)
    options = {} if scenario.make is None else {"data": scenario.make()}
    block = {}
    if scenario.pin is not None:
        block["endpoint"] = endpoint_at(scenario.pin, servers[scenario.pin])
    results = []
    with request_options(**block):
        for _ in range(scenario.calls):
            call = one(session, scenario.method, scenario.path, **options)
            results.append(await told_of(witness, call))
    return results, await told_of(witness, one(session, "GET", "/after"))


async def one(session, method, path, **options):
    """Make a call, and tell its answer."""
    async with session.request(method, path.lstrip("/"), **options) as response:
        body = await response.read()
        return response.status, response.url.path, body, len(response.history)


async def fetch():
    return "token"


def keyed():
    return IdempotencyKeyClient.new_decorator(
        key=lambda ctx, request: "key", hosts=["http://a.test", "http://b.test"]
    )


CHAINS = {
    "alone": (),
    "retried": (retrying(limiter=LimiterWitness), logging_with()),
    "limited": (limited(1), breaking(), retrying()),
    "watched": (watching("inside"), retrying(), watching("outside")),
    "hedged": (plain(HedgingClient.new_decorator(60.0)), retrying()),
    "with a token": (
        plain(RefreshingClient.new_decorator(fetch, hosts=None)),
        retrying(),
    ),
    "resumed": (retrying(), plain(ResumingClient.new_decorator())),
    "attempts of 5 s": (breaking(), retrying(attempt_timeout=5.0)),
}
"""By name."""

GROUPS = {
    "in order": group,
    "in turn": in_turn,
    "choice fails": failing,
    "or else": or_else,
    "one only": alone,
    "no group": no_group,
}
"""By name: what makes the base of the session."""


def part_of_file(start, stop=None, status=206):
    """Answer with a part of a file, all of it or up to where it breaks off."""
    headers = [f"ETag: {TAG}"]
    if status == 206:
        headers.append(f"Content-Range: bytes {start}-{TOTAL - 1}/{TOTAL}")
    sent = response(status, FILE[start:], *headers)
    if stop is None:
        return Fault(send=(sent,))
    return Fault(send=(sent[: stop - TOTAL],), end=End.CLOSE)


def redirect(where):
    return answer(302, b"", f"Location: {where}")


STALES = {
    "GET": Stale(),
    "GET, closed": Stale(how=Fault(send=(), end=End.CLOSE)),
    "PUT of bytes": Stale("PUT", lambda: b"body"),
    "PUT of a generator": Stale("PUT", generated),
    "POST of bytes": Stale("POST", lambda: b"body"),
    "both are stale": Stale(all_break=True),
    "503 there": Stale(scripts=(("b", answer(503, b"busy")),)),
    "cut there": Stale(scripts=(("b", cut(end=End.RESET)),)),
    "pinned": Stale(pin="a"),
    "three calls": Stale(calls=3),
    "redirected": Stale(
        how=redirect("/a/there"), scripts=(("a", answer(200, b"there")),)
    ),
    "half of a file": Stale(
        how=part_of_file(0, 100, status=200),
        scripts=(("a", part_of_file(100, 200)), ("a", part_of_file(200))),
    ),
}
"""By name."""

STORIES = {
    f"{name}: {chain}: {stale}": told_anew(scenario, parts, base)
    for name, base in GROUPS.items()
    for chain, parts in CHAINS.items()
    for stale, scenario in STALES.items()
    if name in {"in order", "or else"}
    or (chain == "retried" and stale in {"GET", "both are stale", "PUT of bytes"})
    if not (name != "in order" and chain in {"with a token", "attempts of 5 s"})
}
"""By name: functions that tell the story."""
