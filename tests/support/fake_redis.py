"""The part of a Redis that is used, and processes that share circuits through it."""

import asyncio
import contextlib

from aioretry_smithy import CircuitBreaker
from aioretry_smithy.redis import SharedCircuitBreakers

NEGLIGIBLE = 1e-9
SUBSCRIBED = {"type": "subscribe", "data": 1}


class FakeRedis:
    """Knows budgets and channels; each question takes a while, or fails.

    All clients of one server are one object.
    """

    def __init__(self, latency=0.0, connections=100):
        self.latency = latency
        # As redis-py has from 8.0 on, besides those that have subscribed.
        self.connections = connections
        self.failure = None
        self.pong = {"type": "pong", "data": b""}
        self.questions = 0
        self.purses = {}
        self.subscribers = set()
        self.messages = []
        self.channels = []

    async def respond(self):
        self.questions += 1
        if not self.connections:
            raise ConnectionError("too many connections")
        self.connections -= 1
        try:
            await asyncio.sleep(self.latency)
        finally:
            self.connections += 1
        if self.failure is not None:
            raise self.failure

    def register_script(self, script):
        """Return the one script that there is, in Python."""

        async def pay(keys, args):
            await self.respond()
            capacity, brake_after, deposit = (float(each) for each in args[:3])
            has_success, failed, price = int(args[3]), float(args[4]), args[5]
            tokens, failures = self.purses.get(keys[0], (capacity, 0))
            failures = failed + (0 if has_success else failures)
            tokens = max(0.0, min(tokens + deposit, capacity))
            is_braked = 0 < brake_after <= failures + NEGLIGIBLE
            cost = float(price or 0)
            is_paid = price and not is_braked and tokens >= cost - NEGLIGIBLE
            if is_paid:
                tokens = max(tokens - cost, 0.0)
            self.purses[keys[0]] = tokens, failures
            return [int(bool(is_paid)), str(tokens).encode(), str(failures).encode()]

        return pay

    async def publish(self, channel, message):
        await self.respond()
        self.messages.append(message)
        self.channels.append(channel)
        for subscriber in self.subscribers:
            subscriber.queue.put_nowait(message)
        return len(self.subscribers)

    def pubsub(self):
        return FakePubSub(self)

    def cut(self):
        """Close the connections of those that have subscribed."""
        for subscriber in [*self.subscribers]:
            subscriber.queue.put_nowait(ConnectionError("closed"))

    def reconnect(self):
        """Let the clients make their connections anew, as redis-py does by itself."""
        for subscriber in self.subscribers:
            subscriber.queue.put_nowait(SUBSCRIBED)

    def fail(self, failure):
        """Answer no question any more, or answer again."""
        self.failure = failure
        for subscriber in self.subscribers if failure else ():
            subscriber.queue.put_nowait(failure)


class FakePubSub(contextlib.AbstractAsyncContextManager["FakePubSub"]):
    """Gets what is published, from when it subscribes."""

    def __init__(self, server):
        self.server = server
        self.queue = asyncio.Queue()

    async def __aexit__(self, *error):
        self.server.subscribers.discard(self)

    async def subscribe(self, channel):
        await self.server.respond()
        self.server.subscribers.add(self)
        self.queue.put_nowait(SUBSCRIBED)

    async def ping(self):
        if self.server.failure is None:
            self.queue.put_nowait(self.server.pong)

    async def get_message(self, **options):
        assert not options["ignore_subscribe_messages"]
        try:
            message = await asyncio.wait_for(self.queue.get(), options["timeout"])
        except TimeoutError:
            return None
        await asyncio.sleep(self.server.latency)
        if isinstance(message, Exception):
            raise message
        return message if isinstance(message, dict | None) else {"data": message}


class WaitingRedis(FakeRedis):
    """A client that holds up the event loop, as ``redis.Redis`` does."""

    def register_script(self, script):
        return print

    def pubsub(self):
        return None


class Process:
    """One process, with a circuit breaker of the name that all have."""

    def __init__(self, redis, share=0.5, name="orders", listeners=(), **settings):
        self.shared = SharedCircuitBreakers(redis, random=lambda: share)
        self.breaker = CircuitBreaker(
            name,
            minimum_request_threshold=2,
            listeners=[self.shared, *listeners],
            **settings,
        )

    async def __aenter__(self):
        await self.shared.__aenter__()
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *error):
        await self.shared.__aexit__(*error)

    def report(self, *outcomes):
        """Count a success or a failure for each."""
        for outcome in outcomes:
            permit = self.breaker.try_request()
            if outcome:
                self.breaker.on_success(permit)
            else:
                self.breaker.on_failure(permit)

    @property
    def state(self):
        return self.breaker.state


@contextlib.asynccontextmanager
async def processes(*all_of_them):
    async with contextlib.AsyncExitStack() as stack:
        for process in all_of_them:
            await stack.enter_async_context(process)
        yield all_of_them


@contextlib.asynccontextmanager
async def two_open(redis, *shares, **settings):
    """Run two processes; the circuit of the first has opened, and tells the other."""
    async with processes(*(Process(redis, share, **settings) for share in shares)) as (
        one,
        other,
    ):
        other.report(False)
        one.report(False, False)
        yield one, other


async def heard():
    """Wait until everybody has heard what was told."""
    await asyncio.sleep(0.01)
