"""Calls to groups of endpoints that fail, are left alone, and come back."""

import aiohttp
from story_calls import generated
from story_chains import breaking, logging_with, one_breaker, plain, retrying
from story_decorators import ContentStrategy, watching
from story_groups import GROUPS, SLOW_GROUPS, looked_at, not_connected, settings_of
from story_limits import SOON, places, turns
from story_service import BASE, Ask, after, served
from story_text import LimiterWitness, told_context, told_error

from aioretry_smithy import (
    CircuitBreakerStrategy,
    CircuitState,
    Endpoint,
    EndpointGroup,
    HedgingClient,
    LoadBalancingClient,
    OutlierDetection,
    RateLimit,
    ResumingClient,
    RetryConfig,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

CUT = aiohttp.ServerDisconnectedError
HINT = {"Retry-After": "2"}


def answers(**by_name):
    """Name the answers of servers; those that are not named answer 200."""
    return by_name


ANSWERS = {
    "all fine": answers(),
    "a busy": answers(a=[503]),
    "a busy once": answers(a=[503, 200]),
    "a cut": answers(a=[CUT]),
    "a refused": answers(a=[not_connected]),
    "a refused twice": answers(a=[not_connected, not_connected, 200]),
    "a silent": answers(a=[after(60.0)]),
    "a slow": answers(a=[after(0.75)], b=[after(0.5)], c=[after(0.25)]),
    "a slowly busy": answers(a=[after(0.75, 503)], b=[after(0.5)]),
    "a asks for 2 s": answers(a=[(503, HINT, b"later"), 200]),
    "a throttles": answers(a=[(429, HINT, b"later"), 200]),
    "a and b busy": answers(a=[503], b=[503]),
    "all busy": answers(a=[503], b=[503], c=[503], shop=[503]),
    "all cut": answers(a=[CUT], b=[CUT], c=[CUT], shop=[CUT]),
    "all refused": {name: [not_connected] for name in ("a", "b", "c", "shop")},
    "a says 404": answers(a=[(404, b"gone")]),
}
"""By name."""


def chains(*inside):
    return {
        "alone": inside,
        "retried": (*inside, retrying(SOON, LimiterWitness), logging_with()),
        "broken per endpoint": (
            breaking(minimum_request_threshold=1, failure_rate_threshold=0.1),
            *inside,
            retrying(SOON),
            logging_with(),
        ),
        "one circuit": (one_breaker(CircuitState.HALF_OPEN), retrying(SOON)),
        "limited": (
            places(),
            turns(lambda: RateLimit(1e6)),
            breaking(),
            *inside,
            retrying(SOON),
        ),
        "watched": (watching("inside"), *inside, retrying(SOON), watching("outside")),
        "attempts of 0.4 s": (breaking(), *inside, retrying(SOON, attempt_timeout=0.4)),
        "hedged": (*inside, plain(HedgingClient.new_decorator(0.25)), retrying(SOON)),
        "hedged alone": (*inside, plain(HedgingClient.new_decorator(0.25))),
        "content strategy": (*inside, retrying(ContentStrategy)),
        "buffered": (*inside, retrying(SOON, buffer_response=True)),
        "resumed": (*inside, retrying(SOON), plain(ResumingClient.new_decorator())),
        "around all attempts": (retrying(SOON), *inside),
    }


IN_TURN = tuple(Ask(at) for at in (0.0, 0.5, 1.0, 5.5, 6.5, 20.0))
LATE = {"timeout": aiohttp.ClientTimeout(total=0.5)}
CROWDS = {
    "three at once": (Ask(), Ask(), Ask()),
    "in turn": IN_TURN,
    "past the deadline": (Ask(options=LATE), Ask()),
    "first is cancelled": (Ask(cancelled=0.5), Ask(), Ask()),
    "all are cancelled": tuple(Ask(cancelled=0.5) for _ in range(3)),
    "cancelled by another": (Ask(cancels=1), Ask(), Ask()),
    "POST": (Ask(method="POST"), Ask(method="POST")),
    "PUT of a generator": (Ask(method="PUT", options={"make": generated}),),
}
"""By name: when calls are made, and given up."""

PINS = {
    "a": {"endpoint": "http://a.test"},
    "b": {"endpoint": "http://b.test"},
    "none of the group": {"endpoint": "http://other.test"},
    "an object": {"endpoint": Endpoint("http://b.test")},
    "b, without retry": {"endpoint": "http://b.test", "retry": RetryConfig.no_retry()},
}
"""By name: options that name an endpoint."""

PATHS = {
    "relative": "orders?where=here",
    "of an endpoint": "http://b.test/orders",
    "of another server": "http://other.test/orders",
    "empty": "",
    "with a fragment": "/orders?a=1%202#part",
}
"""By name."""


class Judging(CircuitBreakerStrategy):
    """Finds failures in statuses of 4xx, and notes what it is asked."""

    def __init__(self, witness):
        self._note = witness.note

    def should_report_as_success(self, ctx, cause):
        self._note("judges", told_context(ctx), told_error(cause))
        status = ctx.log.response_status
        return cause is None and (status is None or status < 400)


class JudgingLater(Judging):
    async def should_report_as_success(self, ctx, cause):
        return super().should_report_as_success(ctx, cause)


class JudgingNot(Judging):
    def should_report_as_success(self, ctx, cause):
        super().should_report_as_success(ctx, cause)


class JudgingBadly(Judging):
    def should_report_as_success(self, ctx, cause):
        super().should_report_as_success(ctx, cause)
        raise LookupError("strategy")


class JudgingBadlyLater(Judging):
    async def should_report_as_success(self, ctx, cause):
        super().should_report_as_success(ctx, cause)
        raise LookupError("strategy")


def judged(strategy):
    """Make a group of which a strategy of the user's says what a failure is."""

    async def base(witness, stack):
        detection = OutlierDetection(consecutive_failures=1, strategy=strategy(witness))
        made = EndpointGroup.of(
            "http://a.test",
            "http://b.test",
            **settings_of(witness, {"outlier_detection": detection}),
        )
        return looked_at(witness, made)

    return base


def balancing(service=None):
    """Put the client of a group in place by hand, as for the session of others."""

    def part(witness):
        made = EndpointGroup.of(
            "http://a.test/v1", "http://b.test/v2", **settings_of(witness, {})
        )
        looked_at(witness, made)
        return LoadBalancingClient.new_decorator(made, service=service)

    return part


@client_decorator
async def answering(delegate, ctx, request):
    """Answer on this side."""
    return new_response(request, 503, body=b"not sent")


@client_decorator
async def unable(delegate, ctx, request):
    raise LookupError("inside")


@client_decorator
async def two_sends(delegate, ctx, request):
    (await delegate.execute(ctx, request)).release()
    return await delegate.execute(ctx, request)


def injecting(*faults):
    return plain(FaultInjectingClient.new_decorator(*faults, random=lambda: 0.0))


INSIDE = {
    "answered": (plain(answering),),
    "raising": (plain(unable),),
    "sent twice": (plain(two_sends),),
    "open circuit": (one_breaker(CircuitState.FORCED_OPEN),),
    "no place": (places(1, max_pending=0),),
    "injected 503": (injecting(InjectedFault.status(503)),),
    "injected cut": (injecting(InjectedFault.cut_body(after=1)),),
    "injected hang": (injecting(InjectedFault.hang()),),
}
"""By name: what stands inside of the balancing client."""

MAIN = ("alone", "retried", "hedged")
SOME = (
    "a busy",
    "a busy once",
    "a refused",
    "a asks for 2 s",
    "a slow",
    "all busy",
    "all refused",
)
"""Answers that all groups, and all chains, meet."""

SELDOM = ("hedged alone", "buffered", "resumed", "around all attempts")
"""Chains that meet no others."""

STORIES = {
    **{
        f"{group}: {chain}: {name}": served(
            *parts, answers=ANSWERS[name], asks=IN_TURN, base=base
        )
        for group, base in GROUPS.items()
        for chain, parts in chains().items()
        for name in (SOME if chain == "retried" else SOME[:2])
        if chain in {"alone", "retried"}
    },
    **{
        f"{chain}: {name}": served(
            *parts,
            answers=given_,
            asks=CROWDS["three at once"],
            base=GROUPS["in order"],
        )
        for chain, parts in chains().items()
        for name, given_ in ANSWERS.items()
        if chain not in SELDOM or name in SOME
    },
    **{
        f"{chain}: {crowd}: {name}": served(
            *parts, answers=ANSWERS[name], asks=asks, base=GROUPS["in order"]
        )
        for chain, parts in chains().items()
        for crowd, asks in CROWDS.items()
        for name in ("a slow", "a slowly busy")
        if chain in {*MAIN, "limited", "attempts of 0.4 s"}
    },
    **{
        f"{group}: {chain}: {crowd}": served(
            *parts, answers=ANSWERS["a busy once"], asks=CROWDS[crowd], base=base
        )
        for group, base in SLOW_GROUPS.items()
        for chain, parts in chains().items()
        for crowd in ("in turn", "three at once", "first is cancelled")
        if chain == "retried" or (chain, crowd) == ("alone", "in turn")
    },
    **{
        f"pinned to {pin}: {group}: {name}": served(
            *chains()["retried"],
            answers=ANSWERS[name],
            asks=(Ask(block=block), Ask(at=2.5)),
            base=base,
        )
        for pin, block in PINS.items()
        for group, base in {**GROUPS, **SLOW_GROUPS}.items()
        for name in ("all fine", "a busy")
        if group
        in {"in order", "or else", "set after a second", "emptied", "never set"}
    },
    **{
        f"{group}: {path}": served(
            *chains()["retried"], answers=ANSWERS["a busy"], asks=asks, base=base
        )
        for group, base in GROUPS.items()
        if group in {"in order", "with weights", "or else", "addresses"}
        for path, url in PATHS.items()
        for asks in [(Ask(path=url), Ask(1.5, path=url))]
    },
    **{
        f"judged by {strategy.__name__}: {chain}: {name}": served(
            *parts, answers=ANSWERS[name], asks=IN_TURN, base=judged(strategy)
        )
        for strategy in (
            Judging,
            JudgingLater,
            JudgingNot,
            JudgingBadly,
            JudgingBadlyLater,
        )
        for chain, parts in chains().items()
        for name in ("all fine", "a says 404", "a cut")
        if chain in MAIN
    },
    **{
        f"placed by hand{where}: {chain}: {name}": served(
            *parts,
            answers=ANSWERS[name],
            asks=(Ask(), Ask(path=f"{BASE}/other"), Ask(6.0)),
        )
        for where, service in {"": None, ", for a service": BASE}.items()
        for chain, parts in chains(balancing(service)).items()
        for name in ("all fine", "a busy", "all cut")
        if chain in {*MAIN, "broken per endpoint"}
    },
    **{
        f"{inner}: {chain}": served(
            *inside, *parts, asks=CROWDS["in turn"], base=GROUPS["in order"]
        )
        for inner, inside in INSIDE.items()
        for chain, parts in chains().items()
        if chain in MAIN
    },
}
"""By name: functions that tell the story, in virtual time."""
