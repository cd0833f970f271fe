"""Hooks are entered in turn; one may change the request for those further in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from aioretry_smithy._call.hooks import PASS, WAIT, Changed, Hooks
from aioretry_smithy._context.entering import enter, heed


class Noting(Hooks):
    """Gives what it is told to, and notes the requests that it sees."""

    def __init__(self, seen, gives, later=None):
        self._seen, self._gives, self._later = seen, gives, later

    def enter(self, call, scope, request):
        self._seen.append(request)
        return self._gives

    async def admit(self, call, scope, request):
        self._seen.append(("waited", request))
        return self._later


async def entered_by(*given):
    """Enter hooks that give this, each a permit or a pair; as the loop does."""
    seen, entered, request = [], [], "first"
    hooks = tuple(
        Noting(seen, *(each if isinstance(each, tuple) else (each,))) for each in given
    )
    call = SimpleNamespace(care=0)
    while sign := enter(hooks, entered, call, call, request):
        request = sign.request or await heed(sign, hooks, entered, call, call, request)
    kept = [(each in hooks, permit) for each, permit in entered]
    return request, seen, kept


@pytest.mark.parametrize(
    ("given", "request_sent", "seen", "permits"),
    [
        ([1, 2], "first", ["first", "first"], [1, 2]),
        ([Changed("new", 1), 2], "new", ["first", "new"], [1, 2]),
        ([1, Changed("new", 2)], "new", ["first", "first"], [1, 2]),
        (
            [Changed("new", 1), Changed("newer", 2), 3],
            "newer",
            ["first", "new", "newer"],
            [1, 2, 3],
        ),
        (
            [Changed("new", 1), (WAIT, 2), 3],
            "new",
            ["first", "new", ("waited", "new"), "new"],
            [1, 2, 3],
        ),
        (
            [(WAIT, Changed("new", 1)), 2],
            "new",
            ["first", ("waited", "first"), "new"],
            [1, 2],
        ),
    ],
    ids=["none", "outer", "inner", "both", "before a wait", "after a wait"],
)
async def test_those_further_in_see_the_changed_request(
    given, request_sent, seen, permits
):
    """It is what is sent, too; and each has its permit."""
    sent, asked, kept = await entered_by(*given)

    assert (request_sent, seen) == (sent, asked)
    assert [(True, permit) for permit in permits] == kept


@pytest.mark.parametrize("sign", [PASS, Changed("new", PASS)])
async def test_those_that_pass_need_not_be_told_of_the_end(sign):
    """Whether they have changed the request or not; also after such a change."""
    request, _, kept = await entered_by(sign, Changed("newer", 2), PASS)

    assert "newer" == request
    assert [(False, PASS), (True, 2), (False, PASS)] == kept
