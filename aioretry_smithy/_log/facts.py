"""Read the facts of a call and, nested in it, of each of its requests."""

from __future__ import annotations

import math
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, cast

from .._call.call import Call, id_of
from .._call.outcome import Request, RetryStopReason
from .._call.recorder import cause_of
from .._call.servers import last_of, route_of
from .._failures.hints import as_headers
from .._failures.kept_cause import KeptCause, NeverPickled
from .._request.request import HttpRequest, RoutedRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from .._call.record import ConnectionTimings, DelaySource, Record
    from .._text.mask import Mask


class LogFacts(NeverPickled):
    """The properties of a :class:`.RequestLog`.

    It has none itself: it reads the state of the call, and changes nothing there.
    """

    __slots__ = ("__weakref__", "_call", "_record")

    def __init__(self, call: Call, record: Record) -> None:
        self._call = call
        self._record = record

    @classmethod
    def _of(cls, call: Call, record: Record) -> Self:
        """Return the log of a call or of one of its requests: the same while alive."""
        log: Self | None = None if record.log_ref is None else record.log_ref()
        if log is None:
            log = cls(call, record)
            record.log_ref = weakref.ref(log)
        return log

    @property
    def request(self) -> HttpRequest:
        """The request without its body; of an attempt, the sent request."""
        request: HttpRequest = self._record.shown_request
        return request

    @property
    def id(self) -> str:
        """The id of the call, in every line, span and note of it; or of the attempt.

        Such as ``k3j7x2qa-17``; of its second attempt ``k3j7x2qa-17.2``.
        """
        of_call, number = id_of(self._call), self._record.number
        return of_call if number is None else f"{of_call}.{number}"

    @property
    def attempt(self) -> int | None:
        """Which attempt of the call this is, from 1; None on the root."""
        return self._record.number

    @property
    def delay(self) -> float | None:
        """Seconds waited after this attempt; on the root, before the first one."""
        return self._record.delay

    @property
    def delay_source(self) -> DelaySource | None:
        """The reason for the :attr:`delay`."""
        return self._record.delay_source

    @property
    def endpoint(self) -> str | None:
        """The endpoint of the request; on the root, the endpoint that answered.

        None where there was no choice.
        """
        route = route_of(self._call, self._record)
        return None if route is None else str(route.endpoint)

    @property
    def connection(self) -> ConnectionTimings | None:
        """The waits for a connection; of a call, those of its last attempt.

        None without :meth:`SessionBuilder.connection_timings`, and where the request
        did not get as far as aiohttp.
        """
        record = last_of(self._call, self._record)
        times, ended = record.connection, record.outcome.ended
        if times is None:
            return None
        return times.shown(self._call.loop.time() if ended is None else ended)

    @property
    def stop_reason(self) -> RetryStopReason | None:
        """Why there was no further attempt (on the root); None after a success."""
        return self._call.stop_reason if self._is_root else None

    @property
    def limiter(self) -> str | None:
        """The limiter that refused a retry, and its level, in words (on the root).

        None unless the :attr:`stop_reason` is ``limiter``; also where a Smithy strategy
        refused, whose words are the :attr:`retry_error`.
        """
        if self.stop_reason is not RetryStopReason.LIMITER:
            return None
        return self._call.limiter

    @property
    def no_retries(self) -> bool:
        """Whether ``AIORETRY_SMITHY_NO_RETRIES`` turned retries off (on the root)."""
        return self._is_root and self._call.defaults.no_retries

    @property
    def retry_error(self) -> Exception | None:
        """The error with which a Smithy strategy refused an attempt (on the root)."""
        error = self._call.retry_error if self._is_root else None
        found = error.get() if isinstance(error, KeptCause) else error
        return cast("Exception | None", found)

    @property
    def started(self) -> float:
        """When the call or the attempt began, in seconds of the event loop's clock."""
        return self._record.started

    @property
    def deadline(self) -> float | None:
        """When the time of the call or attempt runs out, by the event loop's clock."""
        return self._record.deadline

    @property
    def parent(self) -> Self | None:
        """The log of the call whose attempt this is; None on the root."""
        return None if self._is_root else self.root

    @property
    def root(self) -> Self:
        """The log of the whole call."""
        return self if self._is_root else self._of(self._call, self._call)

    @property
    def children(self) -> tuple[Self, ...]:
        """The logs of the attempts, in order; empty where nothing retries."""
        if not self._is_root:
            return ()
        return tuple(self._of(self._call, sent) for sent in self._call.sent)

    @property
    def total_attempts(self) -> int | None:
        """The number of attempts so far (on the root; 1 without a retrying client)."""
        made = len(self._call.sent) + self._call.dropped.count
        return max(1, made) if self._is_root else None

    @property
    def calls(self) -> tuple[Self, ...]:
        """The logs of the calls made inside this attempt, in order, at most 100.

        Where nothing retries, the log of the call has them.
        """
        inside = self._record.calls_inside
        kept = () if inside is None else inside.kept
        return tuple(self._of(call, call) for call in kept)

    @property
    def dropped_calls(self) -> int:
        """How many more calls were made inside, whose logs were not kept."""
        inside = self._record.calls_inside
        return 0 if inside is None else inside.dropped

    @property
    def mask(self) -> Mask:
        """The mask that hides secrets in the views of this log.

        From the moment that a call inside begins, both hide the secrets of each other.
        """
        return self._call.mask

    @property
    def sent(self) -> bool:
        """Whether a server may have seen the request, or one of its attempts.

        False of what an open circuit refuses, a refused connection, and an answer that
        a decorator made. A mock and a :class:`.ScriptedTransport` stand for a server.
        """
        call = self._call
        return call.was_sent_at_all if self._is_root else self._record.was_sent

    @property
    def is_success(self) -> bool:
        """Whether there was a status below 400, or a function's return.

        False if the retry strategy wanted another attempt all the same, such as for an
        error inside a 200; of an attempt, from the moment that the strategy was asked.
        A hedge that was given up because another one won is no failure either.
        """
        return not self._record.outcome.is_unwanted and self._record.ended_well

    @property
    def injected(self) -> bool:
        """Whether the answer or the failure was injected, in place of the server's.

        By a :class:`.FaultInjectingClient`; of a call, whether it ended with such.
        """
        return self._record.outcome.is_injected

    @property
    def is_hedge(self) -> bool:
        """Whether the attempt is a hedge, sent in parallel to a slow attempt."""
        return self._record.is_hedge

    @property
    def superseded(self) -> bool:
        """Whether the request was cancelled, because a different hedge won."""
        race = self._record.race
        return race is not None and race.is_superseded

    @property
    def name(self) -> str:
        """The name of the call in logs, which is its method or that of the function."""
        return str(self._asked.name)

    @property
    def request_method(self) -> str | Any:
        """The method, in upper case; None of a function."""
        return _as_text(self._asked.method)

    @property
    def request_url(self) -> URL | Any:
        """The joined URL, with ``params`` and credentials; None of a function."""
        return self._asked.full_url()

    @property
    def request_headers(self) -> Mapping[str, str] | Any:
        """The headers of the session and of the request.

        Once there is a response: what aiohttp sent first. None of a function.
        """
        first = self._first
        sent = as_headers(first.outcome.sent_headers or first.sent_headers)
        request = first.sent_request or first.shown_request
        return sent or request.merged_headers(self._call.default_headers)

    @property
    def sent_method(self) -> str | None:
        """The method sent, if changed by a decorator (without a retrying client)."""
        sent = self._sent_instead
        method = None if sent is None else _as_text(sent.method)
        return None if method == self.request_method else method

    @property
    def sent_url(self) -> URL | None:
        """The URL sent to, if changed by a decorator (without a retrying client)."""
        sent = self._sent_instead
        url: URL | None = None if sent is None else sent.full_url()
        return None if url == self.request_url else url

    @property
    def request_length(self) -> int | None:
        """Bytes of the request body sent so far, uncompressed; None if not counted."""
        return self._first.upload.length

    @property
    def request_duration(self) -> float | None:
        """Seconds to the last byte of the body; None without one, or before that."""
        ended = self._first.upload.ended
        return None if ended is None else ended - self.started

    @property
    def request_content_preview(self) -> str | None:
        """The beginning of a sent text, with credentials, if kept."""
        return self._first.request_preview or self._record.request_preview

    @property
    def request_started_at(self) -> datetime:
        """The date and time of the start, with a timezone."""
        seconds = self._call.wall_clock + self.started - self._call.started
        return datetime.fromtimestamp(seconds, UTC)

    @property
    def response_timeout(self) -> float | None:
        """Seconds that the call or the attempt had, from its start; None for no limit.

        An attempt ends when its call does all the same.
        """
        deadline = self.deadline
        if deadline is None or deadline == math.inf:
            return None
        # To the microsecond, or clocks that run for long would show in the digits.
        return round(deadline - self.started, 6)

    @property
    def response_status(self) -> int | None:
        """The status, or None without a response."""
        return self._record.outcome.status

    @property
    def response_reason(self) -> str | None:
        """The reason phrase that came with the status."""
        return self._record.outcome.reason

    @property
    def response_headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None without one."""
        headers = self._record.outcome.headers
        return None if headers is None else as_headers(headers)

    @property
    def response_cause(self) -> BaseException | None:
        """The failure of the call or the attempt, or of reading the body.

        A copy of the same class and text when the call is over and nobody has it.
        """
        return cause_of(self._record)

    @property
    def response_cause_type(self) -> str | None:
        """The name of the class of the :attr:`response_cause`, without its module."""
        cause = self.response_cause
        return None if cause is None else type(cause).__name__

    @property
    def response_length(self) -> int | None:
        """Bytes of the body that were received, decoded, once it ended."""
        return self._record.outcome.length

    @property
    def response_content_preview(self) -> str | None:
        """The beginning of a received text, as far as recorded."""
        start = self._record.outcome.preview
        return None if start is None else start.text()

    @property
    def duration(self) -> float | None:
        """Seconds to the headers of the response or to the failure."""
        return self._seconds_to(self._record.outcome.ended)

    @property
    def total_duration(self) -> float | None:
        """Seconds to the end of the body or to the failure."""
        return self._seconds_to(self._record.outcome.body_ended)

    @property
    def is_complete(self) -> bool:
        """Whether the body ended or the call failed, and no fact will be added."""
        return self._record.outcome.body_ended is not None

    @property
    def _is_root(self) -> bool:
        return self._record is self._call

    @property
    def _first(self) -> Record:
        return self._call.first if self._is_root else self._record

    def _described(self) -> str:
        """Name the request: method and URL, or the function; credentials hidden."""
        described: str = self._asked.described(self.mask)
        return described

    def _has_failed(self) -> bool:
        return self._record.outcome.cause is not None

    def _hedged_after(self) -> float | None:
        """Return how long after the first of its race a hedge was sent."""
        race = self._record.race
        return None if race is None else race.after

    def _sent_after(self) -> float:
        """Return the seconds from the start to when a connection was needed."""
        times = self._record.connection
        return 0.0 if times is None else times.began - self.started

    def _elapsed(self) -> float:
        """Return the seconds from the start to now."""
        return self._call.loop.time() - self.started

    def _described_change(self) -> str:
        """Describe the sent request if it differs from the caller's; else empty.

        Another endpoint is no change.
        """
        if self._is_root:
            asked, sent = self._asked, self._sent_instead
        else:
            begun = self._record.begun_request
            is_routed = isinstance(begun, RoutedRequest)
            asked = begun if is_routed else self.root._asked
            sent = self._record.shown_request
        if sent is None or sent is asked:
            return ""
        # Of a function, the name; it has no URL.
        name = "" if sent.name == asked.name else self.mask.text(sent.name)
        url = sent.full_url()
        where = "" if url == asked.full_url() else self.mask.text(str(url))
        return f"{name} {where}".strip()

    @property
    def _asked(self) -> Request:
        """The request of an attempt as it was sent; of a call, that of the caller.

        With a group, the caller's is that to the endpoint which was asked first.
        """
        if not self._is_root:
            return self._record.shown_request
        call = self._call
        first = call.first.begun_request
        return first if isinstance(first, RoutedRequest) else call.begun_request

    @property
    def _sent_instead(self) -> Request | None:
        """The request that a call without attempts has sent, if different."""
        call = self._call
        is_alone = self._is_root and call.first is call
        return call.sent_request if is_alone else None

    def _seconds_to(self, ended: float | None) -> float | None:
        """Return the seconds to an end, no earlier than the end of the race."""
        if ended is None:
            return None
        race = self._record.race
        return (ended if race is None else max(ended, race.ended)) - self.started


def _as_text(method: object) -> str | None:
    """Return a method for views, of bytes too, which aiohttp refuses later."""
    return None if method is None else str(method)
