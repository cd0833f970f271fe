"""Calls inside attempts: what the attempt holds, who makes the call, and the server."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web
from chains import SAFELY, connected, now, retrying, session
from races import hedging

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RequestLog,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    client_decorator,
    request_options,
    rpc,
)

ORDERS = "/orders"
INNER = "/inner"
FULL = "/full"


class Trial:
    """The trial of a circuit breaker, of which there is one."""

    is_shared = False

    def __init__(self, holders):
        self.decorators = ()

    async def prime(self, scene):
        scene.breaker.enter_state(CircuitState.HALF_OPEN)

    @property
    def is_idle(self):
        return True


class Place:
    """The places of a limit that stays."""

    is_shared = True

    def __init__(self, holders):
        self.limit = self.made(holders)
        self.least = holders
        limiting = ConcurrencyLimitingClient.new_decorator(self.limit, timeout=0.25)
        self.decorators = (limiting,)

    made = staticmethod(ConcurrencyLimit.fixed)

    async def prime(self, scene):
        pass

    @property
    def is_idle(self):
        limit = self.limit
        return (0, 0) == (limit.in_flight, limit.pending) and limit.limit >= self.least


class Adaptive(Place):
    """The places of a limit that learns, which nothing cuts."""

    @staticmethod
    def made(holders):
        return ConcurrencyLimit.aimd(initial=holders)


class Rate:
    """The turns of a bucket that is empty then, but not for long."""

    is_shared = True

    def __init__(self, holders):
        self.limit = RateLimit(20, burst=holders)
        self.decorators = (RateLimitingClient.new_decorator(self.limit),)

    async def prime(self, scene):
        pass

    @property
    def is_idle(self):
        return 0 == self.limit.pending


class Learnt(Rate):
    """The probe after a wait that was cut."""

    def __init__(self, holders):
        self.limit = RateLimit.from_headers(max_wait=0.1)
        self.decorators = (RateLimitingClient.new_decorator(self.limit),)

    async def prime(self, scene):
        headers = {"Authorization": "mine"}
        with request_options(retry=RetryConfig.no_retry()):
            async with scene.client.get(FULL, headers=headers) as response:
                assert 429 == response.status


HELD = [Trial, Place, Adaptive, Rate, Learnt]


class Caller:
    """Who makes a call inside each attempt for :data:`ORDERS`."""

    method = "GET"

    def inside(self, scene):
        return ()

    def strategy(self, scene):
        return None

    def middlewares(self, scene):
        return ()

    def options(self, scene):
        return {}


class Fetch(Caller):
    """The fetch of a token, one for all."""

    def inside(self, scene):
        return (RefreshingClient.new_decorator(scene.call),)


class Signature(Caller):
    """A middleware that asks for the server's time."""

    def middlewares(self, scene):
        async def sign(request, handler):
            if request.url.path == ORDERS:
                request.headers["X-Time"] = await scene.call()
            return await handler(request)

        return (sign,)


class OwnDecorator(Caller):
    """A decorator of the user's."""

    def inside(self, scene):
        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == ORDERS:
                request = request.with_header("X-Time", await scene.call())
            return await delegate.execute(ctx, request)

        return (asking,)


class Judge(Caller):
    """An async strategy of the circuit breaker."""

    def strategy(self, scene):
        class Asking(CircuitBreakerStrategy):
            async def should_report_as_success(self, ctx, cause):
                if ctx.request.url.path == ORDERS:
                    await scene.call()
                return cause is None

        return Asking()


class Generator(Caller):
    """A body whose parts are asked for."""

    method = "PUT"

    def options(self, scene):
        return {"data": self.parts(scene)}

    async def parts(self, scene):
        yield b"the time: "
        yield (await scene.call()).encode()


class Factory(Generator):
    """A factory of such bodies."""

    def options(self, scene):
        return {"data": lambda: self.parts(scene)}


class Function(Caller):
    """A function with decorators of its own, called by a decorator."""

    def inside(self, scene):
        retry = RetryingRpcClient.new_decorator(RetryRule(exceptions=[LookupError]))
        time = rpc(retry, name="time")(scene.call)

        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == ORDERS:
                await time()
            return await delegate.execute(ctx, request)

        return (asking,)


CALLERS = [Fetch, Signature, OwnDecorator, Judge, Generator, Factory, Function]


class Scene:
    """A server, a session on it, and the calls that are made inside.

    Args:
        held: What each attempt holds.
        caller: Makes a call inside.
        is_hedged: Whether each attempt is sent twice at once.
    """

    logs: list[RequestLog]
    """Those of the calls inside that were answered."""

    failures: list[Exception]
    """Of the others."""

    def __init__(self, held, caller, *, is_hedged=False):
        self.held, self.caller, self.is_hedged = held, caller, is_hedged
        self.logs, self.failures, self.asked = [], [], []
        self.gate = asyncio.Event()
        self.gate.set()
        self.breaker = CircuitBreaker("orders", trial_request_interval=60.0)

    async def respond(self, request):
        """Answer as the server."""
        self.asked.append(request.path)
        await request.read()
        if request.path == FULL:
            return web.Response(status=429, headers={"Retry-After": "99"})
        if request.path == INNER:
            await self.gate.wait()
        return web.Response(text="noon")

    def open(self, url):
        """Open the session; rates are outermost, as in the standard chain."""
        caller, strategy = self.caller, self.caller.strategy(self)
        self.client = connected(
            url,
            *caller.inside(self),
            CircuitBreakerClient.new_decorator(self.breaker, strategy),
            *self.held.decorators,
            *([hedging(0.0)] if self.is_hedged else []),
            retrying(SAFELY, max_total_attempts=2),
            middlewares=caller.middlewares(self),
        )
        return self.client

    async def call(self):
        """Make a call inside, when others have begun who came at the same time."""
        await asyncio.sleep(0.02)
        try:
            async with self.client.get(INNER, middlewares=()) as response:
                text = await response.text()
        except Exception as error:
            self.failures.append(error)
            raise
        self.logs.append(RequestLog.of(response))
        return text

    async def order(self):
        """Make a call; return its status or the class of its failure."""
        caller = self.caller
        try:
            async with self.client.request(
                caller.method, ORDERS, **caller.options(self)
            ) as response:
                await response.read()
                return response.status
        except aiohttp.ClientError as error:
            return type(error)


BASE = "http://shop/"
OTHER = "http://auth/"


class Shop:
    """A session whose transport takes a second, and calls inside its attempts."""

    def __init__(self, *decorators, inner=200):
        self.sent = []
        self.inner = inner
        self.most = self.at_once = 0
        chain = [self.asking, *decorators]
        self.session = session([self.answer] * 50, *chain, base_url=BASE)
        self.ask = self.ask_once

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self.session.close()

    async def answer(self, ctx, request):
        self.sent.append((request.url.path, now()))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(float(request.options.get("params", {}).get("s", 1)))
        finally:
            self.at_once -= 1
        return self.inner if request.url.path == "/inner" else 200

    def asking(self, delegate):
        @client_decorator
        async def asking(delegate, ctx, request):
            if request.url.path == "/orders":
                await self.ask()
            return await delegate.execute(ctx, request)

        return asking(delegate)

    async def ask_once(self):
        await self.get("/inner")

    async def get(self, url="/orders", seconds=1):
        """Return the status or the class of the failure, and when that came."""
        try:
            async with self.session.get(url, params={"s": seconds}) as response:
                return response.status, now()
        except aiohttp.ClientError as error:
            return type(error), now()


def place(limit=1, **settings):
    return ConcurrencyLimitingClient.new_decorator(limit, **settings)


def rate(limit, **settings):
    return RateLimitingClient.new_decorator(limit, **settings)


def half_open(**settings):
    breaker = CircuitBreaker("orders", trial_request_interval=60.0, **settings)
    breaker.enter_state(CircuitState.HALF_OPEN)
    return breaker


def breaking(breaker, *strategy, **settings):
    return CircuitBreakerClient.new_decorator(breaker, *strategy, **settings)
