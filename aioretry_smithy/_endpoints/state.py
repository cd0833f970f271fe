"""The state of an endpoint: load, latency, health."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from .. import _checks as check
from .._breaker.state import SlidingWindow
from .._breaker.strategy import CircuitBreakerStrategy
from .._call.servers import Rounds
from .._errors import bad_argument, is_finite
from .._request.endpoint import AddressMiddleware, Endpoint, joined, keep, origin_key
from .._values import extensible

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiohttp
    from yarl import URL

    from .discovery import Listed
    from .group import EndpointGroup
    from .roster import Roster


_LARGEST: Final = 600.0
"""The largest exponent by which estimates differ from what was noted."""


class LatencyEstimate:
    """An average of the latencies of an endpoint, in which new ones count more.

    It rises at once, and falls by the factor ``e`` in each *decay* seconds, also while
    nobody asks.

    Args:
        decay: Seconds in which it falls to ``1 / e``, > 0.
    """

    __slots__ = ("_decay", "_noted_at", "_seconds")

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._seconds = 0.0
        self._noted_at = -math.inf

    @property
    def is_known(self) -> bool:
        """Whether there was an answer yet."""
        return self._noted_at > -math.inf

    def at(self, now: float) -> float:
        """Return the estimate in seconds; 0.0 before the first answer."""
        return self._seconds * self._weight(now)

    def _weight(self, now: float) -> float:
        """Return what counts of the estimate at a time, perhaps before the answer."""
        exponent = (self._noted_at - now) / self._decay
        if abs(exponent) > _LARGEST:
            # What a float can hold: old estimates are still told apart.
            exponent = math.copysign(_LARGEST, exponent)
        return math.exp(exponent)

    def note(self, took: float, now: float) -> None:
        """Learn from an answer: a long time counts in full, a short one by its age."""
        weight = self._weight(now)
        average = self._seconds * weight + took * (1.0 - weight)
        self._seconds, self._noted_at = max(took, average), now

    def note_refusal(self, took: float, now: float) -> None:
        """Learn from an answer that the request was wrong: that is quick, but no work.

        The estimate does not fall; it is as it was after the last answer.
        """
        self.restart(max(took, self._seconds), now)

    def note_at_least(self, took: float, now: float) -> None:
        """Learn from a request that was given up after so long: it may only raise."""
        if took > self.at(now):
            self.restart(took, now)

    def restart(self, took: float, now: float) -> None:
        """Replace the estimate by a single latency."""
        self._seconds, self._noted_at = took, now


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OutlierDetection:
    """The settings for when an endpoint of a group is ejected, and for how long.

    An endpoint is *ejected* by failures in a row, refused connections, or a rate of
    failures; statuses of 5xx and exceptions count. It is out for
    ``min(max_ejection_time, ejection_time * 2 ** n)`` seconds, where n trials have
    failed, times 1 to 1.25. Then one request tries it. Requests that began before it
    was ejected say nothing any more. After Envoy's outlier detection.

    Args:
        consecutive_failures: Failures in a row, >= 1.
        connect_failures: Failures in a row to connect, >= 1; a connection that is not
            made within the timeout of an attempt is one.
        failure_rate_threshold: The share of failures that is too much, from 0 to 1.
        minimum_request_threshold: Requests before the share counts, >= 1.
        counter_sliding_window: Seconds in which they are counted, > 0.
        ejection_time: Seconds that it is out at first, > 0.
        max_ejection_time: The most seconds, >= *ejection_time*.
        max_ejected: The share of endpoints that may be out at once, from 0 to 1; at
            least one of two or more, never all of them.
        strategy: Says what a failure is; None for
            :meth:`CircuitBreakerStrategy.on_server_error_status`.

    Raises:
        ValueError: An argument is not as described.

    >>> OutlierDetection(consecutive_failures=3).ejection_time
    5.0
    """

    consecutive_failures: int = 5
    connect_failures: int = 1
    failure_rate_threshold: float = 0.5
    minimum_request_threshold: int = 10
    counter_sliding_window: float = 20.0
    ejection_time: float = 5.0
    max_ejection_time: float = 60.0
    max_ejected: float = 0.5
    strategy: CircuitBreakerStrategy | None = None

    def __post_init__(self) -> None:
        check.integer("consecutive_failures", self.consecutive_failures, 1)
        check.integer("connect_failures", self.connect_failures, 1)
        check.integer("minimum_request_threshold", self.minimum_request_threshold, 1)
        check.positive("counter_sliding_window", self.counter_sliding_window)
        check.positive("ejection_time", self.ejection_time)
        check.positive("max_ejection_time", self.max_ejection_time)
        for name in ("failure_rate_threshold", "max_ejected"):
            share = getattr(self, name)
            if not (is_finite(share) and 0 <= share <= 1):
                raise bad_argument(name, share, "from 0 to 1")
        if self.max_ejection_time < self.ejection_time:
            expected = f">= ejection_time, {self.ejection_time}"
            raise bad_argument("max_ejection_time", self.max_ejection_time, expected)
        check.kind("strategy", self.strategy, CircuitBreakerStrategy, or_none=True)

    def __repr__(self) -> str:
        given = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(_USUAL, each.name)
        )
        return f"OutlierDetection({', '.join(given)})"

    def most_ejected(self, number: int) -> int:
        """Return how many of a number of endpoints may be out at once.

        >>> [OutlierDetection().most_ejected(number) for number in (1, 2, 3, 4)]
        [0, 1, 1, 2]
        """
        if number < 2 or not self.max_ejected:
            return 0
        return min(number - 1, max(1, int(self.max_ejected * number)))

    def seconds_out(self, times: int, dice: float) -> float:
        """Return how long an endpoint is out for the n-th time, from 1.

        Args:
            times: How often it was ejected since it was well.
            dice: A number in [0, 1).
        """
        doublings = min(times - 1, 60)
        seconds = min(self.max_ejection_time, self.ejection_time * 2.0**doublings)
        return seconds * (1.0 + dice / 4)


_USUAL: Final = OutlierDetection()


class EndpointGroupListener:
    """Receives the events of an endpoint group; override the methods you need.

    The methods are plain. What they raise is logged, and changes nothing.

    >>> class Bell(EndpointGroupListener):
    ...     def on_endpoints_changed(self, group, endpoints):
    ...         print(f"{group.name} has {len(endpoints)} endpoints")
    """

    def on_endpoints_changed(
        self, group: EndpointGroup, endpoints: Sequence[Endpoint]
    ) -> None:
        """Called with the new endpoints after each change of the group."""

    def on_ejected(
        self, group: EndpointGroup, endpoint: Endpoint, reason: str, until: float
    ) -> None:
        """Called on every ejection of an endpoint, including extensions.

        Args:
            group: The group.
            endpoint: The endpoint.
            reason: ``connect_failures``, ``consecutive_failures``, ``failure_rate``,
                ``trial_failed``, ``retry_after``, ``circuit_open`` or ``unhealthy``.
            until: When it may come back, by the event loop's clock; ``inf`` while
                checks of its health fail.
        """

    def on_returned(self, group: EndpointGroup, endpoint: Endpoint) -> None:
        """Called when an endpoint is healthy again."""


UNHEALTHY: Final = "unhealthy"
"""The reason of an endpoint that is out because a check of its health failed."""

NO_CONNECTION: Final = "no connection"
"""How a request does not reach an endpoint that cannot be connected to."""

SILENCE: Final = "silence"
"""How a request does not reach an endpoint that says nothing in time."""


_BUCKETS: Final = 20
"""How many parts the window of a rate has."""


class EndpointState:
    """Shows the load, the latency and the health of one endpoint; read-only for users.

    Args:
        roster: The endpoints of the group.
        endpoint: The endpoint.
    """

    endpoint: Endpoint
    """The endpoint."""

    weight: float
    """The relative share of requests for the endpoint; 0 for none."""

    in_flight: int = 0
    """How many requests are under way, to the end of their bodies."""

    ejected_until: float | None = None
    """The time until which the endpoint is ejected; None while healthy."""

    ejected_for: str | None = None
    """The reason of the ejection; None while not ejected."""

    health: bool | None = None
    """The result of the last health check; None before the first check."""

    rank: int = 0
    """It serves only while none of a lower rank can."""

    is_reserve: bool = False
    """Whether the endpoint serves only while no other one can be reached."""

    unreached: str | None = None
    """The way the last request failed to reach the endpoint; None if answered."""

    left_at: float = 0.0
    """The time when the endpoint left the list, if it did."""

    place: int = 0
    """Its place in the list of the group, from 0."""

    turn: float = 0.0
    """The used share of the endpoint, in a weighted round robin."""

    is_guess: bool = True
    """Whether the latency is a guess: only client errors (4xx) were answered so far."""

    penalty: float = 0.0
    """The least latency, in seconds, after failures; 0 without failures."""

    chance_at: float = -math.inf
    """The time of the next request in spite of the penalty."""

    failures: int = 0
    """Failures since the last success."""

    window: SlidingWindow | None
    """Its successes and failures of late, where outliers are detected."""

    estimate: LatencyEstimate
    """The average of its latencies, without the penalty of a failure."""

    rounds: Rounds
    """Groups the failures of a restart."""

    changed_at: float = -math.inf
    """The time of the last ejection or return."""

    times: int = 0
    """The number of ejections since the endpoint was last healthy."""

    is_set_aside: bool = False
    """Whether the endpoint returns without a trial."""

    trial: object = None
    """The trial request under way; None without a trial."""

    middleware: aiohttp.ClientMiddlewareType | None
    """Connects to the endpoint's address; None if its host name is resolved."""

    origin: tuple[str, str, int | None]
    """The scheme, host and port of the endpoint's URLs."""

    def __init__(self, roster: Roster, endpoint: Endpoint) -> None:
        self.roster = roster
        self.endpoint = endpoint
        self.weight = endpoint.weight
        self.key: str = endpoint.key
        self.origin = origin_key(endpoint.url)
        is_named = endpoint.address is None
        self.middleware = None if is_named else AddressMiddleware(endpoint)
        self.estimate = LatencyEstimate(roster.selection._decay)
        self.window = self.new_window()
        self.rounds = Rounds()
        self._urls: dict[URL, URL] = {}

    def new_window(self) -> SlidingWindow | None:
        """Create the window of successes and failures; None without detection."""
        detection = self.roster.detection
        if detection is None:
            return None
        seconds = detection.counter_sliding_window
        return SlidingWindow(seconds, seconds / _BUCKETS)

    def list_as(self, listed: Listed, place: int) -> None:
        """Update the endpoint from an entry of a new list, and from its position."""
        self.endpoint, self.rank, self.is_reserve = listed
        self.weight, self.place = self.endpoint.weight, place
        if self.weight:
            # With another weight before, its turn may be far away.
            self.turn = min(self.turn, self.roster.turn + 1.0 / self.weight)

    @property
    def latency(self) -> float | None:
        """The estimated latency in seconds; None before the first answer.

        A failure counts as more, until the next success.
        """
        return self.latency_at(self.roster.now()) if self.has_history else None

    def latency_at(self, now: float) -> float:
        """Return the estimated latency in seconds, with the penalty of a failure."""
        return max(self.estimate.at(now), self.penalty)

    @property
    def has_history(self) -> bool:
        """Whether the endpoint has answered or failed yet."""
        return self.estimate.is_known or self.penalty > 0.0

    @property
    def reason(self) -> str | None:
        """The reason why the endpoint gets no requests; None while healthy."""
        return UNHEALTHY if self.health is False else self.ejected_for

    @property
    def is_out(self) -> bool:
        """Whether the endpoint is ejected, paused, or unhealthy."""
        return self.ejected_until is not None or self.health is False

    @property
    def is_unreachable(self) -> bool:
        """Whether the endpoint refused the last connection, or was silent lately."""
        is_silent = self.unreached == SILENCE and self.ejected_until is not None
        return is_silent or self.unreached == NO_CONNECTION

    @property
    def is_proven(self) -> bool:
        """Whether the endpoint has answered, without a failure since."""
        return self.estimate.is_known and not self.penalty

    def url_of(self, asked: URL) -> URL:
        """Return the URL of *asked* at this endpoint."""
        url = self._urls.get(asked)
        if url is None:
            url = asked if asked.absolute else joined(self.endpoint.url, asked)
            keep(self._urls, asked, url)
        return url

    def end(self) -> None:
        """Count a request, and the body of its response, as over."""
        self.in_flight -= 1

    def __repr__(self) -> str:
        out = "" if self.reason is None else f" out: {self.reason}"
        return f"<EndpointState {self.endpoint} in_flight={self.in_flight}{out}>"
