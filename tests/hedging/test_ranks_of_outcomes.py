"""Which outcome of a race counts: a server's, one in its place, or a refusal."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import URL, after, now, refused, retrying, session
from races import (
    FALLBACK,
    Quiet,
    StandIn,
    guarded,
    half_open,
    hedging,
    race,
    sent,
    tripped,
)

from aioretry_smithy import (
    Backoff,
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    FailFastError,
    HedgingDelay,
    RequestLog,
    RetryStrategy,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy import HedgingClient as Hedging
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault


class TestInjectedFaults:
    """Injected faults count as sent, so that hedging can be simulated."""

    async def test_an_injected_answer_wins(self):
        """As that of a server does."""
        # Whether the latency strikes, its share, and whether the status does.
        drawn = iter([0.0, 5.0, 0.0, 0.0, 0.1, 0.0])
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency((0.0, 1.0)),
            InjectedFault.status(200),
            random=lambda: next(drawn),
        )
        status, ended, log = await race([], injected, hedging(0.5))

        assert (200, 0.6) == (status, ended)
        assert [True, False] == [each.superseded for each in log.children]
        assert not log.sent

    async def test_an_injected_answer_is_a_sample(self):
        """Or a percentile could not be simulated."""
        delay = HedgingDelay.percentile(minimum_samples=2)
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency(1.0), InjectedFault.status(200)
        )
        async with session([], injected, hedging(delay)) as client:
            for _ in range(3):
                await client.get(URL)

            assert unwrap(client, Hedging).delays["localhost:80"] >= 1.0

    async def test_an_injected_failure_goes_before_a_refusal(self):
        """Whatever its class is."""
        breaker = await half_open()
        injected = FaultInjectingClient.new_decorator(
            InjectedFault.latency(1.0), InjectedFault.error(UnprocessedRequestError)
        )
        failure, _, _ = await race([], injected, guarded(breaker), hedging(0.5))

        assert isinstance(failure, UnprocessedRequestError)


class TestRefusals:
    """What a server did goes before what this side refused to do."""

    async def test_a_trial_that_fails_is_what_counts(self):
        """Its hedge was refused meanwhile; the retry follows the failure."""
        breaker = await half_open()
        cut = ConnectionResetError("cut")
        answers = [after(0.5, cut), 200]
        retries = retrying(RetryStrategy.failsafe(Backoff.fixed(20.0)))
        status, _, log = await race(answers, guarded(breaker), hedging(0.1), retries)

        assert 200 == status
        assert [
            (0, ConnectionResetError, 0.5),
            (0.1, FailFastError, 0),
            (20.5, 200, 0),
        ] == sent(log)

    @pytest.mark.parametrize(
        "failure",
        [OSError(), TimeoutError(), aiohttp.ServerDisconnectedError(), refused()],
    )
    async def test_failures_go_before_refusals(self, failure):
        """Whichever came first; that of a connection which was refused, too."""
        for refusal in (UnprocessedRequestError("full"), FailFastError(tripped())):
            outcome, ended, _ = await race(
                [after(1.0, failure)], StandIn(refusal), hedging(0.5)
            )

            assert failure is outcome

        assert 2.0 == ended

    async def test_of_refusals_the_first_counts(self):
        """Where there is nothing else."""
        limit = ConcurrencyLimit.fixed(1)
        first = UnprocessedRequestError("first")
        outcome, _, _ = await race(
            [],
            StandIn(first, UnprocessedRequestError("second"), first=0),
            ConcurrencyLimitingClient.new_decorator(limit),
            hedging(0.5),
        )

        assert first is outcome

    async def test_a_bad_answer_goes_before_both(self):
        """As ever."""
        answers = [after(1.0, OSError()), after(0.2, 503)]
        stand_in = StandIn(UnprocessedRequestError("full"), first=2)
        status, ended, log = await race(answers, stand_in, hedging(0.5, max_hedges=2))

        assert (503, 1.0, 3) == (status, ended, log.total_attempts)

    async def test_stop_reason_is_that_of_the_request_that_counts(self):
        """A race of refusals alone was refused."""
        never = retrying(RetryStrategy.never())
        full = ConcurrencyLimitError(ConcurrencyLimit.fixed(1), 0.0, 0)
        cut = [after(1.0, OSError())]
        reasons = []
        for answers, stand_in in (
            (cut, StandIn(full)),
            ([], StandIn(*[full] * 9, first=0)),
        ):
            with capture_logs() as logs:
                async with session(answers, stand_in, hedging(0.5), never) as client:
                    with suppress(Exception):
                        await client.get(URL)
            reasons.append(logs[0].stop_reason)

        assert ["no_retry", "refused"] == reasons


class TestDuration:
    """A call that is hedged lasts as long as the race."""

    @pytest.mark.parametrize("retries", [(), (retrying(RetryStrategy.never()),)])
    @pytest.mark.parametrize(
        ("answers", "stand_in"),
        [
            ([after(0.5, OSError("first")), after(4.6, OSError())], None),
            ([after(5.1, OSError())], UnprocessedRequestError("full")),
            ([after(5.1, OSError())], FALLBACK),
            ([after(0.5, 503), after(4.6, OSError())], None),
        ],
        ids=["failures", "refusal", "stand-in", "bad answer"],
    )
    async def test_the_race_decides(self, answers, stand_in, retries):
        """Not the one of its requests that counts."""
        inside = [] if stand_in is None else [StandIn(stand_in)]
        _, ended, log = await race(answers, *inside, hedging(1.0), *retries)

        assert 5.1 == ended == round(log.duration, 6) == round(log.total_duration, 6)
        assert "5.100 s" in log.render().splitlines()[0]
        assert 5.1 == round(log.to_dict()["duration"], 6)

    async def test_leave_that_was_not_given_is_part_of_it(self):
        """The race ends with it."""

        class Slow(Quiet):
            async def acquire(self, ctx, cause):
                await asyncio.sleep(2.0)
                return False

        _, ended, log = await race([OSError()], hedging(1.0, limiter=Slow()))

        assert 2.0 == ended == log.duration

    async def test_an_answer_from_outside_is_not_changed(self):
        """A decorator has answered while the race went on, which no longer counts."""
        tasks = []

        @client_decorator
        async def impatient(delegate, ctx, request):
            tasks.append(asyncio.ensure_future(delegate.execute(ctx, request)))
            await asyncio.wait(tasks, timeout=2.0)
            return new_response(request, FALLBACK)

        answers = [after(0.5, OSError()), after(4.5, OSError())]
        never = retrying(RetryStrategy.never())
        async with session(answers, hedging(1.0), never, impatient) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)
            with suppress(OSError):
                await tasks[0]

        assert (5.0, 2.0) == (now(), log.duration)
