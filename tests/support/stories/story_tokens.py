"""Calls that carry tokens, which are fetched, refused and fetched anew."""

import asyncio

import aiohttp
from story_calls import generated
from story_chains import breaking, logging_with, one_breaker, plain, retrying
from story_decorators import ContentStrategy, watching
from story_limits import SOON, places, turns
from story_service import BASE, Ask, after, served
from story_text import LimiterWitness, rounded

from aioretry_smithy import (
    CircuitState,
    ContentPreviewingClient,
    EndpointGroup,
    EndpointSelectionStrategy,
    HedgingClient,
    IdempotencyKeyClient,
    RateLimit,
    RefreshingClient,
    RetryConfig,
)


class Alarm(BaseException):
    """An error that a handler of signals may raise anywhere."""


def tokens(*outcomes, takes=1.0, **settings):
    """Fetch tokens, each of which takes a while; the last outcome is any number's.

    An outcome is None for a token, an exception class, or what a fetch returns.
    """

    def part(witness):
        left, fetched = iter(outcomes), []
        witness.states.append(lambda: ("fetched", fetched))

        async def fetch():
            fetched.append(rounded(asyncio.get_running_loop().time()))
            number = len(fetched)
            witness.note("fetches", number, fetched[-1])
            try:
                await asyncio.sleep(takes)
            except BaseException as error:
                witness.note("gives up the fetch", type(error).__name__)
                raise
            outcome = next(left, None)
            if isinstance(outcome, type):
                raise outcome(f"fetch {number}")
            return f"token-{number}" if outcome is None else outcome

        return RefreshingClient.new_decorator(fetch, **settings)

    return part


def cancelling(witness):
    """Cancel the fetch from inside."""

    async def fetch():
        asyncio.current_task().cancel("itself")
        await asyncio.sleep(1.0)

    return RefreshingClient.new_decorator(fetch)


def plain_function(witness):
    return RefreshingClient.new_decorator(lambda: "token-1")


def hanging(witness):
    """Fetch the first token for an hour, the others for a second."""
    seconds = iter([3600.0])

    async def fetch():
        try:
            await asyncio.sleep(next(seconds, 1.0))
        finally:
            witness.note("a fetch ends", rounded(asyncio.get_running_loop().time()))
        return "token-1"

    return RefreshingClient.new_decorator(fetch)


def chains(made):
    return {
        "alone": (made,),
        "retried": (made, breaking(), retrying(SOON, LimiterWitness), logging_with()),
        "breaker inside": (breaking(), made, retrying(SOON), logging_with()),
        "around all attempts": (breaking(), retrying(SOON), made, logging_with()),
        "watched": (
            watching("inside"),
            made,
            watching("between"),
            retrying(SOON),
            watching("outside"),
        ),
        "attempts of 1.5 s": (made, breaking(), retrying(SOON, attempt_timeout=1.5)),
        "limited inside": (
            places(),
            turns(lambda: RateLimit(1e6)),
            made,
            retrying(SOON),
        ),
        "limited outside": (
            made,
            places(2),
            one_breaker(CircuitState.HALF_OPEN),
            retrying(SOON),
            logging_with(),
        ),
        "hedged": (made, plain(HedgingClient.new_decorator(0.25)), retrying(SOON)),
        "content strategy": (made, breaking(), retrying(ContentStrategy)),
        "buffered": (
            made,
            plain(ContentPreviewingClient.new_decorator(20)),
            retrying(SOON, buffer_response=True),
        ),
    }


FINE = (200, b"fine")
NO = (401, {"WWW-Authenticate": "Bearer"}, b"who are you")


def valid_from(number, *before, then=FINE):
    """Refuse tokens with a lower number; for the others, answer in turn, then so."""

    def make(witness):
        left = iter(before)

        def answer(ctx, request):
            sent = request.headers.get("Authorization", "token-0")
            if int(sent.rpartition("-")[2]) < number:
                return NO
            return next(left, then)

        return [answer]

    return make


def raised(status):
    """Raise for the status of an answer, as a middleware may."""

    def answer(ctx, request):
        url = request.full_url()
        info = aiohttp.RequestInfo(url, request.method, request.headers, url)
        raise aiohttp.ClientResponseError(info, (), status=status, message="no")

    return answer


CUT = aiohttp.ServerDisconnectedError
ANSWERS = {
    "fine": valid_from(1),
    "first is refused": valid_from(2),
    "each is refused": valid_from(99),
    "403": [(403, b"not you")],
    "503, fine": valid_from(1, 503),
    "503": [503],
    "cut, fine": valid_from(1, CUT),
    "refused, then cut": valid_from(2, CUT),
    "refused, then 503": valid_from(2, 503),
    "refused, then 404": valid_from(2, then=(404, b"gone")),
    "raises 401, fine": [raised(401), FINE],
    "raises 401": [raised(401)],
    "raises 503, fine": [raised(503), FINE],
    "503, refused, fine": [503, NO, FINE],
    "silence": [after(60.0)],
    "slow, refused": [after(1.0, NO), after(1.0, FINE)],
}
"""By name: the answers of the server."""

FETCHES = {
    "fails once": tokens(LookupError),
    "is cut once": tokens(CUT),
    "is cut": tokens(*[CUT] * 9),
    "fails the second time": tokens(None, ConnectionResetError),
    "times out": tokens(TimeoutError),
    "gives no text": tokens(b"token-1"),
    "gives an empty text": tokens(""),
    "gives two lines": tokens("token\r\n-1"),
    "cancels itself": cancelling,
    "is a plain function": plain_function,
    "hangs once": hanging,
}
"""By name: fetches that fail."""

LATE = {"timeout": aiohttp.ClientTimeout(total=0.5)}
CROWDS = {
    "three at once": (Ask(), Ask(), Ask()),
    "two in turn": (Ask(), Ask(2.5)),
    "second during the fetch": (Ask(), Ask(0.5)),
    "deadline of the second": (Ask(), Ask(options=LATE)),
    "deadline of the only one": (Ask(options=LATE),),
    "first is cancelled": (Ask(cancelled=0.5), Ask(), Ask(0.75)),
    "second is cancelled": (Ask(), Ask(cancelled=0.5), Ask()),
    "all are cancelled": tuple(Ask(cancelled=0.5) for _ in range(3)),
    "second is cancelled at its turn": (Ask(cancels=1), Ask(), Ask()),
}
"""By name: when calls are made, and given up."""

STEPS = {
    "in the fetch": Ask(cancelled=0.5),
    "in the request": Ask(cancelled=1.5),
    "in the second fetch": Ask(cancelled=2.5),
    "in the second request": Ask(cancelled=3.5),
    "at the end of the fetch": Ask(cancelled=1.0),
    "at the deadline in the second fetch": Ask(
        options={"timeout": aiohttp.ClientTimeout(total=2.5)}
    ),
    "at the deadline in the second request": Ask(
        options={"timeout": aiohttp.ClientTimeout(total=3.5)}
    ),
}
"""By name: when the one call is given up."""


def asking(method="GET", **options):
    return Ask(method=method, options=options)


REQUESTS = {
    "POST of bytes": asking("POST", data=b"body"),
    "PUT of JSON": asking("PUT", json={"a": 1}),
    "PUT of a generator": asking("PUT", make=generated),
    "PUT of a factory": asking("PUT", data=lambda: b"made"),
    "PUT of a bytearray": asking("PUT", make=lambda: bytearray(b"body")),
    "own Authorization": asking(headers={"authorization": "mine-0"}),
    "another server": Ask(path="http://other.test/orders"),
    "credentials in the URL": Ask(path="http://me:pw@shop.test/orders"),
    "raise_for_status": asking(raise_for_status=True),
    "without retry": Ask(block={"retry": RetryConfig.no_retry()}),
    "time of a block": Ask(block={"response_timeout": 1.5}),
}
"""By name."""

SETTINGS = {
    "a bare token": {"scheme": None},
    "a header of its own": {"header": "X-Key", "scheme": None},
    "on 403 too": {"on": [401, 403]},
    "for a named host": {"hosts": [BASE]},
    "for another host": {"hosts": ["http://other.test"]},
}
"""By name: settings of the client."""


def with_key(made):
    return (
        made,
        retrying(SOON),
        plain(IdempotencyKeyClient.new_decorator(key=lambda ctx, request: "key-1")),
    )


async def group(witness, stack):
    return EndpointGroup.of(
        "http://shop.test",
        "http://shop.example",
        selection=EndpointSelectionStrategy.round_robin(),
    )


MAIN = ("alone", "retried", "breaker inside", "around all attempts", "hedged")
SOME = (
    "fine",
    "first is refused",
    "each is refused",
    "503, fine",
    "refused, then cut",
    "refused, then 503",
    "raises 401, fine",
    "503, refused, fine",
)
"""Answers that all chains meet; the others are for the main ones."""

STORIES = {
    **{
        f"{chain}: {name}": served(*parts, answers=answers)
        for chain, parts in chains(tokens()).items()
        for name, answers in ANSWERS.items()
        if chain in MAIN or name in SOME
    },
    **{
        f"{chain}: fetch {name}": served(*parts, answers=[FINE])
        for name, made in FETCHES.items()
        for chain, parts in chains(made).items()
        if chain in MAIN
    },
    **{
        f"{chain}: {crowd}: {answer}": served(
            *parts, answers=ANSWERS[answer], asks=asks
        )
        for chain, parts in chains(tokens()).items()
        if chain in {"alone", "retried", "limited outside", "around all attempts"}
        for crowd, asks in CROWDS.items()
        for answer in ("fine", "first is refused")
    },
    **{
        f"{chain}: three at once, fetch {name}": served(
            *parts, answers=[FINE], asks=CROWDS["three at once"]
        )
        for name, made in FETCHES.items()
        for chain, parts in chains(made).items()
        if chain in {"alone", "retried"}
    },
    **{
        f"{chain}: cancelled {step}": served(
            *parts, answers=ANSWERS["slow, refused"], asks=(ask,)
        )
        for chain, parts in chains(tokens()).items()
        for step, ask in STEPS.items()
    },
    **{
        f"{chain}: {name}: {answer}": served(
            *parts, answers=ANSWERS[answer], asks=(ask,)
        )
        for chain, parts in chains(tokens()).items()
        if chain in {"alone", "retried"}
        for name, ask in REQUESTS.items()
        for answer in ("first is refused", "raises 401, fine")
        if chain == "retried" or answer == "first is refused"
    },
    **{
        f"{chain}: {name}: {answer}": served(*parts, answers=ANSWERS[answer])
        for name, settings in SETTINGS.items()
        for chain, parts in chains(tokens(**settings)).items()
        if chain in {"alone", "retried"}
        for answer in ("fine", "slow, refused", "403")
    },
    **{
        f"with a key: {name}: {answer}": served(
            *with_key(tokens()), answers=ANSWERS[answer], asks=(ask,)
        )
        for name, ask in REQUESTS.items()
        for answer in ("first is refused", "503, refused, fine")
        if name.startswith("P")
    },
    **{
        f"{chain}: endpoints: {answer}": served(
            *parts, answers=ANSWERS[answer], asks=CROWDS["two in turn"], base=group
        )
        for chain, parts in chains(tokens()).items()
        for answer in ("fine", "slow, refused", "503, refused, fine")
        if chain not in {"buffered", "watched"}
    },
}
"""By name: functions that tell the story, in virtual time."""
