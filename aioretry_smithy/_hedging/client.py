"""Send a request again while its answer is late, and take the first good one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .. import _checks as check
from .._bodies.request_body import can_be_sent_at_once
from .._call.recorder import judge_attempt, record_failure
from .._call.time_limits import time_left
from .._clock import loop_time
from .._context.chain import check_inside
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.context import AttemptContext, ClientRequestContext
from .._context.holdings import hand_over
from .._errors import ResponseTimeoutError, bad_argument, call_it, is_finite
from .._failures.failure import IN_POOL, copy_marks, failure_of, was_in_pool
from .._retry.config import hedges_are_off
from .._retry.limiter import RetryLimiter
from .._retry.strategy import may_be_hedged
from .delay import Delays, HedgingDelay
from .hedged_request import HedgedRequest, came_from_server, is_good

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._call.call import Call
    from .._request.request import HttpRequest


class HedgingClient(DecoratingClient[HttpClient]):
    """Sends a request once more when no answer has come in time; the first good wins.

    That cuts the slowest answers, where a second request would be quick, and costs a
    few requests. Inside a retrying client, as usual, each attempt is hedged.

    - Only requests that may be sent twice are hedged: idempotent ones, by method, by an
      ``Idempotency-Key`` or by :func:`request_options`, with a body in memory.
    - An answer is good with a status below 500 that is neither 408 nor 429. A bad one,
      or a failure that another attempt might not meet, sends the next hedge at once. No
      hedge follows on a ``Retry-After``.
    - When an answer is good, the other requests are cancelled and their responses
      closed, in one turn of the event loop. No circuit breaker, budget or limit counts
      them. The body of the good one is still to be read.
    - If none is good, the last response is returned; without any, the first exception
      is raised, one of a request that was refused on this side last. A bad answer is
      closed if not all of its body is here when another request is sent, or on its way:
      that may wait for its connection, or its place.
    - A good answer that was not sent, such as that of a fallback, ends hedging, and is
      returned if the requests under way bring no good one.
    - Nothing is hedged in a block whose :class:`RetryConfig` allows one attempt.

    Each request has a log: ``is_hedge`` and ``superseded`` say whether it is a hedge
    and whether it lost. A hedge has the retry count header, as a retry has. After
    gRPC's hedging and Finagle's backup requests.

    >>> decorator = HedgingClient.new_decorator(HedgingDelay.percentile(0.95))
    """

    _serves = "sessions"
    _sends_again = True

    def __init__(
        self,
        delegate: HttpClient,
        delay: HedgingDelay,
        delays: Delays,
        max_hedges: int,
        limiter: RetryLimiter | None,
    ) -> None:
        super().__init__(delegate)
        self._delay = delay
        self._delays = delays
        self._max_hedges = max_hedges
        self._limiter = limiter

    @classmethod
    def new_decorator(
        cls,
        delay: float | HedgingDelay,
        *,
        max_hedges: int = 1,
        limiter: RetryLimiter | None = None,
    ) -> Decorator:
        """Return a decorator for a session builder.

        Args:
            delay: How long to wait for an answer before each hedge: seconds, finite and
                >= 0, or a :class:`HedgingDelay`. The answers of all sessions built with
                the decorator count for a percentile.
            max_hedges: Hedges of one request, an int >= 1.
            limiter: Asked for a permit before each hedge; when it refuses, no hedge
                follows. Give it to the retrying client too: that tells it of successes
                and failures, without which a :class:`RetryBudget` does not refill.

        Returns:
            The decorator. Put it inside the retrying client, and outside the decorators
            that shall see each request, such as a circuit breaker.

        Raises:
            ValueError: An argument is not as described; or, when the session is built,
                the decorator stands around a retrying or another hedging client.

        >>> budget = RetryBudget()
        >>> builder = (
        ...     SessionBuilder()
        ...     .decorator(HedgingClient.new_decorator(0.05, limiter=budget))
        ...     .decorator(
        ...         RetryingClient.new_decorator(
        ...             RetryStrategy.failsafe(), limiter=budget
        ...         )
        ...     )
        ... )
        """
        if is_finite(delay) and delay >= 0:
            delay = HedgingDelay.fixed(delay)
        if not isinstance(delay, HedgingDelay):
            expected = "seconds, finite and >= 0, or a HedgingDelay"
            expected += call_it(delay, HedgingDelay)
            raise bad_argument("delay", delay, expected)
        check.integer("max_hedges", max_hedges, 1)
        check.kind("limiter", limiter, RetryLimiter, or_none=True)
        checked, delays = delay, delay._new_delays()

        def decorator(delegate: HttpClient) -> HttpClient:
            check_inside(cls.__name__, delegate, repeats=True)
            return cls(delegate, checked, delays, max_hedges, limiter)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request*, and again while its answer is late."""
        if isinstance(ctx, AttemptContext):
            return await self._hedged(ctx, request)
        # Nothing retries: then each request gets its log here.
        attempt = AttemptContext(ctx.call, request)
        try:
            response = await self._hedged(attempt, request)
        except BaseException as cause:
            _end(attempt)
            judge_attempt(attempt, cause)
            was_cut = failure_of(cause).sibling_timed_out and time_left(ctx.call) <= 0
            if was_cut and type(cause) is not ResponseTimeoutError:
                raise _timed_out(ctx.call, cause) from cause
            raise
        _end(attempt)
        return response

    async def _hedged(
        self, ctx: AttemptContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        data = request.arguments.get("data")
        is_hedged = may_be_hedged(ctx, request) and (
            data is None or can_be_sent_at_once(data)
        )
        times = self._delays.of(request) if is_hedged else None
        if times is None:
            return await self.delegate.execute(ctx, request)
        delay = None if hedges_are_off(ctx.call) else times.delay()
        if delay is not None:
            hedged = HedgedRequest(
                self.delegate,
                ctx,
                request,
                times,
                delay,
                self._max_hedges,
                self._limiter,
            )
            return await hedged.run()
        started = loop_time()
        response = await self.delegate.execute(ctx, request)
        if is_good(response.status) and came_from_server(ctx, response):
            times.note(loop_time() - started)
        return response

    @property
    def delays(self) -> Mapping[str, float | None]:
        """The present delays in seconds by their keys, for health pages.

        None where there are too few answers yet. A fixed one stands under ``all``.

        >>> decorator = HedgingClient.new_decorator(0.05)
        >>> decorator(ScriptedTransport([])).delays
        mappingproxy({'all': 0.05})
        """
        in_use = self._delays.in_use().items()
        return MappingProxyType({key: times.delay() for key, times in in_use})

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = f"max_hedges={self._max_hedges!r}, limiter={self._limiter!r}"
        return f"{type(self).__name__}(delay={self._delay!r}, {settings})"


def _end(attempt: AttemptContext) -> None:
    """Copy the outcome of the only attempt to its call, without a retrying client."""
    call, record = attempt.call, attempt.record
    record.is_final = True
    if not call.is_final:
        call.outcome = record.outcome
    hand_over(attempt, attempt.parent)


def _timed_out(call: Call, cause: BaseException) -> ResponseTimeoutError:
    seconds = (call.deadline or call.started) - call.started
    where = IN_POOL if was_in_pool(cause) else ""
    error = ResponseTimeoutError(f"the call had {seconds:.3f} s{where}")
    copy_marks(error, cause)
    record_failure(call, error)
    return error
