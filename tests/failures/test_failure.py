"""The judgement of a failure: made once, found from the exception."""

import copy
import gc
import pickle
import weakref

import aiohttp
import pytest
from chains import NOW, SAFELY, URL, refused, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    DecoratingClient,
    EndpointGroup,
    LoggingClient,
    RetryBudget,
    RetryingClient,
    RetryRule,
    RetrySafety,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    is_timeout,
    is_unprocessed,
    retry_safety,
)
from aioretry_smithy._failures.failure import Kind, failure_of, judge
from aioretry_smithy._failures.frames import REQUEST, Trace
from aioretry_smithy._failures.kept_cause import without_frames
from aioretry_smithy.testing import ScriptedTransport


class RefusingError(Exception):
    """Is not written on in the usual way."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


class TellingError(Exception):
    """Makes its attributes when asked."""

    def __getattr__(self, name):
        if name == "is_retry_safe":
            return True
        raise AttributeError(name)


class ReadingError(Exception):
    """Makes them in the other way."""

    def __getattribute__(self, name):
        return True if name == "is_retry_safe" else super().__getattribute__(name)


async def test_failure_of_a_call_is_judged_once(monkeypatch):
    """Strategy, budget, breaker and log ask for the one judgement."""
    judged = []

    def of(cause):
        judged.append(cause)
        return make(cause)

    make = Kind.of
    monkeypatch.setattr(Kind, "of", of)
    breaker = CircuitBreakerClient.new_decorator(CircuitBreaker("shop"))
    again = retrying(SAFELY, limiter=RetryBudget())
    async with session([first := refused(), 200], breaker, again) as client:
        await client.get(URL)

    assert [first] == judged


@pytest.mark.parametrize(
    "kind", [RefusingError, TellingError, ReadingError, TimeoutError]
)
def test_judgement_is_found_on_any_exception(kind):
    """Also on one that refuses to be written on, or makes its attributes."""
    cause = kind()
    judge(cause).queue = "limit"

    assert is_unprocessed(cause)
    assert judge(cause) is failure_of(cause)


@pytest.mark.parametrize("kind", [TellingError, ReadingError])
def test_attributes_that_are_made_when_asked_are_read(kind):
    """No class attribute tells of them."""
    assert RetrySafety.YES is retry_safety(kind())


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copy_knows_what_was_learnt(again):
    """Its class and its attributes tell the rest, in any process."""
    cause = aiohttp.ServerDisconnectedError()
    judge(cause).queue = "token"
    judge(cause).connection_made = False
    made = again(cause)
    if isinstance(made, bytes):
        assert b"aioretry_smithy._failures" not in made
        made = pickle.loads(made)
    failure = failure_of(made)

    assert made is not cause
    assert ("token", False) == (failure.queue, failure.connection_made)
    assert failure.broke_connection
    assert RetrySafety.YES is retry_safety(made)


@pytest.mark.parametrize("again", [copy.copy, without_frames])
def test_copy_has_a_judgement_of_its_own(again):
    """What is learnt of one later says nothing of the other."""
    cause = aiohttp.ServerDisconnectedError()
    judge(cause).queue = "token"
    made = again(cause)
    judge(made).reached_server = True

    assert is_unprocessed(cause)
    assert not is_unprocessed(made)


def test_judgement_keeps_nothing_alive():
    """It has no exception and no frames, and makes no cycle."""
    cause = aiohttp.ServerDisconnectedError()
    judge(cause)
    kept, judged = weakref.ref(cause), judge(cause)
    gc.disable()
    try:
        del cause
        assert kept() is None
    finally:
        gc.enable()
    assert judged.broke_connection


def test_questions_leave_no_trace():
    """Only a failure that was caught in a call has its judgement with it."""
    cause = aiohttp.ServerDisconnectedError()
    before = {**vars(cause)}
    retry_safety(cause)
    is_timeout(ExceptionGroup("tasks", [cause]))

    assert before == vars(cause)


def test_group_of_one_shares_the_judgement():
    """What was learnt of the one holds for the other."""
    cause = TimeoutError()
    group = ExceptionGroup("tasks", [ExceptionGroup("more", [cause])])
    judge(group).reached_server = True

    assert judge(cause) is failure_of(group)
    assert {} == vars(group)


def test_error_raised_from_another_is_judged_by_itself():
    """What it stands for was learnt of the other one."""
    cause, other = TimeoutError(), aiohttp.ClientPayloadError()
    judge(cause).raised_by_caller = True
    other.__cause__ = cause

    assert RetrySafety.NO is retry_safety(cause)
    assert RetrySafety.MAYBE is retry_safety(other)


def test_nothing_that_failed_says_nothing():
    """There was an answer."""
    failure = failure_of(None)

    assert not failure.ran_out
    assert not failure.forbids_retry
    assert failure.status is failure.hint() is None
    assert not is_timeout(None)


def speaking(**said):
    """Return a decorator that writes on the failures that pass."""

    class Client(DecoratingClient):
        async def execute(self, ctx, request):
            try:
                return await self.delegate.execute(ctx, request)
            except aiohttp.ClientError as error:
                vars(error).update(said)
                raise

    return Client


@pytest.mark.parametrize(
    ("said", "attempts"),
    [({}, 2), ({"is_retry_safe": False}, 1), ({"fault": "client"}, 1)],
)
async def test_what_a_decorator_writes_on_a_failure_is_believed(said, attempts):
    """The transport has judged the failure before."""
    transport = ScriptedTransport([aiohttp.ServerDisconnectedError(), 200])
    again = retrying(SAFELY)
    async with session(transport, speaking(**said), again) as client:
        if attempts == 1:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await client.get(URL)
        else:
            await client.get(URL)

    assert attempts == len(transport.contexts)


def test_hint_that_a_decorator_writes_is_read():
    """A status and headers are read from the exception as well."""
    cause = aiohttp.ClientResponseError(None, (), status=200)
    judge(cause)
    cause.status, cause.headers = 503, {"Retry-After": "7"}

    assert 7.0 == failure_of(cause).hint()


def test_what_is_no_longer_written_is_no_longer_believed():
    """It had been read before."""
    cause = aiohttp.ServerDisconnectedError()
    judge(cause)
    cause.is_retry_safe = True
    said = retry_safety(cause)
    del cause.is_retry_safe

    assert (RetrySafety.YES, RetrySafety.MAYBE) == (said, retry_safety(cause))


class _Raises:
    """Raises for each attribute that it is asked for, but those of Python."""

    def __getattribute__(self, name):
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise RuntimeError(name)


class _RaisesForMissing:
    """Raises for each attribute that it does not have, but those of Python."""

    def __getattr__(self, name):
        raise AttributeError(name) if name.startswith("__") else RuntimeError(name)


@pytest.mark.parametrize("mixed_in", [_Raises, _RaisesForMissing])
@pytest.mark.parametrize(
    "like",
    [
        OSError("lost"),
        OSError([], "no number"),
        TimeoutError("late"),
        aiohttp.ClientOSError(104, "reset"),
        aiohttp.ClientOSError([], "no number"),
        refused(),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.ClientResponseError(None, (), status=503),
        UnprocessedRequestError("refused"),
    ],
    ids=repr,
)
async def test_attributes_that_raise_end_no_call(like, mixed_in):
    """An error of a user's own may raise what it likes; the call has that error."""
    kind = type(type(like).__name__, (mixed_in, type(like)), {})
    error = kind(*like.args)
    group = EndpointGroup.of("http://a.example", "http://b.example")
    rule = RetryRule(exceptions=[kind], backoff=NOW)
    chain = (
        SessionBuilder(group)
        .decorator(ScriptedTransport([error] * 3))
        .decorator(CircuitBreakerClient.new_decorator(CircuitBreaker("shop")))
        .decorator(RetryingClient.new_decorator(rule, 3, limiter=RetryBudget()))
        .decorator(LoggingClient.new_decorator())
    )
    with capture_logs() as logs:
        async with chain.build() as client:
            with pytest.raises(kind) as caught:
                await client.get("/")

    assert error is caught.value
    assert (3, "max_total_attempts") == (logs[0].total_attempts, logs[0].stop_reason)
    assert kind.__name__ in logs[0].render()
    assert not is_timeout(error) or isinstance(error, TimeoutError)


def test_failure_that_is_its_own_cause_came_from_nowhere():
    """A chain without an end is not followed for ever."""
    cause = TimeoutError()
    cause.__cause__ = cause

    assert False is Trace(cause).has(REQUEST)
