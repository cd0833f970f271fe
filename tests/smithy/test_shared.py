"""Shared objects stay the same object when they are copied."""

import copy
import pickle

import pytest
from chains import raises_exactly

from aioretry_smithy.smithy.shared import Shared


class Counter(Shared):
    """Something with a state."""

    def __init__(self):
        self.count = 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copy_is_the_thing_itself(copied):
    """A count in the copy is a count in the original."""
    counter = Counter()

    assert counter is copied(counter)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_there_is_no_pickle(protocol):
    """With each protocol the error names the thing and says why."""
    with raises_exactly("Counter cannot be pickled: it holds shared state", TypeError):
        pickle.dumps([Counter()], protocol)
