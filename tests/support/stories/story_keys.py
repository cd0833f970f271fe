"""Calls that carry a key, by which a server recognises what is sent again."""

import uuid

import aiohttp
import pytest
from story_chains import breaking, logging_with, plain, retrying
from story_decorators import ContentStrategy, Refreshing, Strategy, watching
from story_limits import SOON, places
from story_service import BASE, Ask, after, served
from story_text import LimiterWitness, told_context

from aioretry_smithy import (
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    IdempotencyKeyClient,
    RefreshingClient,
    RetryConfig,
    client_decorator,
)


def keys(**settings):
    """Give keys as the settings say, random ones in order."""
    return plain(IdempotencyKeyClient.new_decorator(**settings))


def of_attribute(witness):
    """Make a key of what the block says, and note what is asked for it."""

    def key(ctx, request):
        witness.note("key for", told_context(ctx), str(request))
        return ctx.root.attributes.get("order")

    return IdempotencyKeyClient.new_decorator(key=key)


def failing(ctx, request):
    raise LookupError("key")


def awaited_by_mistake(ctx, request):
    async def key():
        return "key-1"

    return key()


def numbered(witness):
    """Make another key each time it is asked for one."""
    numbers = iter(range(1, 99))
    return IdempotencyKeyClient.new_decorator(key=lambda *_: f"key-{next(numbers)}")


def twice(key):
    """Give keys by two clients, one in the other."""

    def part(witness):
        inner, outer = keys(header="X-Request-Id")(witness), key(witness)
        return lambda delegate: outer(inner(delegate))

    return part


def same_twice(witness):
    decorate = IdempotencyKeyClient.new_decorator()
    return lambda delegate: decorate(decorate(delegate))


@client_decorator
async def two_sends(delegate, ctx, request):
    """Send each request of a call twice."""
    (await delegate.execute(ctx, request)).release()
    return await delegate.execute(ctx, request)


@client_decorator
async def as_post(delegate, ctx, request):
    """Send something else in between, and with another body."""
    other = request.with_header("X-Other", "1")
    (await delegate.execute(ctx, other)).release()
    return await delegate.execute(ctx, request)


KEYS = {
    "random": keys(),
    "numbered": numbered,
    "of an attribute": of_attribute,
    "in a header of its own": keys(header="X-Request-Id"),
    "of GET and PUT": keys(methods=["get", "PUT"]),
    "for another server": keys(hosts=["http://other.test"]),
    "for named servers": keys(hosts=[BASE, "http://other.test"]),
    "that fails": keys(key=failing),
    "that is no text": keys(key=lambda ctx, request: 7),
    "of two lines": keys(key=lambda ctx, request: "key\r\n1"),
    "that is awaited": keys(key=awaited_by_mistake),
    "for none": keys(key=lambda ctx, request: None),
    "by two clients": twice(keys()),
    "by one client twice": same_twice,
}
"""By name."""


def chains(key):
    return {
        "alone": (key,),
        "retried": (breaking(), retrying(SOON, LimiterWitness), key, logging_with()),
        "log inside": (breaking(), retrying(SOON), logging_with(), key),
        "watched": (
            watching("inside"),
            places(),
            retrying(Strategy),
            watching("between"),
            key,
            watching("outside"),
        ),
        "attempts of 0.4 s": (breaking(), retrying(SOON, attempt_timeout=0.4), key),
        "content strategy": (breaking(), retrying(ContentStrategy), key),
        "hedged": (plain(HedgingClient.new_decorator(0.25)), retrying(SOON), key),
        "sent twice inside": (plain(two_sends), retrying(SOON), key),
        "sent twice outside": (retrying(SOON), key, plain(two_sends)),
        "sent otherwise outside": (retrying(SOON), key, plain(as_post)),
        "asked twice outside": (retrying(SOON), key, plain(Refreshing)),
        "with a token": (plain(refreshing()), retrying(SOON), key, logging_with()),
        "with a token outside": (retrying(SOON), key, plain(refreshing())),
    }


def refreshing():
    async def fetch():
        return "token"

    return RefreshingClient.new_decorator(fetch)


FINE = (200, b"fine")
ANSWERS = {
    "fine": [FINE],
    "503, fine": [503, FINE],
    "503": [503],
    "cut, fine": [aiohttp.ServerDisconnectedError, FINE],
    "cut": [aiohttp.ServerDisconnectedError],
    "401, fine": [401, FINE],
    "409": [(409, b"under way")],
    "late": [after(0.5, 503), after(0.5, FINE)],
}
"""By name: the answers of the server."""


def post(**settings):
    return Ask(method="POST", **settings)


def with_options(**options):
    return post(options=options)


POST = post(options={"json": {"a": 1}})
ASKS = {
    "PATCH": Ask(method="PATCH"),
    "GET": Ask(),
    "PUT": Ask(method="PUT", options={"data": b"body"}),
    "of an order": post(block={"attributes": {"order": "order-7"}}),
    "own key": with_options(headers={"idempotency-key": "mine"}),
    "own key in another header": with_options(headers={"X-Request-Id": "mine"}),
    "another server": post(path="http://other.test/orders"),
    "without retry": post(block={"retry": RetryConfig.no_retry()}),
    "that is idempotent": post(block={"idempotent": True}),
    "that is not": post(block={"idempotent": False}),
    "raise_for_status": with_options(raise_for_status=True),
}
"""By name: requests but the usual one."""

CROWDS = {
    "three at once": (POST, POST, POST),
    "cancelled": (post(cancelled=0.25), post(at=0.5)),
    "cancelled while it waits": (post(cancelled=1.0), POST),
    "cancelled in the second attempt": (post(cancelled=1.75),),
    "past the deadline": (with_options(timeout=aiohttp.ClientTimeout(total=1.0)),),
    "second is cancelled by the first": (post(cancels=1), POST),
}
"""By name: when calls are made, and given up."""


async def group(witness, stack):
    return EndpointGroup.of(
        "http://shop.test",
        "http://shop.example",
        selection=EndpointSelectionStrategy.in_order(),
    )


def keyed(*parts, **settings):
    """Describe calls for which random keys are numbers."""
    tell = served(*parts, **settings)

    async def told():
        with pytest.MonkeyPatch.context() as patch:
            numbers = iter(range(1, 99))
            patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
            return await tell()

    return told


STORIES = {
    **{
        f"{chain}: {name}": keyed(*parts, answers=answers, asks=(POST,))
        for chain, parts in chains(keys()).items()
        for name, answers in ANSWERS.items()
    },
    **{
        f"{chain}: key {name}: 503, fine": keyed(
            *parts, answers=ANSWERS["503, fine"], asks=(POST,)
        )
        for name, key in KEYS.items()
        for chain, parts in chains(key).items()
        if chain in {"alone", "retried", "sent twice outside", "watched"}
    },
    **{
        f"{chain}: key {name}: {ask}": keyed(
            *parts, answers=ANSWERS["503, fine"], asks=(asked,)
        )
        for name in ("random", "of an attribute", "of GET and PUT", "for named servers")
        for chain, parts in chains(KEYS[name]).items()
        if chain in {"alone", "retried"}
        for ask, asked in ASKS.items()
    },
    **{
        f"{chain}: {crowd}": keyed(*parts, answers=ANSWERS["late"], asks=asks)
        for chain, parts in chains(keys()).items()
        for crowd, asks in CROWDS.items()
    },
    **{
        f"{chain}: endpoints: {name}": keyed(
            *parts, answers=ANSWERS[name], asks=(POST, POST), base=group
        )
        for chain, parts in chains(numbered).items()
        for name in ("503, fine", "cut, fine")
        if not chain.startswith("sent")
    },
    **{
        f"session with a key: {chain}": keyed(
            *parts,
            answers=ANSWERS["503, fine"],
            asks=(POST,),
            headers={"Idempotency-Key": "mine"},
        )
        for chain, parts in chains(keys()).items()
    },
}
"""By name: functions that tell the story, in virtual time."""
