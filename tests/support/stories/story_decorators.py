"""Decorators, strategies and listeners of the user's, which tell a witness."""

from story_calls import NOW
from story_text import BreakerWitness, LimiterWitness, told_context, told_error

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    DecoratingClient,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    RetryStrategyWithContent,
    client_decorator,
    new_response,
)


class FailingLimiter(LimiterWitness):
    """Raises on a success."""

    def on_success(self, ctx):
        super().on_success(ctx)
        raise LookupError("limiter")


class FailingListener(BreakerWitness):
    """Raises on an event."""

    def on_event_count_updated(self, circuit_breaker, event_count):
        super().on_event_count_updated(circuit_breaker, event_count)
        raise LookupError("listener")


class Strategy(RetryStrategy):
    """Retries what the server failed at, and notes what it was asked."""

    def __init__(self, witness):
        self._note = witness.note

    def should_retry(self, ctx, cause):
        self._note("asked", told_context(ctx), told_error(cause))
        return NOW if (ctx.log.response_status or 500) >= 500 else None


class AsyncStrategy(Strategy):
    """Decides in a coroutine."""

    async def should_retry(self, ctx, cause):
        return super().should_retry(ctx, cause)


class FailingStrategy(Strategy):
    """Raises, also where the attempt succeeded."""

    def should_retry(self, ctx, cause):
        super().should_retry(ctx, cause)
        raise LookupError("strategy")


class ContentStrategy(RetryStrategyWithContent):
    """Looks at the body."""

    def __init__(self, witness):
        self._note = witness.note

    async def should_retry(self, ctx, cause, content):
        self._note("asked", told_context(ctx), told_error(cause), content)
        return NOW if cause is not None or ctx.log.response_status == 503 else None


class BreakerStrategy(CircuitBreakerStrategy):
    """Notes what a circuit breaker asks."""

    def __init__(self, witness):
        self._note = witness.note

    def should_report_as_success(self, ctx, cause):
        self._note("counted", told_context(ctx), told_error(cause))
        return cause is None


def watching(name):
    """Note what a decorator function of the user's sees, before and after."""

    def part(witness):
        @client_decorator
        async def watch(delegate, ctx, request):
            witness.note(name, "before", told_context(ctx), str(request))
            try:
                response = await delegate.execute(ctx, request)
            except BaseException as error:
                witness.note(name, "failed", told_context(ctx), told_error(error))
                raise
            # What a function returned has no status.
            answer = getattr(response, "status", response)
            witness.note(name, "after", told_context(ctx), answer)
            return response

        return watch

    return part


class Protocol:
    """Follows the protocol of clients, and is no class of ours."""

    def __init__(self, delegate):
        self.delegate = delegate

    async def execute(self, ctx, request):
        ctx.attributes["protocol"] = True
        return await self.delegate.execute(ctx, request)


class Signing(DecoratingClient):
    """Sends another request than it was given."""

    async def execute(self, ctx, request):
        return await self.delegate.execute(ctx, request.with_header("X-Sign", "1"))


class Answering(DecoratingClient):
    """Answers some requests itself."""

    async def execute(self, ctx, request):
        response = await self.delegate.execute(ctx, request)
        if response.status != 404:
            return response
        response.release()
        return new_response(request, 203, body=b"answered here")


class Refreshing(DecoratingClient):
    """Asks twice after a 401."""

    async def execute(self, ctx, request):
        response = await self.delegate.execute(ctx, request)
        if response.status == 401:
            response.release()
            response = await self.delegate.execute(ctx, request)
        return response


class Extending(DecoratingClient):
    """Gives a call more time than its session does."""

    async def execute(self, ctx, request):
        ctx.root.set_response_timeout(300.0)
        return await self.delegate.execute(ctx, request)


class OwnRetryingClient(RetryingClient):
    """Does something around each call."""

    async def execute(self, ctx, request):
        ctx.attributes["own"] = "retrying"
        return await super().execute(ctx, request.with_header("X-Own", "retrying"))


class OwnBreakerClient(CircuitBreakerClient):
    """Does something around each attempt."""

    async def execute(self, ctx, request):
        return await super().execute(ctx, request.with_header("X-Own", "breaker"))


class OwnLoggingClient(LoggingClient):
    """Does something around each call."""

    async def execute(self, ctx, request):
        return await super().execute(ctx, request.with_header("X-Own", "logging"))


class NamedRetryingClient(RetryingClient):
    """Changes only the words about it."""

    def describe(self):
        return "named"
