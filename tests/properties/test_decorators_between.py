"""Chains and requests of all kinds: decorators that pass on change nothing."""

from __future__ import annotations

import asyncio
import logging

from chains import pass_on
from fault_server import End, answer, cut
from hypothesis import given, settings
from hypothesis import strategies as st
from story import Scenario, story
from story_calls import (
    ANSWERS,
    BUSY,
    CUT_BODY,
    FINE,
    REQUESTS,
    WAYS,
    Answers,
    in_a_task_group,
)
from story_chains import (
    AsyncLimiterWitness,
    LimiterWitness,
    breaking,
    budget,
    chain,
    judged_breaking,
    logging_with,
    mapped,
    one_breaker,
    own_retrying,
    plain,
    retrying,
    smithy_retrying,
    with_failing_listener,
)
from story_decorators import (
    Answering,
    ContentStrategy,
    NamedRetryingClient,
    OwnBreakerClient,
    OwnLoggingClient,
    OwnRetryingClient,
    Protocol,
    Refreshing,
    Signing,
    Strategy,
    watching,
)
from story_text import differences

EXAMPLES = settings.default.max_examples
"""As many as the profile says, and some more: most of them take milliseconds."""

# The usual ones more often: most chains are of these.
usual = (
    breaking(),
    one_breaker(),
    breaking("new_per_path_decorator"),
    logging_with(),
    logging_with(successful_response_log_level=logging.INFO),
    logging_with(success_sampling_rate=0.0),
)
unusual = (
    judged_breaking,
    with_failing_listener,
    breaking(minimum_request_threshold=1, failure_rate_threshold=0.1),
    breaking(client=OwnBreakerClient),
    watching("watching"),
    plain(OwnLoggingClient.new_decorator()),
    *map(plain, (Signing, Refreshing, Answering, Protocol)),
)
retrying_parts = st.sampled_from(
    [
        retrying(),
        retrying(limiter=budget),
        retrying(attempt_timeout=5.0),
        retrying(limiter=LimiterWitness),
        retrying(limiter=AsyncLimiterWitness),
        retrying(Strategy),
        retrying(ContentStrategy),
        retrying(buffer_response=True),
        own_retrying(OwnRetryingClient),
        own_retrying(NamedRetryingClient),
        smithy_retrying,
        mapped,
    ]
)
parts = st.sampled_from(usual) | st.sampled_from([*usual, *unusual])
levels = st.sampled_from(
    [logging.CRITICAL + 1, logging.WARNING, logging.INFO, logging.DEBUG]
)
chains = st.builds(
    lambda inside, retry, outside, level: ([*inside, *retry, *outside], level),
    st.lists(parts, max_size=2),
    st.lists(retrying_parts, max_size=1),
    st.lists(parts, max_size=2),
    levels,
)
faults = st.sampled_from(
    [
        *(FINE, FINE, BUSY, CUT_BODY, cut(end=End.RESET)),
        *(answer(204), answer(404, b"gone"), answer(401, b"who")),
        *ANSWERS["302, 200"].faults(None),
    ]
)
answers = st.builds(
    lambda first, then: Answers(lambda witness: [*first], then=then),
    st.lists(faults, max_size=4),
    st.sampled_from([FINE, FINE, BUSY, answer(404, b"gone")]),
)
cases = st.tuples(
    chains,
    answers,
    st.sampled_from([*REQUESTS.values()]),
    st.sampled_from([*WAYS.values()]),
).filter(
    # Calls at once cannot read one file: aiohttp alone sends the first of them whole,
    # and the server waits for the others.
    lambda case: case[2:] != (REQUESTS["PUT of a file"], in_a_task_group)
)


def with_others_between(parts):
    """Put a decorator of a user's that only passes on around each part."""
    return [each for part in parts for each in (part, plain(pass_on))]


@given(cases)
@settings(max_examples=2 * EXAMPLES)
def test_decorators_in_between_change_nothing(case):
    """Outcome, logs, requests, and what every part of the chain was told."""
    (parts, level), *others = case
    scenarios = [
        Scenario(chain(*each, level=level), *others)
        for each in (parts, with_others_between(parts))
    ]

    async def play():
        async with asyncio.timeout(30.0):
            return [await story(each) for each in scenarios]

    stories = asyncio.run(play())

    assert [] == differences(*stories)
