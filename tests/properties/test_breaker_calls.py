"""Calls at once through a circuit breaker, whatever they meet and whoever gives up."""

from __future__ import annotations

import asyncio

import pytest
from chains import in_virtual_time, pass_on, session
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRuleWithContent,
    CircuitState,
    EventCount,
    client_decorator,
    new_response,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState

seconds = st.integers(0, 12).map(lambda number: number / 4)
calls = st.lists(
    st.tuples(
        seconds,  # before the next call
        seconds,  # until its answer
        st.sampled_from([200, 200, 500, TimeoutError, b"busy"]),
        st.none() | seconds,  # until it is cancelled
    ),
    min_size=1,
    max_size=40,
)


class Diary(CircuitBreakerListener):
    """A listener that notes what it hears, and when."""

    def __init__(self):
        self.entries = []

    def note(self, *entry):
        self.entries.append((asyncio.get_running_loop().time(), *entry))

    def on_state_changed(self, circuit_breaker, state):
        self.note(state)

    def on_event_count_updated(self, circuit_breaker, event_count):
        self.note(event_count)

    def on_request_rejected(self, circuit_breaker):
        self.note("rejected")


@client_decorator
async def server(delegate, ctx, request):
    """Answer as the request says."""
    delay, answer = request.options["trace_request_ctx"]
    await asyncio.sleep(delay)
    if isinstance(answer, bytes):
        return new_response(request, 200, body=answer)
    if isinstance(answer, int):
        return new_response(request, answer)
    raise answer


def is_busy(content):
    return content == b"busy"


async def diary_of(schedule, trials, *others, enforce=True):
    """Make the calls of a schedule; return the diary and which ones were sent."""
    diary, tasks, sent = Diary(), [], []
    breaker = CircuitBreaker(
        minimum_request_threshold=2,
        success_threshold=trials,
        trial_request_interval=1.5,
        circuit_open_window=Backoff.exponential(1.0, 4.0),
        listeners=[diary],
    )

    @client_decorator
    async def noting(delegate, ctx, request):
        sent.append(ctx.request.options["trace_request_ctx"])
        return await delegate.execute(ctx, request)

    rule = CircuitBreakerRuleWithContent(on_content=is_busy)
    guarded = CircuitBreakerClient.new_decorator(breaker, rule, enforce=enforce)
    async with session([], server, noting, *others, guarded, *others) as client:

        async def call(delay, answer, patience):
            async with asyncio.timeout(patience):
                await client.get("http://a/", trace_request_ctx=(delay, answer))

        for pause, *rest in schedule:
            tasks.append(asyncio.create_task(call(*rest)))
            await asyncio.sleep(pause)
        await asyncio.gather(*tasks, return_exceptions=True)
    return diary.entries, len(sent)


@given(calls, st.integers(1, 3), st.sampled_from([(), (pass_on,)]))
def test_without_acting_it_decides_as_it_does_when_it_acts(schedule, trials, others):
    """Whatever is let through changes no count, no state and no listener's view."""
    acting, refused = in_virtual_time(diary_of(schedule, trials, *others))
    watching, sent = in_virtual_time(diary_of(schedule, trials, *others, enforce=False))

    assert acting == watching
    rejected = sum(entry[1] == "rejected" for entry in acting)
    assert (len(schedule), len(schedule)) == (sent, refused + rejected)


@given(calls, st.integers(1, 3))
def test_states_follow_each_other_as_they_should(schedule, trials):
    """It opens first, is half open after its window, and closes only from there."""
    entries, _ = in_virtual_time(diary_of(schedule, trials))
    states = [(at, state) for at, state in entries if isinstance(state, CircuitState)]
    follows = {CLOSED: {OPEN}, OPEN: {HALF_OPEN}, HALF_OPEN: {OPEN, CLOSED}}

    state, since, window = CLOSED, 0.0, 0.0
    for at, following in states:
        assert following in follows[state]
        if following is HALF_OPEN:
            assert since + window <= at
        if following is OPEN:
            window = 1.0 if state is CLOSED else min(2 * window, 4.0)
        state, since = following, at


@pytest.mark.parametrize("trials", [1, 3])
def test_a_server_that_comes_back_is_called_by_all_again(trials):
    """After as many trials as are asked for, one by one."""
    down = [(0.25, 0.0, 500, None)] * 8
    back = [(0.25, 0.125, 200, None)] * 40
    entries, _ = in_virtual_time(diary_of(down + back, trials))

    states = [state for _, state in entries if isinstance(state, CircuitState)]
    assert CLOSED is states[-1]
    assert EventCount(0, 0) != entries[-1][1]
