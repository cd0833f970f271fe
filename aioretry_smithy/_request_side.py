"""Show the request in a log: that of the first attempt, for a call."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ._log_views import LogViews

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from ._log import RequestLog


class RequestSide(LogViews):
    """The request side of a :class:`RequestLog`."""

    __slots__ = ()

    @property
    def _first(self) -> RequestLog:
        log = self._log
        return log._children[0] if log._children else log

    @property
    def name(self) -> str:
        """The name of the call in logs: its method."""
        return self.request_method

    @property
    def request_method(self) -> str:
        """The method, in upper case."""
        return self._first.request.method

    @property
    def request_url(self) -> URL:
        """The URL, joined with the session's base, with ``params`` and credentials."""
        return self._first.request.full_url()

    @property
    def request_headers(self) -> Mapping[str, str]:
        """The headers of the session and of the request.

        Once there is a response: what aiohttp sent on the first hop.
        """
        first = self._first
        if first._sent_headers is not None:
            return first._sent_headers
        return first.request.merged_headers(self._log._call.default_headers)

    @property
    def request_length(self) -> int | None:
        """Bytes of the body that were sent so far, before any compression.

        0 without a body; None where nobody counted, as with a mock.
        """
        return self._first._request_length

    @property
    def request_duration(self) -> float | None:
        """Seconds to the last byte of the body; None without one, or before that."""
        ended = self._first._request_ended
        return None if ended is None else ended - self._log.started

    @property
    def request_content_preview(self) -> str | None:
        """The first characters of a text that was sent.

        None without a :class:`ContentPreviewingClient`. Credentials are in it.
        """
        return self._first._request_preview or self._log._request_preview

    @property
    def request_started_at(self) -> datetime:
        """The date and time of its start, with a timezone."""
        seconds = (
            self._log._call.wall_clock + self._log.started - self._log._call.started
        )
        return datetime.fromtimestamp(seconds, UTC)
