"""Begin the retries of calls, by the settings of a client or of a block of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING
from .._call.recorder import record_end_of, record_failure
from .._call.stop_reason import RetryStopReason
from .._context.context import context_of
from .config import RetryConfig
from .retried_call import begin_attempt
from .strategy_call import StrategyCall
from .token_call import TokenCall

if TYPE_CHECKING:
    from .._call.attempt import Attempt
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._context.options import Options
    from .config_mapping import RetryConfigMapping
    from .exchange import Exchange
    from .limiter import RetryLimiter
    from .retried_call import RetriedCall


class Retrier:
    """Begins the retries of calls that pass a retrying client.

    Args:
        config: The settings of all calls, or a mapping that finds those of each.
        exchange: Handles the requests and the results.
    """

    __slots__ = ("_config", "_exchange", "_is_plain")

    def __init__(
        self, config: RetryConfig | RetryConfigMapping, exchange: Exchange
    ) -> None:
        self._config = config
        self._exchange = exchange
        # Whether nothing is asked before a first attempt, nor about a success.
        self._is_plain = (
            isinstance(config, RetryConfig)
            and not config.uses_tokens
            and not config.buffer_response
            and all(each._ignores_success for each in config.strategies)
        )

    def first_attempt(self, call: Call, request: Any) -> Attempt | None:
        """Begin a first attempt that nobody has to be asked about; None otherwise."""
        options: Options | None = call.options
        if not self._is_plain or (options is not None and options.retry is not None):
            return None
        config: Any = self._config
        call.retry_config = config
        return begin_attempt(config, call, request, self._exchange)

    def succeeds(self, call: Call, attempt: Attempt, result: Any) -> bool:
        """Note a success, if it is one that nobody has to be asked about."""
        record = attempt.record
        if result is NOTHING or record.was_refused:
            return False
        config: Any = self._config
        limiter: RetryLimiter | None = config.limiter
        if not self._exchange.is_success(result):
            return False
        if limiter is not None and not limiter._note_success(attempt.to_send):
            return False
        record.is_settled = True
        if not call.is_settled:
            if call.stop_reason is not None:
                # Of a pass before this one.
                call.stop_reason = call.retry_error = None
            record_end_of(call, record)
        return True

    def begin(self, call: Call, scope: Scope, request: Any) -> RetriedCall:
        """Begin the retries of a call.

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
        call.retry_config = config
        kind = TokenCall if config.uses_tokens else StrategyCall
        return kind(config, call, scope, request, self._exchange)
