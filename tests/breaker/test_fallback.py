"""Answers in place of refused requests."""

import pytest
from chains import URL, Scripted, retrying

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitState,
    FailFastError,
    RequestLog,
    capture_logs,
    client_decorator,
    new_response,
)

guarded = CircuitBreakerClient.new_decorator


async def cached(ctx, request):
    """Answer in place of the server."""
    return new_response(request, 203)


class TestFallback:
    """Answers in place of refused requests."""

    async def test_a_refused_request_gets_the_fallback(self, breaker):
        """The fallback sees the context and the request, and its response is logged."""
        seen = []

        async def fallback(ctx, request):
            seen.append((ctx.request, request))
            return new_response(request, 203)

        breaker.enter_state(CircuitState.OPEN)
        async with (
            Scripted([], guarded(breaker, fallback=fallback)) as scripted,
            scripted.session.get(URL) as response,
        ):
            assert 203 == response.status
            assert 203 == RequestLog.of(response).response_status

        ((root_request, request),) = seen
        assert root_request is request
        assert "GET" == request.method
        assert CircuitState.OPEN is breaker.state

    @pytest.mark.parametrize("outside", [[], [retrying()]], ids=["call", "attempt"])
    async def test_a_fallback_sees_the_refusal(self, breaker, outside):
        """In the log while it runs; afterwards the log has its response alone."""
        seen = []

        def fallback(ctx, request):
            seen.append(ctx.log.response_cause)
            return new_response(request, 203)

        breaker.enter_state(CircuitState.OPEN)
        async with (
            Scripted([], guarded(breaker, fallback=fallback), *outside) as scripted,
            scripted.session.get(URL) as response,
        ):
            log = RequestLog.of(response)

        (cause,) = seen
        assert type(cause) is FailFastError
        assert breaker is cause.circuit_breaker
        assert 10.0 == cause.retry_in
        assert (203, None) == (log.response_status, log.response_cause)

    @pytest.mark.parametrize(
        ("answer", "told"),
        [(None, "stale returned nothing"), ({}, "stale returned a dict")],
    )
    async def test_a_fallback_that_brings_no_response_is_named(
        self, breaker, answer, told
    ):
        """No delegate was called, so it is not what that returned."""

        def stale(ctx, request):
            return answer

        breaker.enter_state(CircuitState.OPEN)
        async with Scripted([], guarded(breaker, fallback=stale)) as scripted:
            with pytest.raises(TypeError, match=told):
                await scripted.session.get(URL)

    async def test_a_failure_gets_no_fallback(self, breaker):
        """Only what the open circuit refused is answered by it."""

        async def fallback(ctx, request):
            raise AssertionError("not asked for")

        async with Scripted([500], guarded(breaker, fallback=fallback)) as scripted:
            assert 500 == await scripted.get()

    async def test_inside_retrying_a_fallback_ends_the_call(self, breaker):
        """The retrying client sees the response of the fallback, and is content."""
        inside = guarded(breaker, fallback=cached)
        async with Scripted([500], inside, retrying(1.0)) as scripted:
            with capture_logs() as logs:
                assert 203 == await scripted.get()

        (log,) = logs
        assert [500, 203] == [child.response_status for child in log.children]


@pytest.mark.parametrize("has_fallback", [True, False])
async def test_a_decorator_outside_finds_the_refusal_in_the_log(breaker, has_fallback):
    """The fallback's response is logged here, as the leaf logs its own."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        finally:
            seen.append((ctx.log.response_status, type(ctx.log.response_cause)))

    breaker.enter_state(CircuitState.OPEN)
    inside = guarded(breaker, fallback=cached if has_fallback else None)
    async with Scripted([], inside, look) as scripted:
        await scripted.get()

    assert [(203, type(None)) if has_fallback else (None, FailFastError)] == seen
