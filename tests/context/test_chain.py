"""Chains: the clients that may stand in one, and those that hide the rest of it."""

import functools
from unittest.mock import Mock

import aiohttp
import pytest
from chains import Opaque, connected, retrying

from aioretry_smithy import (
    CircuitBreakerClient,
    DecoratingClient,
    LoggingClient,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    decorate,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

FAILSAFE = retrying(1.0)
NEVER = retrying(RetryStrategy.never())


class Inner(DecoratingClient):
    pass


class Outer(DecoratingClient):
    pass


@pytest.mark.parametrize("decorator", [None, "retry", RetryStrategy.never()])
def test_what_is_no_decorator_is_refused(decorator):
    """A strategy in the place of its decorator is found out at once."""
    with pytest.raises(ValueError, match=r"^decorator: .*\(expected: a function of a"):
        SessionBuilder().decorator(decorator)


async def bare(delegate, ctx, request):
    return await delegate.execute(ctx, request)


class BareObject:
    async def __call__(self, delegate, ctx, request):
        return await delegate.execute(ctx, request)

    def __repr__(self):
        return "BareObject()"


@pytest.mark.parametrize("function", [bare, functools.partial(bare), BareObject()])
async def test_forgotten_client_decorator_is_told(function):
    """A function that takes a request is no decorator yet, wherever it is given."""
    # The description of a class of the user's own may hold a secret.
    shown = "<BareObject object>" if type(function) is BareObject else repr(function)
    expected = (
        f"decorator: {shown} (expected: a function of a client;"
        " write @client_decorator above a coroutine function)"
    )
    with pytest.raises(ValueError) as of_builder:
        SessionBuilder().decorator(function)
    with pytest.raises(ValueError) as of_standard:
        SessionBuilder.standard(inside=[function])
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError) as of_decorate:
            decorate(session, function)
        assert "_request" not in vars(session)

    for caught in (of_builder, of_standard, of_decorate):
        assert expected == str(caught.value)


@pytest.mark.parametrize(
    "decorator",
    [
        RetryingClient,
        RetryingClient.new_decorator,
        LoggingClient,
        CircuitBreakerClient.new_per_host_decorator,
    ],
)
def test_decorator_that_was_not_made_is_told(decorator):
    """A class with settings, or its method that was not called, is none yet."""
    name = getattr(decorator, "__self__", decorator).__name__
    expected = rf"\(expected: what {name}.new_decorator\(...\) returns\)$"
    with pytest.raises(ValueError, match=expected):
        SessionBuilder().decorator(decorator)


async def test_method_and_subclass_without_settings_are_decorators():
    """A callable that takes a client alone is a decorator as it is."""

    class Patient(RetryingClient):
        def __init__(self, delegate):
            super().__init__(delegate, RetryConfig.no_retry())

    class Quiet(DecoratingClient):
        @classmethod
        def around(cls, delegate):
            return cls(delegate)

    class Around(Patient):
        @classmethod
        def around(cls, delegate):
            return cls(delegate)

    for decorator in (Patient, Quiet.around, Around.around):
        async with connected(None, decorator) as session:
            found = unwrap(session, DecoratingClient)

        assert found is not None


async def test_class_whose_objects_are_called_asynchronously_is_a_decorator():
    """The class decides by what it makes of a client."""

    class Callable(DecoratingClient):
        async def __call__(self): ...

    async with connected(None, Callable) as session:
        assert unwrap(session, Callable) is not None


def opaque_twice(delegate):
    return Opaque(Opaque(delegate))


class Forwarding(Opaque):
    """A proxy: whatever it lacks is looked for in what it wraps."""

    def __getattr__(self, name):
        return getattr(self.inner, name)


def mocked(delegate):
    mock = Mock()
    mock.execute = delegate.execute
    return mock


@client_decorator
async def note(delegate, ctx, request):
    return await delegate.execute(ctx, request)


TRANSPORT = ScriptedTransport([])


@pytest.mark.parametrize(
    ("inside", "hidden"),
    [
        ([FAILSAFE], "RetryingClient"),
        ([Inner], "Inner"),
        ([LoggingClient.new_decorator(sensitive_headers=["X-Own"])], "LoggingClient"),
        ([note], "note"),
        ([Opaque], "Opaque"),
        ([TRANSPORT, Inner], "Inner"),
    ],
    ids=["retrying", "class", "logging", "function", "opaque", "behind a transport"],
)
@pytest.mark.parametrize(
    "decorator",
    [Opaque, opaque_twice, Forwarding, mocked, TRANSPORT, lambda delegate: TRANSPORT],
    ids=["opaque", "twice", "proxy", "mock", "transport", "made"],
)
async def test_decorator_that_hides_others_is_refused(decorator, inside, hidden):
    """Masks, retries and breakers further in could not be found."""
    expected = (
        f"decorator: {decorator!r} (expected: added first, or a client that has the one"
        f" it wraps as .delegate; it hides {hidden})"
    )
    builder = SessionBuilder()
    for each in (*inside, decorator):
        builder.decorator(each)
    with pytest.raises(ValueError) as of_build:
        builder.build()
    with pytest.raises(ValueError) as of_describe:
        builder.describe()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError) as of_decorate:
            decorate(session, *inside, decorator)
        assert "_request" not in vars(session)

    for caught in (of_build, of_describe, of_decorate):
        assert expected == str(caught.value)


@pytest.mark.parametrize(
    "decorators",
    [
        [Opaque],
        [TRANSPORT, Opaque],
        [lambda delegate: TRANSPORT, Inner],
        [TRANSPORT, Inner],
        [lambda delegate: delegate, Inner, lambda delegate: delegate],
        [Inner, lambda delegate: Outer(Inner(delegate))],
        [mocked, Inner],
    ],
)
async def test_decorator_that_hides_the_transport_alone_is_fine(decorators):
    """Nothing stands further in that anybody looks for."""
    async with aiohttp.ClientSession() as session:
        decorate(session, *decorators, FAILSAFE)

        assert unwrap(session, RetryingClient) is not None


async def test_decorator_must_return_a_client():
    """A function of the wrong kind is found out when the session is made."""
    message = r"^decorator: <function .*\(expected: one that returns an HttpClient\)$"

    with pytest.raises(ValueError, match=message):
        connected(None, lambda delegate: None)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError, match=message):
            decorate(session, lambda delegate: None)
        assert "_request" not in vars(session)


async def test_two_retrying_clients_are_refused():
    """Attempts of attempts multiply; no chain has two, however it is made."""
    builder = SessionBuilder().decorator(FAILSAFE).decorator(Inner).decorator(NEVER)
    message = r"^decorators: 2 \(expected: at most one RetryingClient\)$"

    with pytest.raises(ValueError, match=message):
        builder.build()
    with pytest.raises(ValueError, match=message):
        builder.describe()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError, match=message):
            decorate(session, FAILSAFE, FAILSAFE)
