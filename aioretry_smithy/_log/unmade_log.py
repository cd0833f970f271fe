"""Keep the facts of a call that succeeds at once until its log is asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .._failures.kept_cause import CallBound
from .._request.request import HttpRequest
from .outcome import Outcome
from .record import NO_CHILDREN, UNMADE
from .request_log import RequestLog
from .upload import NO_BODY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    import aiohttp
    from aiohttp.typedefs import StrOrURL
    from yarl import URL

    from .._masking.mask import Mask


class UnmadeLog(CallBound):
    """The facts of a call of the short lane: most programs never look at its log."""

    __slots__ = (
        "_log",
        "_request",
        "arguments",
        "attempt_timeout",
        "base_url",
        "default_headers",
        "given",
        "is_over",
        "loop",
        "mask",
        "method",
        "outcome",
        "retries",
        "sent_headers",
        "started",
        "target",
        "timeout",
        "upload",
        "wall_clock",
    )

    # By position: each call makes one of them, and names cost a third more.
    def __init__(
        self,
        method: str,
        target: StrOrURL,
        given: dict[str, Any],
        arguments: dict[str, Any],
        base_url: URL | None,
        loop: asyncio.AbstractEventLoop,
        timeout: float | None,
        attempt_timeout: float | None,
        default_headers: Mapping[str, str],
        mask: Mask,
        retries: bool,
    ) -> None:
        self.method = method.upper()
        self.target = target
        self.given = given
        self.arguments = arguments
        self.base_url = base_url
        self.loop = loop
        self.timeout = timeout
        self.attempt_timeout = attempt_timeout
        self.default_headers = default_headers
        self.mask = mask
        self.retries = retries
        self.upload = NO_BODY
        self.wall_clock = time.time()
        self.started = loop.time()
        self._log: RequestLog | None = None
        self._request: HttpRequest | None = None
        self.outcome: Outcome | None = None
        self.is_over = False

    @property
    def request(self) -> HttpRequest:
        """The request of the call."""
        request = self._request
        if request is None:
            request = self._request = HttpRequest.of_arguments(
                self.method, self.target, self.given, self.arguments, self.base_url
            )
        return request

    @property
    def url(self) -> URL:
        """The URL of the request, for its keys."""
        return self.request.url

    @property
    def log(self) -> RequestLog:
        """The log of the call, the same each time."""
        log = self._log
        if log is None:
            self._log = log = RequestLog(
                self.request.without_body(),
                self.loop,
                self.timeout,
                None,
                self.default_headers,
                self.mask,
            )
            call, started = log._call, self.started
            call.wall_clock, call.started = self.wall_clock, started
            call.deadline = None if self.timeout is None else started + self.timeout
            log.started = started
            log._upload = self.upload
            log._children = UNMADE if self.retries else NO_CHILDREN
            if self.attempt_timeout is not None:
                log._deadline = started + self.attempt_timeout
            self._record(log)
            if self.is_over:
                log._end_call()
        return log

    def succeed(self, response: aiohttp.ClientResponse) -> None:
        """Note a response whose body has come with its headers."""
        history = response.history
        first_hop = history[0] if history else response
        self.sent_headers = first_hop.request_info.headers
        length = getattr(response.content, "total_bytes", 0)
        self.outcome = Outcome(self.loop.time(), response, length)
        if self._log is not None:
            self._record(self._log)

    def end(self) -> None:
        """Note that the caller has the outcome."""
        self.is_over = True
        if self._log is not None:
            self._log._end_call()

    def _record(self, log: RequestLog) -> None:
        if self.outcome is not None:
            log._outcome = self.outcome
            log._sent_headers = self.sent_headers
            log._sent = True
            log._end_first_attempt()
