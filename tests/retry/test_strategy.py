"""Ready-made strategies retry what they promise."""

import asyncio
import copy
import inspect
import pickle

import aiohttp
import pytest
from calls import begin
from chains import Answering, bad_argument, raises_exactly

from aioretry_smithy import (
    IDEMPOTENT_METHODS,
    Backoff,
    CircuitBreaker,
    FailFastError,
    HttpRequest,
    RetryDecision,
    RetryRuleWithContent,
    RetryStrategy,
    UnprocessedRequestError,
)
from aioretry_smithy.testing import ask

BACKOFF = Backoff.fixed(0.5)
UNPROCESSED = [
    UnprocessedRequestError("busy"),
    aiohttp.ConnectionTimeoutError(),
    aiohttp.ClientConnectorError(None, OSError(111, "refused")),
]
UNKNOWN = [
    TimeoutError(),
    aiohttp.ServerDisconnectedError(),
    aiohttp.ClientOSError(104, "reset"),
    aiohttp.ClientPayloadError("cut"),
    aiohttp.SocketTimeoutError(),
    type("OwnError", (Exception,), {})(),
]
PERMANENT = [
    aiohttp.InvalidURL("http://"),
    aiohttp.NonHttpUrlClientError("ftp://x"),
    aiohttp.TooManyRedirects(None, ()),
    aiohttp.ServerFingerprintMismatch(b"", b"", "x", 1),
    FailFastError(CircuitBreaker("x"), 1.0),
    RuntimeError("Session is closed"),
    TypeError("bad argument"),
    asyncio.CancelledError(),
]


def named(cause):
    """Name a failure in the report of a test."""
    return type(cause).__name__


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [200, 404, 429, 500, 503, 599, 600, 999])
async def test_on_server_error_status_retries_5xx_of_any_method(method, status):
    """As Armeria's: the method does not matter."""
    strategy = RetryStrategy.on_server_error_status(BACKOFF)

    assert (BACKOFF if 500 <= status < 600 else None) is await ask(
        strategy, status=status, method=method
    )


ON_SERVER_ERROR = RetryStrategy.on_server_error_status(BACKOFF)
ON_UNPROCESSED = RetryStrategy.on_unprocessed(BACKOFF)
FAILSAFE = RetryStrategy.failsafe(BACKOFF)


@pytest.mark.parametrize("cause", UNPROCESSED, ids=named)
@pytest.mark.parametrize("strategy", [ON_SERVER_ERROR, ON_UNPROCESSED, FAILSAFE])
async def test_what_the_server_has_not_seen_is_retried(strategy, cause):
    """The method does not matter: the server surely did nothing."""
    assert BACKOFF is await ask(strategy, cause=cause, method="POST")


@pytest.mark.parametrize("cause", UNKNOWN, ids=named)
@pytest.mark.parametrize(
    ("strategy", "method", "expected"),
    [
        # Also after failures after which the server may have done the work.
        (ON_SERVER_ERROR, "POST", BACKOFF),
        (ON_UNPROCESSED, "GET", None),
        (FAILSAFE, "GET", BACKOFF),
        (FAILSAFE, "POST", None),
    ],
)
async def test_unknown_failures(strategy, method, expected, cause):
    """Nobody knows whether the server did the work."""
    assert expected is await ask(strategy, cause=cause, method=method)


async def test_on_unprocessed_leaves_responses_alone():
    """A response is proof that the server has seen the request."""
    assert None is await ask(ON_UNPROCESSED, status=503)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "QUERY", "POST", "PATCH"])
@pytest.mark.parametrize("status", [200, 404, 408, 425, 429, 500, 503, 600])
async def test_failsafe_retries_statuses_of_idempotent_methods(method, status):
    """5xx, 429 and 408, where a second time does no harm."""
    harmless = method in IDEMPOTENT_METHODS
    expected = BACKOFF if harmless and status in {408, 429, 500, 503} else None

    assert expected is await ask(FAILSAFE, status=status, method=method)


@pytest.mark.parametrize("header", ["Idempotency-Key", "idempotency-key"])
async def test_failsafe_trusts_an_idempotency_key(header):
    """The server promises to recognise the second request."""
    request = HttpRequest("POST", "http://localhost/", headers={header: "1"})
    ctx = begin(request)

    assert BACKOFF is RetryStrategy.failsafe(BACKOFF).should_retry(ctx, TimeoutError())


READY_MADE = {
    "never": RetryStrategy.never(),
    "on_unprocessed": ON_UNPROCESSED,
    "on_server_error_status": ON_SERVER_ERROR,
    "failsafe": FAILSAFE,
    "on_status": RetryStrategy.on_status(lambda status, cause: BACKOFF),
}


@pytest.mark.parametrize("cause", PERMANENT, ids=named)
@pytest.mark.parametrize("strategy", READY_MADE.values(), ids=READY_MADE)
async def test_no_ready_made_strategy_retries_permanent_failures(strategy, cause):
    """They would fail in the same way, or do harm."""
    assert None is await ask(strategy, cause=cause)


async def test_on_status_passes_the_status_or_the_failure():
    """The function gets one of the two and None for the other."""
    seen = []
    strategy = RetryStrategy.on_status(
        lambda status, cause: seen.append((status, cause))
    )
    failure = TimeoutError()
    await ask(strategy, status=409)
    await ask(strategy, cause=failure)

    assert [(409, None), (None, failure)] == seen


def test_default_backoff_is_the_default_one():
    """The same object in every strategy, as its own docstring promises."""
    default = repr(Backoff.of_default())

    assert f"RetryStrategy.failsafe({default})" == repr(RetryStrategy.failsafe())
    assert RetryStrategy.failsafe() == RetryStrategy.failsafe(Backoff.of_default())


def test_repr_of_on_status_names_the_function():
    """A function has no call that makes it."""

    def by_status(status, cause):
        return None

    assert "by_status" in repr(RetryStrategy.on_status(by_status))


@pytest.mark.parametrize(
    "make",
    [
        RetryStrategy.on_unprocessed,
        RetryStrategy.on_server_error_status,
        RetryStrategy.failsafe,
    ],
)
def test_backoff_must_be_one(make):
    """A number of seconds is a frequent slip."""
    with pytest.raises(
        ValueError, match=r"backoff: 0.5 \(expected: a Backoff, or None\)"
    ):
        make(0.5)


def test_function_of_on_status_must_be_one():
    """A backoff in its place is told so at once."""
    with bad_argument("function", BACKOFF, "a function of status and cause"):
        RetryStrategy.on_status(BACKOFF)


class AnsweringLater(Answering):
    async def should_retry(self, ctx, cause):
        await asyncio.sleep(0.0)
        return super().should_retry(ctx, cause)


OTHER = Backoff.fixed(1.0)
NEVER = RetryStrategy.never()
NO_RETRY, NEXT = RetryDecision.no_retry(), RetryDecision.next()


@pytest.mark.parametrize("kind", [Answering, AnsweringLater])
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([BACKOFF, OTHER], (BACKOFF, [1, 0])),
        ([None, OTHER], (OTHER, [1, 1])),
        ([NEXT, OTHER], (OTHER, [1, 1])),
        ([None, NEXT], (None, [1, 1])),
        ([NO_RETRY, OTHER], (None, [1, 0])),
        ([None, RetryDecision.retry(OTHER), BACKOFF], (OTHER, [1, 1, 0])),
        ([None, None, NO_RETRY, BACKOFF], (None, [1, 1, 1, 0])),
    ],
)
async def test_first_member_that_decides_wins(kind, answers, expected):
    """The members behind it are not asked at all."""
    first, *rest = members = [kind(answer) for answer in answers]
    chain = first
    for member in rest:
        chain = chain | member
    backoff = await ask(chain, status=503)

    assert expected == (backoff, [member.asked for member in members])


@pytest.mark.parametrize(
    ("members", "plain"),
    [
        ([Answering(None), Answering(BACKOFF)], True),
        ([Answering(BACKOFF), AnsweringLater(OTHER)], True),
        ([AnsweringLater(None), Answering(BACKOFF)], False),
        ([Answering(None), AnsweringLater(BACKOFF)], False),
    ],
)
async def test_chain_is_awaitable_from_the_first_awaitable_answer_on(members, plain):
    """A chain of plain strategies costs no coroutine."""
    first, last = members
    ctx = begin()
    answer = (first | last).should_retry(ctx, None)

    assert plain is not inspect.isawaitable(answer)
    assert BACKOFF is (answer if plain else await answer)


async def test_on_status_may_forbid():
    """Its function may answer with a decision too."""
    forbidding = RetryStrategy.on_status(
        lambda status, cause: NO_RETRY if status == 501 else None
    )
    chain = forbidding | RetryStrategy.failsafe(BACKOFF)

    assert None is await ask(chain, status=501)
    assert BACKOFF is await ask(chain, status=503)


def test_chains_are_values():
    """Equal where the members are, and whole after a pickle."""
    one, two = RetryStrategy.failsafe(BACKOFF), RetryStrategy.on_unprocessed(BACKOFF)
    chain = one | two

    assert chain == one | two
    assert chain != two | one
    assert hash(chain) == hash(pickle.loads(pickle.dumps(chain)))
    assert chain == pickle.loads(pickle.dumps(chain))


def test_never_disappears():
    """It has nothing to say, wherever it stands; also one that came by a pickle."""
    strategy, other = Answering(BACKOFF), Answering(OTHER)
    copied = pickle.loads(pickle.dumps(NEVER))

    assert strategy is NEVER | strategy
    assert strategy is strategy | NEVER
    assert strategy is copied | strategy
    assert NEVER is NEVER | NEVER
    assert NEVER is copied | copied
    assert strategy | other == (strategy | NEVER) | (NEVER | other)


@pytest.mark.parametrize("other", [None, BACKOFF, NO_RETRY, RetryStrategy, "x"])
@pytest.mark.parametrize(
    "strategy", [FAILSAFE, RetryRuleWithContent(statuses=[503])], ids=["plain", "body"]
)
def test_only_strategies_make_a_chain(strategy, other):
    """A backoff is no strategy."""
    with pytest.raises(TypeError):
        strategy | other
    with pytest.raises(TypeError):
        other | strategy


RETRY = RetryDecision.retry(BACKOFF)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (BACKOFF, RETRY),
        (None, NEXT),
        (RETRY, RETRY),
        (NO_RETRY, NO_RETRY),
        (NEXT, NEXT),
    ],
)
def test_answers_stand_for_decisions(answer, expected):
    """A backoff and None are the short forms of two of the decisions."""
    assert expected == RetryDecision.of(answer)


@pytest.mark.parametrize("answer", [0.5, True, False, 0, "retry", RetryDecision, ()])
def test_other_answers_are_refused(answer):
    """A truth value or a number of seconds is told from a decision."""
    with bad_argument("should_retry", answer, "a Backoff, a RetryDecision or None"):
        RetryDecision.of(answer)


def test_decision_keeps_its_backoff():
    """The very object, since the retrying client counts by identity."""
    assert BACKOFF is RETRY.backoff
    assert BACKOFF is RetryDecision.of(BACKOFF).backoff
    assert NO_RETRY.backoff is None
    assert NEXT.backoff is None


def test_decisions_are_values():
    """Equal where they say the same, also after a copy or a pickle."""
    assert RETRY == RetryDecision.retry(Backoff.fixed(0.5))
    assert 3 == len({RETRY, NO_RETRY, NEXT})
    for decision in (RETRY, NO_RETRY, NEXT):
        assert decision == copy.deepcopy(decision)
        assert decision == pickle.loads(pickle.dumps(decision))


@pytest.mark.parametrize("backoff", [None, 0.5, NEXT])
def test_retry_needs_a_backoff(backoff):
    """A decision to retry without one would be another decision."""
    with pytest.raises(ValueError, match=r"^backoff: .* \(expected: a Backoff\)$"):
        RetryDecision.retry(backoff)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5,), "backoff: 0.5 (expected: a Backoff, or None)"),
        (
            (Backoff.fixed(1), True),
            "is_next: True (expected: True or False, and False beside a backoff)",
        ),
        ((None, 1), "is_next: 1 (expected: True or False, and False beside a backoff)"),
    ],
)
def test_decision_that_is_none_is_told_at_once(arguments, message):
    """Also where it is not made by the three methods."""
    with raises_exactly(message):
        RetryDecision(*arguments)
