"""Rules that hold for every chain of strategies, with any members."""

import asyncio
from functools import reduce
from operator import or_

import pytest
from calls import begin, end
from chains import in_virtual_time
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    Backoff,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    HttpRequest,
    RetryDecision,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    RetryStrategyWithContent,
)
from aioretry_smithy._policies.conditions import members_of
from aioretry_smithy.testing import ask

# A catch-all in front of something is among the chains.
pytestmark = pytest.mark.filterwarnings("ignore:.* is never reached:RuntimeWarning")

NEVER = RetryStrategy.never()
CAUSES = [None, TimeoutError(), ConnectionResetError(), ValueError()]
BODIES = [b"", b"busy", b"done"]


class Inside(RetryStrategyWithContent):
    """Retries by what the beginning of a body says."""

    def __init__(self, word, answer, max_content_length):
        self.word, self.answer = word, answer
        self.max_content_length = max_content_length

    def should_retry(self, ctx, cause, content):
        found = content is not None and content.startswith(self.word)
        return self.answer if found else RetryDecision.next()


class InsideLater(Inside):
    async def should_retry(self, ctx, cause, content):
        return super().should_retry(ctx, cause, content)


class Later(RetryStrategy):
    """Takes its time to say what another strategy says."""

    def __init__(self, strategy):
        self.strategy = strategy

    async def should_retry(self, ctx, cause):
        await asyncio.sleep(1.0)
        return self.strategy.should_retry(ctx, cause)


def is_put(request):
    return request.method == "PUT"


def is_busy(content):
    return content == b"busy"


def is_reset(cause):
    return isinstance(cause, ConnectionResetError)


def backoffs():
    """Backoffs that differ as objects, some of which are equal."""
    return st.integers(0, 3).map(Backoff.fixed)


def conditions():
    return st.fixed_dictionaries(
        {"statuses": st.sets(st.sampled_from([200, 404, 503]), min_size=1)},
        optional={
            "methods": st.sets(st.sampled_from(["GET", "put"]), min_size=1),
            "request_filter": st.just(is_put),
            "status_classes": st.sets(st.sampled_from([4, 5])),
            "exceptions": st.sampled_from(
                [(), OSError, [TimeoutError, ValueError], is_reset, [OSError, is_reset]]
            ),
            "on_timeout": st.booleans(),
            "on_unprocessed": st.booleans(),
            "slower_than": st.sampled_from([None, 1.0, 2.0]),
            "on_response": st.just(lambda ctx: ctx.log.response_length == 4),
        },
    )


rules = st.builds(
    lambda settings, backoff: RetryRule(**settings, backoff=backoff),
    conditions(),
    backoffs(),
)
forbidding = st.builds(
    lambda settings: RetryRule.no_retry(**settings), conditions() | st.just({})
)
plain = (
    st.just(NEVER)
    | rules
    | forbidding
    | backoffs().map(RetryStrategy.failsafe)
    | backoffs().map(RetryStrategy.on_unprocessed)
    | rules.map(Later)
)
answers = backoffs() | st.sampled_from([None, RetryDecision.no_retry()])
inside = st.builds(
    lambda kind, *arguments: kind(*arguments),
    st.sampled_from([Inside, InsideLater]),
    st.sampled_from(BODIES),
    answers,
    st.integers(1, 8),
) | st.builds(
    lambda settings, length, backoff: RetryRuleWithContent(
        **settings, on_content=is_busy, max_content_length=length, backoff=backoff
    ),
    conditions(),
    st.integers(1, 8),
    backoffs(),
)
members = plain | inside
chains = st.lists(members, min_size=1, max_size=4).map(lambda parts: reduce(or_, parts))
outcomes = st.fixed_dictionaries(
    {"method": st.sampled_from(["GET", "PUT", "POST"])},
    optional={"status": st.sampled_from([200, 404, 429, 503])},
).flatmap(
    lambda outcome: (
        st.sampled_from(CAUSES).map(lambda cause: {**outcome, "cause": cause})
        if "status" not in outcome
        else st.sampled_from(BODIES).map(lambda body: {**outcome, "content": body})
    )
)


def answer_to(strategy, outcome):
    """Return what a strategy would do, by the very backoff."""
    return in_virtual_time(ask(strategy, **outcome))


@given(chains, chains, chains, outcomes)
def test_chaining_is_associative(one, two, three, outcome):
    """Brackets mean nothing: the same members in the same order, the same answer."""
    left, right = (one | two) | three, one | (two | three)

    assert left == right
    assert members_of(left) == members_of(right)
    assert repr(left) == repr(right)
    assert answer_to(left, outcome) is answer_to(right, outcome)


@given(chains, outcomes)
def test_never_is_neutral(strategy, outcome):
    """On either side it leaves an equal strategy, with the same answers."""
    assert strategy == NEVER | strategy
    assert strategy == strategy | NEVER
    assert answer_to(strategy, outcome) is answer_to(NEVER | strategy, outcome)


@given(st.lists(members, min_size=1, max_size=5), outcomes)
def test_chain_answers_as_its_members_in_turn(parts, outcome):
    """By a reading of the rules that knows nothing of chains."""

    async def in_turn():
        for part in parts:
            kept = Keeping(part)
            backoff = await ask(kept, **outcome)
            if not RetryDecision.of(kept.answer).is_next:
                return backoff
        return None

    expected = in_virtual_time(in_turn())

    assert expected is answer_to(reduce(or_, parts), outcome)


class Keeping(RetryStrategyWithContent):
    """Keeps the answer of another strategy."""

    def __init__(self, strategy):
        self.strategy = strategy

    async def should_retry(self, ctx, cause, content):
        if isinstance(self.strategy, RetryStrategyWithContent):
            content = content and content[: self.strategy.max_content_length]
            answer = self.strategy.should_retry(ctx, cause, content)
        else:
            answer = self.strategy.should_retry(ctx, cause)
        self.answer = await answer if asyncio.iscoroutine(answer) else answer
        return self.answer


@given(chains, chains)
def test_chain_needs_content_where_a_member_does(one, two):
    """And then as much as the one that needs most."""
    chain = one | two
    lengths = [
        member.max_content_length
        for member in members_of(chain)
        if isinstance(member, RetryStrategyWithContent)
    ]

    assert bool(lengths) is isinstance(chain, RetryStrategyWithContent)
    assert bool(lengths) is not isinstance(chain, RetryStrategy)
    assert not lengths or max(lengths) == chain.max_content_length


@given(chains)
def test_members_are_no_chains_and_never_is_none_of_them(strategy):
    """A chain is flat."""
    parts = members_of(strategy)

    assert all((part,) == members_of(part) for part in parts)
    assert (NEVER,) == parts or NEVER not in parts


class Otherwise(CircuitBreakerStrategy):
    """Says that no rule in front of it applies."""

    def should_report_as_success(self, ctx, cause):
        return None


def given_content(body):
    """Return what reads of a body, as a circuit breaker does."""

    async def read(limit):
        return body[:limit]

    return read


def matches_after(seconds, settings, outcome):
    """Return whether rules of each kind with these conditions match one outcome."""

    async def ask_all():
        ctx = begin(HttpRequest(outcome["method"], "http://localhost/"))
        await asyncio.sleep(seconds)
        cause = outcome.get("cause")
        body = outcome.get("content", b"")
        end(ctx, cause or outcome.get("status", 200), body=body)
        breaker = CircuitBreakerRule(**settings) | Otherwise()
        inside = CircuitBreakerRuleWithContent(**settings) | Otherwise()
        verdict = await inside.verdict_on(ctx, cause, given_content(body))
        return (
            RetryRule(**settings).should_retry(ctx, cause) is not None,
            RetryRule.no_retry(**settings).should_retry(ctx, cause) is not None,
            breaker.should_report_as_success(ctx, cause) is False,
            verdict is False,
        )

    return in_virtual_time(ask_all())


@given(st.sampled_from([0.0, 1.0, 1.5, 3.0]), conditions(), outcomes)
def test_rules_of_all_kinds_match_the_same(seconds, settings, outcome):
    """A rule of a circuit breaker matches as a rule of retries does."""
    matches = matches_after(seconds, settings, outcome)

    assert 1 == len({*matches})


verdicts = st.sampled_from(
    [CircuitBreakerRule.failure, CircuitBreakerRule.success, CircuitBreakerRule.ignore]
)
breaker_rules = st.builds(
    lambda make, settings: make(**settings), verdicts, conditions()
) | st.sampled_from([CircuitBreakerRule.success(), CircuitBreakerRule.ignore()])


breaker_rules_with_content = st.builds(
    lambda name, settings, length: getattr(CircuitBreakerRuleWithContent, name)(
        **settings, on_content=is_busy, max_content_length=length
    ),
    st.sampled_from(["failure", "success", "ignore"]),
    conditions(),
    st.integers(1, 6),
)
all_breaker_rules = st.lists(breaker_rules | breaker_rules_with_content, min_size=1)


@given(all_breaker_rules, outcomes)
def test_first_rule_of_a_circuit_breaker_that_applies_decides(members, outcome):
    """Whichever kinds there are in the chain; no body is read after that."""
    read = []

    async def ask():
        ctx = begin(HttpRequest(outcome["method"], "http://localhost/"))
        cause, body = outcome.get("cause"), outcome.get("content", b"")
        end(ctx, cause or outcome.get("status", 200), body=body)

        async def reading(limit):
            read.append(limit)
            return body[:limit]

        chain = reduce(or_, members) | CircuitBreakerRuleWithContent(
            exceptions=LookupError
        )
        said = await chain.verdict_on(ctx, cause, reading)
        limits = iter([*read])
        for member in members:
            if isinstance(member, CircuitBreakerRule):
                if member._applies(ctx, cause):
                    return said, member._verdict, [*limits]
                continue
            content = None
            if cause is None and member._looks_at(ctx):
                content = body[: next(limits)]
            if member._applies_with(ctx, cause, content):
                return said, member._verdict, [*limits]
        default = CircuitBreakerStrategy.on_server_error_status()
        return said, default.should_report_as_success(ctx, cause), [*limits]

    said, expected, left = in_virtual_time(ask())
    assert (expected, []) == (said, left)
