"""Scripted servers with names, for groups made of others or of a source."""

import asyncio
import itertools
import math

from chains import chain, now

from aioretry_smithy import (
    Backoff,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    OutlierDetection,
    RetryingClient,
    RetryStrategy,
)
from aioretry_smithy._endpoints.discovery import Answer, Discovery, Listed
from aioretry_smithy.testing import ScriptedTransport

QUICK = OutlierDetection(consecutive_failures=1)
"""One failure is enough to be out for 5 s."""


def of(*names, **settings):
    """Make a group of servers, asked in order, out after one failure."""
    settings.setdefault("selection", EndpointSelectionStrategy.in_order())
    settings.setdefault("outlier_detection", QUICK)
    return EndpointGroup.of(*(f"http://{name}" for name in names), **settings)


def dns(*answers, name="orders", **settings):
    """Make a group whose query gets these answers in turn, the last one for ever.

    An answer is a list of addresses, an exception, or seconds to wait before the next.
    """
    script = [*answers]

    async def resolver(host, port):
        if isinstance(script[0], int | float):
            await asyncio.sleep(script.pop(0))
        answer = script[0] if len(script) == 1 else script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return [(address, 10.0) for address in answer]

    settings.setdefault("selection", EndpointSelectionStrategy.in_order())
    settings.setdefault("outlier_detection", QUICK)
    return EndpointGroup.dns(f"http://{name}", resolver=resolver, **settings)


def retrying(attempts=3, wait=0.5):
    """Retry failures, server errors and what was not sent."""
    strategy = RetryStrategy.failsafe(Backoff.fixed(wait))
    return RetryingClient.new_decorator(strategy, max_total_attempts=attempts)


class Servers:
    """Servers that answer 200 unless told otherwise by their names."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []
        self.urls = []
        self.transport = ScriptedTransport(itertools.repeat(self._answer))

    def _answer(self, ctx, request):
        endpoint = ctx.endpoint
        name = request.url.host if endpoint is None else str(endpoint)
        self.asked.append(name)
        self.urls.append(str(request.url))
        answer = self.answers.get(name, 200)
        return type(answer)(*answer.args) if isinstance(answer, Exception) else answer

    def taken(self):
        """Return who was asked since the last time."""
        asked, self.asked = self.asked, []
        return asked

    def session(self, group, *decorators, **settings):
        """Build a session of a group, through decorators, inner ones first."""
        return chain(self.transport, *decorators, base_url=group, **settings).build()

    async def get(self, client, url="/", **options):
        """Send a request; return the status, or what was raised."""
        try:
            async with client.get(url, **options) as response:
                return response.status
        except Exception as error:
            return error


class Told(EndpointGroupListener):
    """Notes what it is told."""

    def __init__(self):
        self.events = []

    def on_endpoints_changed(self, group, endpoints):
        self.events.append(("changed", *map(str, endpoints)))

    def on_ejected(self, group, endpoint, reason, until):
        self.events.append(("ejected", str(endpoint), reason, until))

    def on_returned(self, group, endpoint):
        self.events.append(("returned", str(endpoint)))


def found(*hosts, ttl=None):
    """Return the answer that lists these hosts."""
    return Answer(tuple(Listed(Endpoint(f"http://{host}")) for host in hosts), ttl)


class Asked:
    """A source that gives its answers in turn, the last one again and again."""

    refresh = 1.0, 60.0
    is_cancellable = True

    def __init__(self, *answers):
        self.answers = [*answers]
        self.times = []

    async def __call__(self):
        self.times.append(now())
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Found:
    """A discovery, and the roster that notes what it finds and wakes who waits."""

    def __init__(self, *answers, **settings):
        self.lists = []
        self.failures = []
        self.waiters = []
        self.asked = Asked(*answers)
        vars(self.asked).update(settings)
        self.discovery = Discovery(self.asked, self)

    def set_listed(self, listed):
        self.lists.append([str(each.endpoint) for each in listed])
        self.wake()

    def note_failed_query(self, failure):
        self.failures.append(repr(failure))
        self.wake()

    def wake(self):
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()

    async def use(self, at=None):
        """Use the list at that time, and let what comes of it at once happen."""
        if at is not None:
            await pass_time(at - now())
        may_serve = self.discovery.use(now())
        await settled()
        return may_serve

    async def wait(self):
        """Wait until the list may serve, as calls do."""
        while not self.discovery.use(now()):
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            pause = self.discovery.asks_at - now()
            await asyncio.wait([waiter], timeout=None if pause == math.inf else pause)

    @property
    def times(self):
        return self.asked.times


def after(seconds, answer):
    """Answer after a while."""

    async def respond():
        await asyncio.sleep(seconds)
        return answer

    return respond


async def settled():
    """Let what can happen at once happen."""
    for _ in range(5):
        await asyncio.sleep(0)


async def pass_time(seconds):
    """Let time pass, and what is due then happen."""
    await asyncio.sleep(seconds)
    await settled()


def tasks():
    return asyncio.all_tasks() - {asyncio.current_task()}
