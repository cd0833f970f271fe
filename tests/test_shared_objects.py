"""Shared objects stay the same object when they are copied."""

import copy
import pickle

import pytest
from chains import raises_exactly

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    ConcurrencyLimit,
    EndpointGroup,
    RateLimit,
)
from aioretry_smithy._values import Shared


class Counter(Shared):
    """Something with a state."""

    def __init__(self):
        self.count = 0


class Halved(ConcurrencyLimit):
    """A limit of a user's own."""

    limit = 16


def two_groups():
    return EndpointGroup.of("http://a.test").or_else(EndpointGroup.of("http://b.test"))


KINDS = [
    Counter,
    CircuitBreaker,
    lambda: ConcurrencyLimit.fixed(1),
    lambda: ConcurrencyLimit.fixed(lambda: 1),
    ConcurrencyLimit.aimd,
    ConcurrencyLimit.gradient,
    Halved,
    lambda: RateLimit(1),
    RateLimit.from_headers,
    lambda: EndpointGroup.of("http://a.test"),
    lambda: EndpointGroup.dns("http://a.test"),
    two_groups,
]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", KINDS)
def test_copied_settings_hold_the_same_object(make, copied):
    """Settings are copied by libraries that know nothing of breakers and limits."""
    shared = make()
    settings = copied({"orders": [shared]})

    assert shared is copied(shared)
    assert shared is settings["orders"][0]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_shared_here_does_not_go_elsewhere(make):
    """Another process would have half of it: a count, and nobody to tell."""
    shared = make()
    expected = f"{type(shared).__name__} cannot be pickled: it holds shared state"
    with raises_exactly(expected, TypeError):
        pickle.dumps(shared)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_permit_of_a_circuit_has_one_use(copied):
    """The trial that has succeeded is not counted once more for its copy."""
    breaker = CircuitBreaker(success_threshold=2)
    breaker.enter_state(CircuitState.HALF_OPEN)
    permit = breaker.try_request()
    breaker.on_success(permit)
    breaker.on_success(copied(permit))

    assert CircuitState.HALF_OPEN is breaker.state


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copy_is_the_thing_itself(copied):
    """A count in the copy is a count in the original."""
    counter = Counter()

    assert counter is copied(counter)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_there_is_no_pickle(protocol):
    """With each protocol the error names the thing and says why."""
    with pytest.raises(TypeError) as caught:
        pickle.dumps([Counter()], protocol)

    # From Python 3.14 on notes say where in the list it stands.
    assert "Counter cannot be pickled: it holds shared state" == str(caught.value)
