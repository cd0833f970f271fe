"""The errors that end retries, and the one that strategies are shown."""

import pickle
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from aioretry_smithy import is_unprocessed
from aioretry_smithy.smithy import RetryInfo
from aioretry_smithy.smithy.interfaces import (
    BackoffExhaustedError,
    CallError,
    CapacityNotAvailableError,
    ClientTimeoutError,
    ModeledError,
    RetryError,
    refusals,
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


@pytest.mark.parametrize("kind", [CallError, ModeledError, ClientTimeoutError])
def test_call_error_has_a_message(kind):
    """By position or by keyword, and what is printed of the error is that."""
    errors = [kind("busy"), kind(message="busy"), kind()]

    assert ["busy", "busy", ""] == [error.message for error in errors]
    assert ["busy", "busy", ""] == [str(error) for error in errors]


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
