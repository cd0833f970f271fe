"""The hedging client: what it hedges, where it stands, what it learns."""

import asyncio
import io
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import payload
from chains import URL, after, retrying, session
from races import hedging, race

from aioretry_smithy import (
    CircuitBreakerClient,
    ContentPreviewingClient,
    HedgingClient,
    HedgingDelay,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    new_response,
    request_options,
    rpc,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

LATE = [after(1.0, 200), after(1.0, 201)]


async def requests_of(method="GET", decorators=(), **options):
    """Make a call that is late; return how many requests were sent for it."""
    _, _, log = await race(LATE, hedging(0.5), *decorators, method=method, **options)
    return log.total_attempts


async def chunks():
    yield b"a body"


class Fresh:
    def __aiter__(self):
        return chunks()


class TestWhatIsHedged:
    """Requests that may be sent twice at once, and others."""

    @pytest.mark.parametrize(
        ("method", "number"),
        [("GET", 2), ("HEAD", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)],
    )
    async def test_methods_that_a_server_may_see_twice(self, method, number):
        """All else goes straight through, and has a log all the same."""
        assert number == await requests_of(method)

    async def test_a_post_with_an_idempotency_key(self):
        """Also one that a decorator outside has added."""

        @client_decorator
        async def keyed(delegate, ctx, request):
            return await delegate.execute(
                ctx, request.with_header("Idempotency-Key", "7")
            )

        headers = {"Idempotency-Key": "7"}

        assert 2 == await requests_of("POST", headers=headers)
        assert 2 == await requests_of("POST", [keyed])

    async def test_what_a_block_of_code_says(self):
        """For and against."""
        with request_options(idempotent=True):
            post = await requests_of("POST")
        with request_options(idempotent=False):
            get = await requests_of("GET")

        assert (2, 1) == (post, get)

    async def test_block_of_one_attempt_has_no_hedges(self):
        """One attempt is then one request; with two there are hedges as ever."""
        with request_options(retry=RetryConfig.no_retry()):
            one = await requests_of("GET")
        with request_options(retry=RetryConfig(RetryStrategy.never(), 2)):
            two = await requests_of("GET")

        assert (1, 2) == (one, two)

    @pytest.mark.parametrize(
        "body",
        [
            {"json": {"a": 1}},
            {"data": b"bytes"},
            {"data": bytearray(b"bytes")},
            {"data": "text"},
            {"data": {"a": "1"}},
            {"data": [("a", "1")]},
            {"data": aiohttp.FormData({"a": "1"})},
            {"data": payload.BytesPayload(b"bytes")},
            {"data": payload.StringPayload("text")},
        ],
    )
    async def test_a_body_in_memory(self, body):
        """Two requests can send it at once."""
        assert 2 == await requests_of("PUT", **body)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: io.BytesIO(b"a file"),
            lambda: {"file": io.BytesIO(b"a file")},
            lambda: lambda: b"a factory",
            chunks,
            Fresh,
            aiohttp.MultipartWriter,
        ],
    )
    async def test_no_file_and_no_stream(self, make):
        """They may be sent again, but not twice at once."""
        assert 1 == await requests_of("PUT", data=make())


class TestPlace:
    """Where it may stand in a chain."""

    @pytest.mark.parametrize("inside", [retrying(), hedging(1.0)])
    def test_it_stands_around_nothing_that_sends_again(self, inside):
        """Requests would multiply."""
        builder = SessionBuilder().decorator(inside).decorator(hedging(0.5))
        with pytest.raises(ValueError, match="expected: a place inside of") as caught:
            builder.build()

        name = type(inside(ScriptedTransport([]))).__name__
        assert (
            f"decorator: 'HedgingClient' (expected: a place inside of {name},"
            " not around it)"
        ) == str(caught.value)

    def test_it_serves_no_functions(self):
        """They cannot be given up safely."""
        with pytest.raises(ValueError, match="a decorator for functions"):

            @rpc(hedging(0.5))
            async def fetch():
                pass

    async def test_the_standard_chain_takes_it_inside(self):
        """Its circuit breaker and its limits then count attempts."""
        transport = ScriptedTransport(LATE)
        builder = SessionBuilder.standard(inside=[transport, hedging(0.5)])
        async with builder.build() as client:
            response = await client.get(URL)
            breakers = unwrap(client, CircuitBreakerClient).circuit_breakers

        assert 2 == RequestLog.of(response).total_attempts
        assert [1] == [each.event_count.total for each in breakers.values()]

    async def test_a_preview_further_out_is_of_the_answer(self):
        """It stands in the log of the request that counts."""
        answers = [after(9.0, 200), (200, "the hedge")]
        previewing = ContentPreviewingClient.new_decorator(100)
        _, _, log = await race(answers, hedging(0.5), previewing, retrying())

        assert "the hedge" == log.response_content_preview
        assert "the hedge" == log.children[1].response_content_preview

    async def test_a_decorator_outside_may_answer_without_it(self):
        """A request that it leaves running changes the log no more."""
        left = []

        @client_decorator
        async def impatient(delegate, ctx, request):
            left.append(asyncio.create_task(delegate.execute(ctx, request)))
            await asyncio.sleep(0.25)
            return new_response(request, 299)

        status, ended, log = await race(LATE, hedging(0.5), impatient)
        await left.pop()

        assert (299, 0.25) == (status, ended)
        assert (299, 0.25) == (log.response_status, log.duration)


class TestArguments:
    """Arguments of the decorator."""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("1",), "delay: '1' (expected: seconds, finite and >= 0, or a Hed"),
            ((-1.0,), "delay: -1.0 (expected: seconds, finite and >= 0, or a Hed"),
            ((True,), "delay: True (expected: seconds, finite and >= 0, or a Hed"),
        ],
    )
    def test_a_delay_is_seconds_or_an_object(self, arguments, message):
        """The message says so."""
        with pytest.raises(ValueError, match="^delay") as caught:
            hedging(*arguments)

        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize("number", [0, -1, 1.0, True, None])
    def test_there_is_at_least_one_hedge(self, number):
        """Otherwise leave the decorator out."""
        with pytest.raises(ValueError, match=r"^max_hedges: .* \(expected: an int >="):
            hedging(1.0, max_hedges=number)

    def test_a_limiter_is_one_of_retries(self):
        """The class is no limiter yet."""
        expected = r"expected: a RetryLimiter, or None; call it: RetryBudget\(\)"
        with pytest.raises(ValueError, match=rf"^limiter: .*RetryBudget.*{expected}"):
            hedging(1.0, limiter=RetryBudget)

    @pytest.mark.parametrize(
        ("decorator", "shown"),
        [
            (hedging(1), "delay=HedgingDelay.fixed(1), max_hedges=1, limiter=None"),
            (
                hedging(HedgingDelay.percentile(0.9), max_hedges=2),
                f"delay={HedgingDelay.percentile(0.9)!r}, max_hedges=2, limiter=None",
            ),
        ],
    )
    def test_it_describes_itself(self, decorator, shown):
        """With its settings as they are written."""
        assert f"HedgingClient({shown})" == decorator(ScriptedTransport([])).describe()


PERCENTILE = HedgingDelay.percentile(0.5, minimum_samples=2, floor=0.0)
OTHER = "http://other.example/orders"


class TestPercentile:
    """A percentile learns from the answers."""

    async def learnt(self, answers, urls, delay=PERCENTILE, **options):
        """Make calls one after the other; return the delays then, with two digits."""
        async with session(answers, hedging(delay, **options)) as client:
            for url in urls:
                with suppress(OSError):
                    await client.get(url)
            delays = unwrap(client, HedgingClient).delays
        return {
            key: seconds if seconds is None else round(seconds, 1)
            for key, seconds in delays.items()
        }

    async def test_there_is_no_hedge_before_there_are_enough_answers(self):
        """Not even when an answer is bad."""
        transport = ScriptedTransport([503, after(1.0, 200), after(1.0, 200), 503, 200])
        assert {"localhost:80": 1.0} == await self.learnt(transport, [URL] * 4)
        assert 5 == len(transport.requests)

    async def test_each_host_has_times_of_its_own(self):
        """A new one begins without any."""
        answers = [after(1.0, 200), after(1.0, 200), after(3.0, 200)]

        assert {"localhost:80": 1.0, "other.example:80": None} == await self.learnt(
            answers, [URL, URL, OTHER]
        )

    async def test_failures_and_bad_answers_do_not_count(self):
        """A server that fails fast would make hedges of all requests."""
        answers = [after(0.1, 503), after(0.1, OSError()), after(0.1, 429)]

        assert {"localhost:80": None} == await self.learnt(answers, [URL] * 3)

    async def test_a_first_request_that_was_given_up_counts_so_far(self):
        """And the winner with its own time; other losers not at all."""
        three = HedgingDelay.percentile(0.6, minimum_samples=2, floor=0.0)
        answers = [after(1.0, 200)] * 2 + [after(9.0, 200)] * 2 + [after(1.0, 200)]
        options = {"delay": three, "max_hedges": 2}
        learnt = await self.learnt(answers, [URL] * 3, **options)

        # 1, 1, 1 of the winner, and over 3 of the first one.
        assert {"localhost:80": 1.0} == learnt
        three = HedgingDelay.percentile(0.8, minimum_samples=2, floor=0.0)
        options["delay"] = three
        longest = await self.learnt(answers, [URL] * 3, **options)
        assert 3.0 < longest["localhost:80"] < 3.4

    async def test_sessions_of_one_decorator_learn_together(self):
        """As they share what other decorators keep."""
        decorator = hedging(PERCENTILE)
        for _ in range(2):
            async with session([after(1.0, 200)], decorator) as client:
                await client.get(URL)
                delays = unwrap(client, HedgingClient).delays

        assert ["localhost:80"] == [*delays]
        assert 1.0 <= delays["localhost:80"] < 1.05

    async def test_a_url_without_a_host_is_not_hedged(self):
        """Nobody knows how long that takes."""

        @client_decorator
        async def answer(delegate, ctx, request):
            return await ScriptedTransport([200]).execute(ctx, request.replace(url=URL))

        decorators = answer, hedging(PERCENTILE)
        async with session(ScriptedTransport([]), *decorators) as client:
            response = await client.get("/orders")
            delays = unwrap(client, HedgingClient).delays

        assert (200, {}) == (response.status, dict(delays))
