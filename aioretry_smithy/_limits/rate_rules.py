"""Say when a request may go out: by tokens, or by headers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from .._call.outcome import headers_of
from .._clock import NEAR, chance, loop_time, wall_clock
from .._failures.hints import RaisedAnswer, most_jitter, retry_after, timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import aiohttp
    from multidict import MultiMapping

    from .rate_limit import RateLimit

    Reply: TypeAlias = aiohttp.ClientResponse | RaisedAnswer
    """The answer of a server, as a response or as an exception raised for it."""


class RatePermit:
    """The permit of a request at a rate limit: it learns how the request ended."""

    __slots__ = ()

    def learn(self, answer: Reply) -> None:
        """Learn from an answer."""

    def lose(self) -> None:
        """Settle the permit of a request without an answer."""

    def give_back(self) -> None:
        """Take the permit back, for the requests in line behind its request."""

    @property
    def charges(self) -> Iterable[tuple[RateLimit, Charge]]:
        """Pairs of charges that may be corrected, and limits."""
        return ()


class Bucket(RatePermit):
    """A token bucket, known by the time at which it will be full.

    Args:
        interval: Seconds in which a token comes.
        burst: The tokens that it holds when it is full.
    """

    __slots__ = ("_full_at", "_interval", "_slack", "burst", "wake")

    burst: float

    wake: Callable[[], None]
    """Called where tokens come back."""

    def __init__(self, interval: float, burst: float) -> None:
        self.burst = burst
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._full_at = -math.inf

    def turn(self, now: float, cost: float) -> float:
        """Return when a request at the head of the queue may go out."""
        return self.forecast(now, cost, 0.0)

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return *now*: in a bucket each waiting request has its own time."""
        return now

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return when there are tokens for a request, and for the requests *ahead*."""
        full_at = max(self._full_at, now) + ahead * self._interval
        return max(now, full_at - (self.burst - cost) * self._interval)

    def take(self, now: float, cost: float) -> Charge:
        """Take tokens; the charge may be corrected later."""
        self._spend(now, cost)
        return Charge(self, cost)

    take_early = take

    def try_take(self, now: float) -> Bucket | None:
        """Let a request of cost 1 go out, if its turn has come."""
        if max(self._full_at, now) - self._slack > now + NEAR:
            return None
        self._spend(now, 1.0)
        return self

    def refund(self, tokens: float) -> None:
        """Take tokens back, or some more where the figure is negative."""
        if tokens < 0:
            # It may be in debt then.
            self._spend(loop_time(), -tokens)
        elif tokens > 0:
            # A full bucket holds no more: what is over is lost with the next request.
            self._full_at -= tokens * self._interval
            self.wake()

    def _spend(self, now: float, tokens: float) -> None:
        self._full_at = max(self._full_at, now) + tokens * self._interval


class Charge(RatePermit):
    """The turn of a request at a token bucket, and what it was charged for."""

    __slots__ = ("_bucket", "_paid")

    def __init__(self, bucket: Bucket, cost: float) -> None:
        self._bucket = bucket
        self._paid = cost

    def settle(self, figure: float) -> None:
        """Let the request have cost *figure* in place of what was estimated."""
        paid, self._paid = self._paid, figure
        self._bucket.refund(paid - figure)

    def give_back(self) -> None:
        """Refund the tokens of a request that was not sent."""
        self.settle(0.0)


_THROTTLING = {403, 429}
"""The statuses whose ``Retry-After`` is that of a rate; GitHub answers with a 403."""

_UNIX_TIME = 1e9
"""Seconds above which a reset is a time, and not a delay."""

_KINDS = "", "-Requests", "-Tokens"
"""What the names of headers end with, by what is limited."""

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?"
# As Go writes durations: 6m0s, 120ms, 1h2.5s.
_PART = re.compile(rf"({_AMOUNT})(ms|us|[dhms])", re.ASCII)
_DURATION = re.compile(rf"(?:{_AMOUNT}(?:ms|us|[dhms]))+", re.ASCII)

_DATE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)",
    re.ASCII | re.IGNORECASE,
)

_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,9})?", re.ASCII)

# RFC 9651: items, each with parameters; a string may have commas in it.
_ITEM = re.compile(
    r"""[ \t]*("(?:[^"\\]|\\.)*"|[^",;\s]+)   # the name of a policy
    ((?:[ \t]*;[ \t]*[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^",;\s]*))?)*)
    [ \t]*(?:,|$)""",
    re.ASCII | re.VERBOSE,
)
_PARAMETER = re.compile(r";[ \t]*([a-z*][a-z0-9_.*-]*)=([^\";\s]+)", re.ASCII)


def seconds_to_reset(status: int, headers: MultiMapping[str]) -> float | None:
    """Return for how many seconds nothing is left; None where something is, or may be.

    >>> from multidict import CIMultiDict
    >>> seconds_to_reset(200, CIMultiDict({"RateLimit": '"default";r=0;t=7'}))
    7.0
    """
    if status in _THROTTLING:
        seconds = retry_after(headers)
        if seconds is not None:
            return seconds
    return max((*_of_draft(headers), *_of_custom(headers)), default=None)


def _of_draft(headers: MultiMapping[str]) -> Iterator[float]:
    """Yield the resets of policies with nothing left."""
    windows = _policies(_whole(headers, "RateLimit-Policy"))
    for name, parameters in _policies(_whole(headers, "RateLimit")).items():
        remaining = _number(parameters.get("r"))
        # Where the reset is left out, it is at the end of the window.
        window = windows.get(name, {}).get("w")
        reset = _number(parameters.get("t", window))
        if remaining is not None and remaining <= 0 and reset is not None:
            yield max(0.0, reset)


def _of_custom(headers: MultiMapping[str]) -> Iterator[float]:
    """Yield the resets of used-up quotas: requests, tokens, or both together."""
    for kind in _KINDS:
        remaining = _number(headers.get(f"X-RateLimit-Remaining{kind}"))
        if remaining is not None and remaining <= 0:
            reset = _reset(headers.get(f"X-RateLimit-Reset{kind}", "").strip(), headers)
            if reset is not None:
                yield max(0.0, reset)


def _reset(text: str, headers: MultiMapping[str]) -> float | None:
    """Return in how many seconds a reset is, in whichever form; None of no form."""
    seconds = _number(text)
    if seconds is not None and seconds <= _UNIX_TIME:
        return seconds
    if _DURATION.fullmatch(text):
        return sum(float(many) * _UNITS[unit] for many, unit in _PART.findall(text))
    now = wall_clock()
    then = _moment(text, now) if seconds is None else seconds
    if then is None:
        return None
    sent_at = timestamp(headers.get("Date", ""), now)
    return then - (now if sent_at is None else sent_at)


def _moment(text: str, now: float) -> float | None:
    """Return the Unix time of a date: one of HTTP, or one of RFC 3339."""
    if not _DATE.fullmatch(text):
        return timestamp(text, now)
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        return None


def _whole(headers: MultiMapping[str], name: str) -> str:
    """Return the value of a list that may be split over several headers."""
    return ", ".join(headers.getall(name, ()))


def _policies(value: str) -> dict[str, Mapping[str, str]]:
    """Return the parameters of each policy; nothing where the value is not a list."""
    found: dict[str, Mapping[str, str]] = {}
    at = 0
    while at < len(value):
        item = _ITEM.match(value, at)
        if item is None:
            return {}
        found[item[1]] = dict(_PARAMETER.findall(item[2]))
        at = item.end()
    return found


def _number(text: str | None) -> float | None:
    return float(text) if text and _NUMBER.fullmatch(text.strip()) else None


class Scatter:
    """Spreads the requests that wait for a reset over a window, in order.

    Each is by chance in a window behind it. All of them in the very moment of a reset
    would be the next burst, in step with those of other processes.
    """

    __slots__ = ("_begins_at", "_ends_at", "_next")

    def __init__(self) -> None:
        self._begins_at = self._ends_at = -math.inf
        # When the first of those that wait goes out; None while that is not drawn.
        self._next: float | None = None

    def begin(self, at: float, waited: float) -> None:
        """Begin a window at a reset for which they wait so many seconds in all."""
        if at >= self._begins_at:
            self._begins_at = at
            self._ends_at = max(self._ends_at, at + most_jitter(waited))
            self._next = None

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return when the first waiting request goes out, once it is admissible.

        Args:
            now: The time.
            waiting: How many wait.
            patience: The seconds after which the first of them would give up. Half of
                that is left to the request.
        """
        if not self._begins_at - NEAR <= now < self._ends_at:
            return now
        if self._next is None:
            window = min(self._ends_at - now, patience / 2)
            # The least of so many numbers by chance.
            self._next = now + window * (1 - (1 - chance()) ** (1 / waiting))
        return self._next

    def let_go(self) -> None:
        """Note that the first waiting request has gone out."""
        self._next = None


_NOTHING: Final = -math.inf, -math.inf


class Resets(RatePermit):
    """Keep requests back until the time that a server named, or for the longest wait.

    Then those that wait go out one by one, within a fifth of the wait, or a second.

    After a wait that was cut one request goes out, the probe, and the others wait for
    what it learns: for the longest wait once more, then another probe goes out. What a
    request costs does not matter: the server counts.

    Args:
        max_wait: The longest wait in seconds.
    """

    __slots__ = (
        "_during_probe",
        "_is_probed",
        "_max_wait",
        "_probe_at",
        "_reset_at",
        "_round",
        "_scatter",
        "wake",
    )

    wake: Callable[[], None]
    """Called where requests may go out sooner than it has said."""

    def __init__(self, max_wait: float) -> None:
        self._max_wait = max_wait
        # Not infinite until the answer to a probe says more.
        self._reset_at = self._probe_at = -math.inf
        self._is_probed = False
        # The same of what other answers said while the probe was out.
        self._during_probe = _NOTHING
        self._scatter = Scatter()
        # The number that all probes have until one of them is answered.
        self._round = 1

    def turn(self, now: float, cost: float) -> float:
        """Return when a request may go out unasked."""
        return max(now, self._reset_at, self._probe_at)

    def next_turn(self, now: float, waiting: int, patience: float) -> float:
        """Return when the first waiting request goes out, once it is admissible."""
        return self._scatter.next_turn(now, waiting, patience)

    def forecast(self, now: float, cost: float, ahead: float) -> float:
        """Return the time before which no request goes out for sure."""
        # The probe may be answered at any moment.
        return now if self._is_probed else self.turn(now, cost)

    def take(self, now: float, cost: float) -> Resets | Probe:
        """Admit a request, which may become the probe."""
        self._scatter.let_go()
        if self._probe_at == -math.inf:
            # The server does the counting.
            return self
        self._probe_at = now + self._max_wait
        if not self._is_probed:
            self._is_probed, self._during_probe = True, _NOTHING
        return Probe(self, self._round)

    def take_early(self, now: float, cost: float) -> Resets:
        """Admit a request of a dry run, without waiting and without probing."""
        return self

    def try_take(self, now: float) -> Resets | Probe | None:
        """Let a request go out, if it need not wait."""
        return self.take(now, 1.0) if self.turn(now, 1.0) <= now + NEAR else None

    def learn(self, answer: Reply) -> None:
        """Close the limit if the answer reports that no requests are left."""
        seconds = seconds_to_reset(answer.status, headers_of(answer))
        if seconds is not None:
            self.close(loop_time(), seconds)

    def close(self, now: float, seconds: float) -> None:
        """Let no request go out for some seconds; earlier calls hold too."""
        waits = min(seconds, self._max_wait)
        then, reset_at, probe_at = now + waits, *self._during_probe
        if waits < seconds:
            self._probe_at = max(self._probe_at, then)
            self._during_probe = reset_at, max(probe_at, then)
        else:
            self._reset_at = max(self._reset_at, then)
            self._during_probe = max(reset_at, then), probe_at
        self._scatter.begin(then, waits)

    def open(self, probed: int) -> bool:
        """End the probe: open the limit, but keep waits announced during the probe.

        Return False if a probe has been answered before.
        """
        if probed != self._round:
            return False
        self._round += 1
        self._reset_at, self._probe_at = self._during_probe
        self._is_probed = False
        if self._during_probe == _NOTHING:
            self._scatter.begin(loop_time(), self._max_wait)
        return True

    def lose_probe(self, probed: int) -> None:
        """Let another probe go out, unless one has been answered before."""
        if probed == self._round:
            self._probe_at, self._is_probed = loop_time(), False
            self.wake()


@dataclass(frozen=True, slots=True, eq=False)
class Probe(RatePermit):
    """The permit of the one request that goes out after a wait that was cut."""

    _resets: Resets

    _round: int
    """The number of the round that the probe ends."""

    def learn(self, answer: Reply) -> None:
        """Reopen or close the limit as the answer to the probe reports."""
        is_open = self._resets.open(self._round)
        self._resets.learn(answer)
        if is_open:
            self._resets.wake()

    def lose(self) -> None:
        """End the probe without an answer: the next request is the next probe."""
        self._resets.lose_probe(self._round)

    give_back = lose
