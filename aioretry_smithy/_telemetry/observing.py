"""The decorator that telemetry of every kind is made of."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .._call.client import DecoratingClient, chain_of
from .._retry.client import RetryingClient

if TYPE_CHECKING:
    import aiohttp

    from .._call.client import HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

_logger = logging.getLogger("aioretry_smithy")


class Observation(ABC):
    """One call, or one attempt, from its start to its headers or its failure."""

    __slots__ = ("request", "response")

    request: HttpRequest
    """What to send on."""

    response: aiohttp.ClientResponse
    """What came back; nothing is set where nothing came."""

    @abstractmethod
    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """Hear how it went.

        Args:
            ctx: The call or the attempt, with its log.
            cause: What it failed with; None where there is a response.
        """


class ObservingClient(DecoratingClient, ABC):
    """Tells of attempts inside the retrying client, and of calls outside of it.

    Where nothing retries, the call is its one attempt. Only :class:`RetryingClient` is
    recognised; around a retrying decorator of your own put the same client on both
    sides. An error of whoever listens is logged and changes nothing for the call.
    """

    sees_calls: bool
    """Whether it stands outside of what retries, so that it sees calls."""

    is_innermost: bool
    """Whether nobody stands further in who tells the same listener."""

    surrounds_retries: bool
    """Whether a retrying client stands further in."""

    def __init__(self, delegate: HttpClient) -> None:
        super().__init__(delegate)
        inside = chain_of(delegate)
        self.is_innermost = not any(self.tells_the_same_as(link) for link in inside)
        self.surrounds_retries = any(
            isinstance(link, RetryingClient) for link in inside
        )
        self.sees_calls = self.surrounds_retries or not self.is_innermost

    @abstractmethod
    def begin(self, ctx: ClientRequestContext, request: HttpRequest) -> Observation:
        """Begin to observe a call (where :attr:`sees_calls`) or an attempt."""

    @abstractmethod
    def tells_the_same_as(self, link: HttpClient) -> bool:
        """Say whether *link* is of the same kind and tells the same listener."""

    def is_heard(self) -> bool:
        """Say whether anybody listens; otherwise calls pass through unseen."""
        return True

    def describe(self) -> str:
        """Return the name of this client, and what it sees."""
        seen = "calls" if self.sees_calls else "attempts"
        return f"{type(self).__name__}(sees={seen!r})"

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request*, and tell those who listen how it went."""
        observation = self._begin(ctx, request)
        if observation is None:
            return await self.delegate.execute(ctx, request)
        try:
            response = await self.delegate.execute(ctx, observation.request)
        except BaseException as cause:
            self._end(observation, ctx, cause)
            raise
        observation.response = response
        self._end(observation, ctx, None)
        return response

    def _begin(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Observation | None:
        try:
            return self.begin(ctx, request) if self.is_heard() else None
        except Exception as error:
            report(error)
            return None

    def _end(
        self,
        observation: Observation,
        ctx: ClientRequestContext,
        cause: BaseException | None,
    ) -> None:
        try:
            observation.end(ctx, cause)
        except Exception as error:
            report(error)


def report(error: Exception) -> None:
    """Say in the log that somebody who listens has failed."""
    _logger.warning("could not tell of a call", exc_info=error)
