"""Downloads that break, stall and lie, and are continued where that is safe."""

import asyncio

import aiohttp
from story_bodies import injecting
from story_chains import breaking, logging_with, one_breaker, plain, retrying
from story_decorators import ContentStrategy, watching
from story_elsewhere import CUT, FILE, HOLD, PARTS, TOTAL, Part, broken
from story_groups import given
from story_limits import SOON, places, turns
from story_service import Ask, served
from story_text import LimiterWitness, told_error
from story_tokens import tokens

from aioretry_smithy import (
    CircuitState,
    ContentPreviewingClient,
    HedgingClient,
    RateLimit,
    RequestLog,
    ResumingClient,
    RetryConfig,
    RetryStrategy,
    client_decorator,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

ONCE = (Ask(),)
RESUMING = plain(ResumingClient.new_decorator())


@client_decorator
async def two_sends(delegate, ctx, request):
    """Send each request twice, and take the second answer."""
    (await delegate.execute(ctx, request)).close()
    return await delegate.execute(ctx, request)


def filtered(witness):
    """Take up what is asked of the file, and note what was looked at."""

    def is_file(request):
        witness.note("filters", str(request.url))
        return "/orders" in str(request.url)

    return ResumingClient.new_decorator(request_filter=is_file)


def failing(request):
    raise LookupError("filter")


CHAINS = {
    "alone": (RESUMING,),
    "around retries": (retrying(SOON), RESUMING),
    "full": (breaking(), retrying(SOON, LimiterWitness), RESUMING, logging_with()),
    "log inside": (retrying(SOON), logging_with(), RESUMING),
    "watched": (
        watching("inside"),
        retrying(SOON),
        watching("between"),
        RESUMING,
        watching("outside"),
    ),
    "watched alone": (watching("inside"), RESUMING, watching("outside")),
    "attempts of 0.4 s": (retrying(SOON, attempt_timeout=0.4), RESUMING),
    "limited inside": (
        places(),
        turns(lambda: RateLimit(1e6)),
        one_breaker(CircuitState.HALF_OPEN),
        retrying(SOON),
        RESUMING,
    ),
    "limited inside, alone": (places(), breaking(), RESUMING),
    "limited outside": (retrying(SOON), RESUMING, places(), logging_with()),
    "opens soon": (
        breaking(minimum_request_threshold=1, failure_rate_threshold=0.1),
        retrying(SOON),
        RESUMING,
    ),
    "hedged": (plain(HedgingClient.new_decorator(0.25)), retrying(SOON), RESUMING),
    "with a token": (tokens(), retrying(SOON), RESUMING),
    "content strategy": (retrying(ContentStrategy), RESUMING),
    "preview": (plain(ContentPreviewingClient.new_decorator(20)), RESUMING),
    "sent twice": (retrying(SOON), RESUMING, plain(two_sends)),
    "injected cut": (
        injecting(InjectedFault.cut_body(after=120)),
        retrying(SOON),
        RESUMING,
    ),
    "no retry": (
        plain(FaultInjectingClient.new_decorator(InjectedFault.hang(), enabled=False)),
        retrying(RetryStrategy.never()),
        RESUMING,
    ),
    "once only": (plain(ResumingClient.new_decorator(max_resumes_without_progress=1)),),
}
"""By name."""

MAIN = ("alone", "full", "watched")
"""Chains that meet all answers."""

SOME = (
    "whole",
    "breaks",
    "breaks thrice",
    "brings nothing",
    "503 for a part",
    "cut before a part",
    "404 for a part",
    "slow part",
    "503 first",
    "part: another tag",
)
"""Answers that all chains meet."""


SELDOM = ("log inside", "opens soon", "content strategy", "preview", "no retry")
"""Chains of which no call is given up."""


async def gathered(witness, response):
    """Read what comes; tell how much it was, and how it ended."""
    got, error = bytearray(), None
    try:
        async for piece in response.content.iter_any():
            got += piece
    except Exception as failure:
        error = failure
    witness.look("after the body")
    return told(response, got, error)


def told(response, got, error=None):
    log = RequestLog.of(response)
    return {
        "bytes": (len(got), FILE.startswith(got)),
        "error": told_error(error),
        "same log": error is None or log is RequestLog.of(error, None),
        "ends": response.content.at_eof(),
        "length": log.response_length,
        "complete": log.is_complete,
    }


async def whole(witness, response):
    return told(response, await response.read())


async def as_text(witness, response):
    return told(response, (await response.text()).encode())


async def in_chunks(witness, response):
    pieces, ends = b"", []
    async for piece, is_end in response.content.iter_chunks():
        pieces += piece
        ends.append((len(pieces), is_end))
    return told(response, pieces), ends


async def by_lines(witness, response):
    return told(response, b"".join([line async for line in response.content]))


async def exactly(witness, response):
    pieces = b""
    while len(pieces) < TOTAL:
        pieces += await response.content.readexactly(min(60, TOTAL - len(pieces)))
    return told(response, pieces)


async def without_a_wait(witness, response):
    pieces, seen = b"", []
    while not response.content.at_eof():
        pieces += response.content.read_nowait()
        seen.append(len(pieces))
        await asyncio.sleep(0.5)
        if response.content.is_eof() is False and seen[-3:] == [len(pieces)] * 3:
            pieces += await response.content.readany()
    return told(response, pieces), seen


async def waits_for_the_end(witness, response):
    await response.content.wait_eof()
    return told(response, await response.read())


async def left_early(witness, response):
    first = await response.content.readexactly(120)
    witness.look("before the exit")
    return told(response, first)


async def closed(witness, response):
    first = await response.content.readexactly(150)
    reading = asyncio.ensure_future(response.content.readany())
    await asyncio.sleep(0.1)
    response.close()
    (error,) = await asyncio.gather(reading, return_exceptions=True)
    return told(response, first), told_error(error)


async def released(witness, response):
    first = await response.content.readexactly(120)
    response.release()
    return told(response, first)


async def cancelled_and_read_on(witness, response):
    first = await response.content.readexactly(150)
    reading = asyncio.ensure_future(response.content.readany())
    await asyncio.sleep(0.1)
    witness.look("while it reads")
    reading.cancel("enough")
    await asyncio.wait([reading])
    rest = await response.read()
    return reading.cancelled(), told(response, first + rest)


async def two_at_once(witness, response):
    reading = asyncio.ensure_future(response.content.readexactly(200))
    await asyncio.sleep(0.1)
    try:
        await response.content.readany()
    except RuntimeError as error:
        refused = told_error(error)
    first = await reading
    return refused, told(response, first + await response.read())


async def dropped(witness, response):
    content = response.content
    first = await content.readexactly(120)
    del response
    rest = await content.read()
    return len(first), len(rest)


WAYS = {
    each.__name__.replace("_", " "): each
    for each in (
        whole,
        as_text,
        in_chunks,
        by_lines,
        exactly,
        without_a_wait,
        waits_for_the_end,
        left_early,
        closed,
        released,
        cancelled_and_read_on,
        two_at_once,
        dropped,
    )
}
"""By name: how the caller reads."""


def timed(seconds, **settings):
    return Ask(options={"timeout": aiohttp.ClientTimeout(total=seconds)}, **settings)


ENDS = {
    "cancelled in the first part": (Ask(cancelled=0.6),),
    "cancelled at the break": (Ask(cancelled=0.75),),
    "cancelled before the second part": (Ask(cancelled=1.5),),
    "cancelled in the second part": (Ask(cancelled=3.1),),
    "deadline in the first part": (timed(0.6),),
    "deadline before the second part": (timed(1.5),),
    "deadline in the second part": (timed(3.1),),
    "three at once": (Ask(), Ask(), Ask()),
    "second is cancelled": (Ask(), Ask(cancelled=0.6), Ask(0.8)),
}
"""By name: when calls are made, and given up."""


def asking(method="GET", **options):
    return Ask(method=method, options=options)


ASKS = {
    "POST": asking("POST"),
    "HEAD": asking("HEAD"),
    "GET with a body": asking(json={"a": 1}),
    "own Range": asking(headers={"Range": "bytes=0-"}),
    "own Accept-Encoding": asking(headers={"Accept-Encoding": "gzip"}),
    "raise_for_status": asking(raise_for_status=True),
    "buffered": Ask(block={"retry": RetryConfig(SOON, buffer_response=True)}),
    "without retry": Ask(block={"retry": RetryConfig.no_retry()}),
    "without hints": Ask(block={"retry": RetryConfig(SOON, use_retry_after=False)}),
    "time of a block": Ask(block={"response_timeout": 2.5}),
}
"""By name: requests but the usual one."""

SETTINGS = {
    "filtered": filtered,
    "filtered out": plain(ResumingClient.new_decorator(request_filter=lambda _: False)),
    "filter fails": plain(ResumingClient.new_decorator(request_filter=failing)),
    "filter says nothing": plain(
        ResumingClient.new_decorator(request_filter=lambda _: None)
    ),
    "never": plain(ResumingClient.new_decorator(max_resumes_without_progress=0)),
}
"""By name: clients but the usual one."""


def downloads(*parts, answers, asks=ONCE, way=gathered, **settings):
    """Describe downloads; what stalls for ever is given up after a while."""
    is_endless = any(getattr(each, "end", None) is HOLD for each in answers)
    if is_endless and asks is ONCE:
        asks = (timed(20.0),)
    return served(*parts, answers=answers, asks=asks, way=way, **settings)


def by_name(*names):
    """Answer with parts at several servers alike."""
    return lambda witness: {name: [*broken(100, 200)] for name in names}


STORIES = {
    **{
        f"{chain}: {name}": downloads(*parts, answers=answers)
        for chain, parts in CHAINS.items()
        for name, answers in PARTS.items()
        if chain in MAIN or name in SOME
    },
    **{
        f"{chain}: {way}: {name}": downloads(*parts, answers=PARTS[name], way=use)
        for chain, parts in CHAINS.items()
        for way, use in WAYS.items()
        for name in ("whole", "breaks", "breaks in chunks", "slow part")
        if chain in {"alone", "full"}
    },
    **{
        f"{chain}: {end}": downloads(*parts, answers=PARTS["slow part"], asks=asks)
        for chain, parts in CHAINS.items()
        for end, asks in ENDS.items()
        if chain not in SELDOM
    },
    **{
        f"{chain}: {ask}: {name}": downloads(
            *CHAINS[chain], answers=PARTS[name], asks=(asked,)
        )
        for chain in ("alone", "full")
        for ask, asked in ASKS.items()
        for name in ("breaks", "429 with a hint")
    },
    **{
        f"{name}: {answer}": downloads(
            retrying(SOON), part, logging_with(), answers=PARTS[answer]
        )
        for name, part in SETTINGS.items()
        for answer in ("whole", "breaks")
    },
    **{
        f"session with {name}": downloads(
            *CHAINS["full"], answers=[Part(150, CUT), Part()], headers={name: "gzip"}
        )
        for name in ("Accept-Encoding", "Upgrade", "X-Other")
    },
    **{
        f"endpoints: {chain}: {number}": served(
            *parts,
            answers=by_name("a", "b"),
            asks=(Ask(),) * number,
            way=gathered,
            base=given("a", "b"),
        )
        for chain, parts in CHAINS.items()
        for number in (1, 2)
        if chain in {*MAIN, "around retries", "hedged", "limited inside"}
    },
}
"""By name: functions that tell the story, in virtual time."""
