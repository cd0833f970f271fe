"""The resources of a call: made when needed, shared by its attempts."""

from __future__ import annotations

from calls import REQUEST, begin

from aioretry_smithy import ClientRequestContext
from aioretry_smithy._call.context import resources_of


async def test_attempts_share_the_resources_of_their_call():
    """Another call has its own, and one that asks for none has none."""
    ctx, other = begin(), begin()
    first, second = ctx.derive(REQUEST), ctx.derive(REQUEST)

    assert ctx._resources is None
    assert resources_of(first) is resources_of(second) is resources_of(ctx)
    assert resources_of(ctx) is ctx._resources
    assert resources_of(other) is not ctx._resources


async def test_something_is_used_once_in_a_call():
    """Equal objects are not the same; the attempts of a call share what was used."""
    ctx = begin()
    first, second = ctx.derive(REQUEST), ctx.derive(REQUEST)
    used, equal = [], []

    assert resources_of(first).use_once(used)
    assert not resources_of(second).use_once(used)
    assert resources_of(second).use_once(equal)
    assert resources_of(begin()).use_once(used)


async def test_public_context_has_no_private_toolbox():
    """The public names are for decorators; each is documented."""
    public = {name for name in dir(ClientRequestContext) if not name.startswith("_")}

    assert public == {
        "attempt",
        "attributes",
        "clear_response_timeout",
        "deadline",
        "derive",
        "log",
        "options",
        "parent",
        "remaining",
        "request",
        "root",
        "set_response_timeout",
    }
