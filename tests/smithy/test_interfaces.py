"""The protocols of strategies and errors, and the errors that end retries."""

import dataclasses
import math
import pickle
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from aioretry_smithy import is_unprocessed, smithy
from aioretry_smithy.smithy import (
    BackoffExhaustedError,
    CallError,
    CapacityNotAvailableError,
    ClientTimeoutError,
    ErrorRetryInfo,
    HasFault,
    ModeledError,
    RetryError,
    RetryInfo,
    RetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
)
from aioretry_smithy.smithy.interfaces import is_smithy_strategy, refusals


class InheritingError(Exception, ErrorRetryInfo):
    """An error that takes all defaults from the protocol."""


class PlainStrategy:
    """A strategy as in smithy-python's design document, with methods that are plain."""

    backoff_strategy = None
    max_attempts = 3

    def acquire_initial_retry_token(self, *, token_scope=None):
        return SimpleNamespace(retry_count=0, retry_delay=0.0)

    def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        return token_to_renew

    def record_success(self, *, token):
        pass


class BreakingError(Exception):
    """An error that fails when it is asked."""

    @property
    def is_retry_safe(self):
        raise RuntimeError

    retry_after = is_throttling_error = is_timeout_error = fault = is_retry_safe


class OnlyThreeMethods:
    """A strategy with the least that one needs."""

    acquire_initial_retry_token = PlainStrategy.acquire_initial_retry_token
    refresh_retry_token_for_retry = PlainStrategy.refresh_retry_token_for_retry
    record_success = PlainStrategy.record_success


def saying(**attributes):
    """Make an error that says only so much."""
    error = Exception()
    vars(error).update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "info"),
    [
        (Exception(), RetryInfo()),
        (None, RetryInfo()),
        (InheritingError(), RetryInfo()),
        (saying(is_retry_safe=True), RetryInfo(is_retry_safe=True)),
        (saying(is_retry_safe=False), RetryInfo(is_retry_safe=False)),
        (saying(is_retry_safe=0), RetryInfo(is_retry_safe=False)),
        (saying(fault="server"), RetryInfo(fault="server")),
        (saying(fault=["server"]), RetryInfo()),
        (saying(fault="nobody"), RetryInfo()),
        (saying(is_retry_safe="false", is_throttling_error=max), RetryInfo()),
        (saying(is_retry_safe=2), RetryInfo()),
        (BreakingError(), RetryInfo()),
        (saying(is_throttling_error=1), RetryInfo(is_throttling_error=True)),
        (saying(is_timeout_error=None), RetryInfo()),
        (
            saying(is_retry_safe=True, retry_after=2, is_throttling_error=True),
            RetryInfo(True, 2, True),
        ),
        (
            CallError(
                fault="client",
                is_retry_safe=True,
                retry_after=0.5,
                is_throttling_error=True,
                is_timeout_error=True,
            ),
            RetryInfo(True, 0.5, True, True, "client"),
        ),
    ],
)
def test_error_may_have_all_attributes_or_some_or_none(error, info):
    """Each attribute is read for itself, and has a default."""
    read = RetryInfo.of(error)

    assert info == read


@pytest.mark.parametrize("hint", ["1", -1, -0.1, math.nan, math.inf, True, None])
def test_hint_that_is_none_is_ignored(hint):
    """Only seconds that can be waited for are a hint."""
    info = RetryInfo.of(saying(retry_after=hint))

    assert info.retry_after is None


@pytest.mark.parametrize("hint", [0, 0.0, 1.5, 10**6])
def test_hint_is_kept_as_it_is(hint):
    """A hint is not cut when it is read; 0 is one as well."""
    info = RetryInfo.of(saying(retry_after=hint))

    assert hint == info.retry_after


@pytest.mark.parametrize(
    ("allowed", "info"),
    [
        (True, RetryInfo(is_retry_safe=True)),
        (True, RetryInfo(is_retry_safe=True, fault="client")),
        (False, RetryInfo(is_retry_safe=False)),
        (False, RetryInfo(False, 1.0, True, True, "server")),
        (True, RetryInfo(fault="server")),
        (False, RetryInfo(fault="client")),
        (False, RetryInfo()),
        (False, RetryInfo(retry_after=1.0)),
        (True, RetryInfo(is_throttling_error=True)),
        (True, RetryInfo(is_timeout_error=True, fault="client")),
    ],
)
def test_safety_decides_and_the_rest_helps_out(allowed, info):
    """A clear yes or no wins; else throttling, timeouts and server faults do."""
    assert allowed is info.allows_retry


def test_call_error_is_of_both_kinds():
    """Strategies that test with isinstance see all that a CallError says."""
    error = CallError()

    assert isinstance(error, ErrorRetryInfo)
    assert isinstance(error, HasFault)
    assert not isinstance(Exception(), ErrorRetryInfo)
    assert not isinstance(Exception(), HasFault)


class DesignError(Exception):
    """An error with the attributes that smithy-python's design document prints."""

    is_retry_safe = True
    retry_after = None
    is_throttling_error = False


def test_error_of_the_design_has_retry_information():
    """It prints three attributes and a protocol that ``isinstance`` may ask."""
    assert isinstance(DesignError(), ErrorRetryInfo)


@pytest.mark.parametrize(
    "strategy", [PlainStrategy(), SimpleRetryStrategy(), StandardRetryStrategy()]
)
def test_strategies_are_of_the_protocol(strategy):
    """Strategies with plain and with async methods pass, ours among them."""
    assert isinstance(strategy, RetryStrategy)
    assert is_smithy_strategy(strategy)


def test_three_methods_make_a_strategy():
    """The other attributes of the protocol are not needed to hand out tokens."""
    assert is_smithy_strategy(OnlyThreeMethods())


@pytest.mark.parametrize(
    "other", [None, "standard", PlainStrategy, SimpleNamespace(record_success=print)]
)
def test_other_things_are_no_strategy(other):
    """A class, or something with one method in common, hands out no tokens."""
    assert not is_smithy_strategy(other)


def test_token_may_derive_from_the_protocol():
    """As in smithy-python: a dataclass of its own, with something more."""

    @dataclasses.dataclass(kw_only=True)
    class Token(smithy.RetryToken):
        retry_count: int
        retry_delay: float
        region: str

    token = Token(retry_count=1, retry_delay=0.5, region="eu")

    assert (1, 0.5, "eu") == (token.retry_count, token.retry_delay, token.region)


def test_fields_of_a_derived_token_have_no_position():
    """The protocol is a dataclass itself, so a subclass need not repeat its fields."""

    @dataclasses.dataclass
    class Token(smithy.RetryToken):
        region: str

    token = Token("eu", retry_count=1, retry_delay=0.5)

    assert (1, 0.5, "eu") == (token.retry_count, token.retry_delay, token.region)
    assert Token("eu", retry_count=2, retry_delay=0.5) == (
        dataclasses.replace(token, retry_count=2)
    )


class TheirRetryError(Exception):
    """Stands for the class of smithy-python, which has the same arguments."""

    def __init__(self, message="", *, retry_after=None):
        super().__init__(message)
        self.retry_after = retry_after


@pytest.fixture
def with_smithy_python(monkeypatch):
    """Make it look as if smithy-python was imported."""
    module = SimpleNamespace(RetryError=TheirRetryError)
    monkeypatch.setitem(sys.modules, "smithy_core.exceptions", module)


@pytest.fixture
def without_smithy_python(monkeypatch):
    """Make it look as if smithy-python was never imported."""
    monkeypatch.delitem(sys.modules, "smithy_core.exceptions", raising=False)


def test_retry_error_says_why_and_when():
    """Message and time are kept; neither has to be given."""
    error = RetryError("no more", retry_after=1.5)

    assert "no more" == str(error)
    assert 1.5 == error.retry_after
    assert RetryError().retry_after is None
    assert "" == str(RetryError())


def test_exhausted_backoff_is_a_refusal():
    """A handler of a RetryError gets along with an exhausted backoff."""
    error = BackoffExhaustedError("no delay left")

    assert isinstance(error, RetryError)
    assert error.retry_after is None


@pytest.mark.usefixtures("without_smithy_python")
def test_alone_there_is_one_class():
    """Without smithy-python a RetryError is just that."""
    assert RetryError is type(RetryError("no more"))
    assert (RetryError,) == refusals()


@pytest.mark.usefixtures("with_smithy_python")
@pytest.mark.parametrize("kind", [RetryError, BackoffExhaustedError])
def test_error_is_known_to_smithy_python(kind):
    """Its loops catch their own class, also when it comes out of a process pool."""
    error = kind("no more", retry_after=1.5)

    for each in error, pickle.loads(pickle.dumps(error)):
        assert isinstance(each, kind)
        assert isinstance(each, TheirRetryError)
        assert kind.__name__ == type(each).__name__
        assert ("no more", 1.5) == (str(each), each.retry_after)


@pytest.mark.usefixtures("without_smithy_python")
def test_error_can_be_pickled():
    """The same without smithy-python."""
    error = pickle.loads(pickle.dumps(RetryError("no more", retry_after=1.5)))

    assert RetryError is type(error)
    assert ("no more", 1.5) == (str(error), error.retry_after)


def test_refused_capacity_was_not_sent():
    """Any method may be sent again. It is no RetryError: that would mean an attempt."""
    error = CapacityNotAvailableError(1.9)

    assert is_unprocessed(error)
    assert not isinstance(error, RetryError)
    assert 1.9 == error.retry_after
    assert "the rate limiter grants no attempt for 1.900 s" == str(error)
    assert 1.9 == pickle.loads(pickle.dumps(error)).retry_after


@pytest.mark.usefixtures("with_smithy_python")
def test_refusal_of_smithy_python_is_understood():
    """Its strategies raise their own class, which has to end retries as well."""
    with pytest.raises(refusals()):
        raise TheirRetryError("no more")


def test_call_error_has_defaults_that_say_nothing():
    """An error of which nothing is known forbids and allows nothing."""
    error = CallError()

    assert {
        "message": "",
        "fault": None,
        "is_retry_safe": None,
        "retry_after": None,
        "is_throttling_error": False,
        "is_timeout_error": False,
        "status": None,
        "code": None,
    } == vars(error)


def test_call_error_can_be_put_in_a_set():
    """Code that walks along chains of exceptions collects them by identity."""
    error, equal = CallError("503", status=503), CallError("503", status=503)

    assert 2 == len({error, equal})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (CallError, RetryInfo()),
        (ModeledError, RetryInfo(fault="client")),
        (
            ClientTimeoutError,
            RetryInfo(is_retry_safe=True, is_timeout_error=True, fault="client"),
        ),
    ],
)
def test_kinds_of_call_errors_differ_in_what_they_say(kind, said):
    """A model describes what the client did wrong; a timeout allows a retry."""
    assert said == RetryInfo.of(kind())


@pytest.mark.parametrize("kind", [CallError, ModeledError, ClientTimeoutError])
def test_call_error_takes_all_that_can_be_said(kind):
    """The details win over the defaults of the class, and cross processes."""
    details = {
        "fault": "server",
        "is_retry_safe": False,
        "retry_after": 1.5,
        "is_throttling_error": True,
        "is_timeout_error": False,
        "status": 429,
        "code": "Throttling",
    }
    error = pickle.loads(pickle.dumps(kind("busy", **details)))

    assert {"message": "busy", **details} == vars(error)


def test_call_error_can_be_described_by_a_dataclass():
    """As what smithy-python makes of a model does it."""

    @dataclass(kw_only=True)
    class BusyError(ModeledError):
        is_retry_safe: bool | None = True
        is_throttling_error: bool = True
        queue: str = ""

    error = BusyError(message="too many", queue="orders")

    assert ("too many", "orders") == (str(error), error.queue)
    assert RetryInfo(True, None, True, False, "client") == RetryInfo.of(error)
