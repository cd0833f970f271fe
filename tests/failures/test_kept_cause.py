"""Exceptions for keeping: copies with the same class and text, without frames."""

import asyncio

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from calls import begin
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioretry_smithy import CircuitBreaker, FailFastError, HttpRequest, new_response
from aioretry_smithy._failures.kept_cause import KeptCause, drop_frames, without_frames
from aioretry_smithy.smithy import CallError

URL_ = URL("http://example.com/")
INFO = aiohttp.RequestInfo(URL_, "GET", CIMultiDictProxy(CIMultiDict()), URL_)
KEY = ConnectionKey("example.com", 80, False, True, None, None, None)


class GreedyError(Exception):
    """One that cannot be made from its arguments."""

    def __new__(cls, one, two):
        return super().__new__(cls, one)


class HollowError(TimeoutError):
    """One whose text depends on more than a copy has."""

    def __str__(self):
        return f"at {id(self)}"


class UnspeakableError(ValueError):
    def __str__(self):
        raise RuntimeError("no text")


class SlottedError(Exception):
    __slots__ = ("detail", "unset")

    def __init__(self, detail):
        super().__init__()
        self.detail = detail

    def __str__(self):
        return self.detail


def fail(error):
    raise error


def raised(error):
    with pytest.raises(type(error)):
        fail(error)
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x", 1),
        TimeoutError(),
        OSError(104, "reset", "name"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why"),
        KeyError("x"),
        ExceptionGroup("two", [ValueError(), OSError(1, "x")]),
        aiohttp.ClientConnectorError(KEY, OSError(111, "refused")),
        aiohttp.ClientResponseError(INFO, (), status=503, message="busy"),
        aiohttp.ServerDisconnectedError(),
        FailFastError(CircuitBreaker("shop", clock=float), 1.5),
        CallError("503", fault="server", status=503),
        SlottedError("text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_copy_says_the_same(error):
    """It has the class, the text and the attributes, and no traceback."""
    copy = without_frames(raised(error))

    assert copy is not error
    assert type(error) is type(copy)
    assert str(error) == str(copy)
    assert vars(error).keys() == vars(copy).keys()
    assert copy.__traceback__ is None


@pytest.mark.parametrize(
    ("error", "base", "text"),
    [
        (GreedyError("one", "two"), Exception, "('one', 'two')"),
        (hollow := HollowError(), TimeoutError, str(hollow)),
        (UnspeakableError(), ValueError, ""),
    ],
    ids=["arguments", "text", "no text"],
)
def test_exception_that_cannot_be_copied_has_a_stand_in(error, base, text):
    """It has the name, the text and what Python itself knows of the class."""
    copy = without_frames(error)

    assert isinstance(copy, base)
    assert type(error).__qualname__ == type(copy).__qualname__
    assert text == str(copy)


async def test_copy_holds_no_response_and_no_frame():
    """The cause of an exception is copied too; the hops of a redirect go."""
    response = new_response(HttpRequest("GET", "http://example.com/"), 302)
    error = aiohttp.TooManyRedirects(INFO, (response,))
    error.reasons = [raised(ValueError("first")), response]
    error.__cause__ = raised(OSError(1, "second"))
    copy = without_frames(error)

    assert (None,) == copy.history
    assert copy.reasons[0].__traceback__ is None
    assert copy.reasons[1] is None
    assert "second" == copy.__cause__.strerror
    assert copy.__cause__.__traceback__ is None


async def test_copy_holds_nothing_of_the_call():
    """Errors often have the context of their call, and that has the body."""
    request = HttpRequest("PUT", URL_, data=b"sent")
    ctx = begin(request)
    task = asyncio.current_task()
    error = LookupError("no key")
    error.ctx, error.log, error.request, error.task = ctx, ctx.log, request, task
    error.details = {"request": request, "key": 7}
    error.pair = (ctx, "key")
    error.traceback = raised(ValueError()).__traceback__
    copy = without_frames(error)

    left_out = dict.fromkeys(("ctx", "log", "request", "task", "traceback"))
    kept = {"details": {"request": None, "key": 7}, "pair": (None, "key")}
    assert left_out | kept == vars(copy)


def test_exception_that_holds_itself_is_copied():
    """The copy does not."""
    error = ValueError("x")
    error.me = error

    assert without_frames(error).me is None


def test_kept_cause_is_the_exception_while_there_is_one():
    """Later it is a copy; one that cannot be referred to weakly is one at once."""
    error = aiohttp.ClientError("x")
    kept, copied = KeptCause(error), KeptCause(ValueError("y"))
    same = kept.get() is error
    del error

    assert same
    assert aiohttp.ClientError is type(kept.get())
    assert ["x", "y"] == [str(kept.get()), str(copied.get())]


def test_frames_are_dropped_from_the_whole_chain():
    """But not from what the calling code is handling meanwhile."""
    inner, outer, of_caller = ValueError(), OSError(), KeyError()
    try:
        fail(of_caller)
    except KeyError:
        try:
            raised(inner)
            fail(outer)
        except OSError:
            outer.__cause__ = inner
        drop_frames(outer)

    assert of_caller is outer.__context__
    assert of_caller.__traceback__ is not None
    assert outer.__traceback__ is None
    assert inner.__traceback__ is None
