"""Observe attempts or calls, for telemetry of any kind."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .._context.chain import retrying_client, sends_again
from .._context.client import ClientT, DecoratingClient, chain_of, find_client
from .._hedging.client import HedgingClient

if TYPE_CHECKING:
    from .._call.kinds import Request
    from .._context.context import ClientRequestContext

_logger = logging.getLogger("aioretry_smithy")


class Observation(ABC):
    """One call, or one attempt, from its start to its headers or its failure."""

    request: Any
    """The request to send on."""

    response: Any
    """The response; not set where none came."""

    @abstractmethod
    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """Record the outcome; *cause* is None where there is a response."""


class TelemetryClient(DecoratingClient[ClientT], ABC):
    """Observes attempts inside the retrying client, and calls outside of it.

    Where nothing retries and nothing hedges, the call is its one attempt. Only such
    clients of this library are recognised; around a retrying decorator of your own put
    the same client on both sides. An error of an observation is logged and changes
    nothing for the call.

    Args:
        delegate: The next client inwards.
        target: What is told; of two clients with equal ones one sees the calls.
    """

    sees_calls: bool
    """Whether it stands outside of the retrying client, so that it sees calls."""

    is_innermost: bool
    """Whether no client with the same target stands further in."""

    surrounds_retries: bool
    """Whether a client that retries or hedges stands further in."""

    surrounds_hedges: bool
    """Whether one that hedges does."""

    def __init__(self, delegate: ClientT, target: object) -> None:
        super().__init__(delegate)
        self.target = target
        inside = chain_of(self)[1:]
        self.is_innermost = not any(
            isinstance(link, TelemetryClient) and link.target == target
            for link in inside
        )
        self.surrounds_retries = any(map(sends_again, inside))
        self.surrounds_hedges = find_client(self, HedgingClient) is not None
        # Inside a retrying client it sees attempts, though these are hedged.
        is_retried = retrying_client(self) is not None
        self._may_see_attempts = self.is_innermost and not is_retried
        self.sees_calls = self.surrounds_retries or not self.is_innermost

    def sees_call(self, ctx: ClientRequestContext) -> bool:
        """Say whether this is a call, not an attempt that is hedged further in."""
        is_attempt = self._may_see_attempts and ctx.attempt is not None
        return self.sees_calls and not is_attempt

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Send the request, observed if anybody listens."""
        delegate: Any = self.delegate
        observation = self._begun(ctx, request)
        if observation is None:
            return await delegate.execute(ctx, request)
        try:
            result = await delegate.execute(ctx, observation.request)
        except BaseException as cause:
            _end(observation, ctx, cause)
            raise
        observation.response = result
        _end(observation, ctx, None)
        return result

    def _begun(self, ctx: ClientRequestContext, request: Request) -> Observation | None:
        """Return an observation that has begun; None for none."""
        try:
            return self.begin(ctx, request) if self.is_heard() else None
        except Exception as error:
            log_error(error)
            return None

    def is_heard(self) -> bool:
        """Say whether anybody listens; where not, requests pass through unseen."""
        return True

    @abstractmethod
    def begin(self, ctx: ClientRequestContext, request: object) -> Observation | None:
        """Begin to observe a call (where :attr:`sees_calls`) or an attempt.

        None where this one is of no interest.
        """

    def describe(self) -> str:
        """Return the name of this client, and what it sees."""
        seen = "calls" if self.sees_calls else "attempts"
        return f"{type(self).__name__}(sees={seen!r})"


def _end(
    observation: Observation, ctx: ClientRequestContext, cause: BaseException | None
) -> None:
    try:
        observation.end(ctx, cause)
    except Exception as error:
        log_error(error)


def log_error(error: Exception) -> None:
    """Log that telemetry has failed; the call goes on."""
    _logger.warning("could not record a call", exc_info=error)
