"""Begin the retries of calls, by the settings of a client or of a block of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.call import Attempt
from .._call.recorder import record_failure
from .._call.stop_reason import RetryStopReason
from .._context.context import context_of
from .config import RetryConfig
from .no_retries import in_one_attempt
from .strategy_call import StrategyCall
from .token_call import TokenCall

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request
    from .._context.options import Options
    from .._context.sender import Sender
    from .call_adapter import CallAdapter
    from .config_mapping import RetryConfigMapping
    from .limiter import RetryLimiter
    from .retried_call import RetriedCall


class Retrier:
    """Begins the retries of calls that pass a retrying client.

    Args:
        config: The settings of all calls, or a mapping that finds those of each.
        adapter: Handles the requests and the results.
    """

    __slots__ = (
        "_adapter",
        "_attempt_timeout",
        "_config",
        "_is_plain",
        "_limiter",
        "is_looked_at",
        "starts_at_once",
    )

    is_looked_at: bool
    """Whether hooks or a sender inside look at more of an attempt than its record."""

    starts_at_once: bool
    """Whether nothing is to be done before a first attempt that nobody looks at."""

    def __init__(
        self, config: RetryConfig | RetryConfigMapping, adapter: CallAdapter
    ) -> None:
        self._config = config
        self._adapter = adapter
        self._attempt_timeout: float | None = getattr(config, "attempt_timeout", None)
        self.is_looked_at = False
        self._limiter: RetryLimiter | None = getattr(config, "limiter", None)
        # Whether nothing is asked before a first attempt, nor about a success.
        self._is_plain = isinstance(config, RetryConfig) and _ignores_success(config)
        self.starts_at_once = self._is_plain and self._attempt_timeout is None

    def first_attempt(
        self, call: Call, scope: Scope, request: Request
    ) -> Attempt | None:
        """Begin a first attempt that nobody has to be asked about; None otherwise."""
        options: Options | None = call.options
        # A decorator outside may have sent it through here before.
        if not self._is_plain or call.sent:
            return None
        if options is not None and options.retry is not None:
            return None
        config: Any = self._config
        call.retry_config = config
        return Attempt(call, request, self._attempt_timeout)

    def succeeds(self, call: Call, attempt: Scope, request: Request) -> bool:
        """Note a success, if it is one that nobody has to be asked about."""
        # A hedge may count by now.
        record = call if attempt is call else attempt.record
        status = record.outcome.status
        # A function that has returned has no status.
        if (status is not None and status >= 400) or record.was_refused:
            return False
        if self._limiter is not None and not self._limiter._note_success(request):
            return False
        if record is not call:
            record.is_settled = True
            if not call.is_settled:
                call.outcome = record.outcome
        return True

    def begin(
        self, sender: Sender, call: Call, scope: Scope, request: Request
    ) -> RetriedCall:
        """Begin the retries of a call, after its first attempt or before it.

        Raises:
            Exception: A mapping has raised it.
        """
        config, options = self._config, call.options
        if options is not None and options.retry is not None:
            config = options.retry
        elif not isinstance(config, RetryConfig):
            try:
                config = config.config_for(context_of(call, scope), request)
            except Exception as cause:
                call.stop_reason = RetryStopReason.ERROR
                record_failure(call, scope.record, cause)
                raise
        is_own = config is self._config
        is_plain = self._is_plain if is_own else _ignores_success(config)
        if call.defaults.no_retries:
            config = in_one_attempt(config)
        call.retry_config = config
        kind = TokenCall if config.uses_tokens else StrategyCall
        state, adapter = (sender, call, scope, request), self._adapter
        return kind(*state, config, adapter, is_plain, self.is_looked_at)


def _ignores_success(config: RetryConfig) -> bool:
    """Say whether nobody need be asked before a first attempt, nor about a success."""
    return (
        not config.uses_tokens
        and not config.buffer_response
        and all(each._ignores_success for each in config.strategies)
    )
