"""Keep the tokens of a retry budget in Redis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .._errors import is_plain_function
from .._text import encodable
from .redis_client import method_of, no_client

if TYPE_CHECKING:
    from .redis_client import RedisClient

_FORGOTTEN_AFTER = 3600
"""Seconds without an outcome after which the tokens are as at first."""

_SCRIPT = f"""
local state = redis.call('HMGET', KEYS[1], 'tokens', 'failures')
local capacity, brake_after = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = tonumber(state[1]) or capacity
local failures = tonumber(state[2]) or 0
if ARGV[4] == '1' then failures = 0 end
failures = failures + tonumber(ARGV[5])
tokens = math.max(0, math.min(tokens + tonumber(ARGV[3]), capacity))
local is_braked = brake_after > 0 and failures >= brake_after
local is_paid = 0
if ARGV[6] == '1' and not is_braked and tokens >= 1 - 1e-9 then
    tokens = math.max(tokens - 1, 0)
    is_paid = 1
end
local shown = string.format('%.17g', tokens)
redis.call('HSET', KEYS[1], 'tokens', shown, 'failures', failures)
redis.call('EXPIRE', KEYS[1], {_FORGOTTEN_AFTER})
return {{is_paid, shown, failures}}
"""


@dataclass(slots=True)
class Outcomes:
    """The outcomes of attempts since the last report to Redis."""

    tokens: float = 0.0
    """Tokens that came, less those that retries cost while Redis was away."""

    has_success: bool = False

    failures: int = 0
    """Failures in a row, since the last success if there was one."""

    def add(self, later: Outcomes) -> None:
        """Add later outcomes."""
        self.tokens += later.tokens
        self.failures = later.failures_after(self.failures)
        self.has_success |= later.has_success

    def failures_after(self, failures: int) -> int:
        """Return the failures in a row where there were so many before."""
        return self.failures + (0 if self.has_success else failures)


class Balance(NamedTuple):
    """The present content of a purse."""

    is_paid: bool
    tokens: float
    failures: int


class Purse:
    """The tokens of a retry budget, and the failures in a row, of all processes.

    Args:
        redis: Keeps them.
        name: That of the budget.
        capacity: The tokens at first and at most.
        brake_after: Failures in a row that refuse further retries, or None.

    Raises:
        ValueError: *redis* is no client, or one that is not awaited.
    """

    __slots__ = ("_key", "_run", "_settings", "untold")

    untold: Outcomes
    """The outcomes that Redis does not know yet."""

    def __init__(
        self, redis: RedisClient, name: str, capacity: float, brake_after: int | None
    ) -> None:
        self._run = method_of(redis, "register_script")(_SCRIPT)
        if is_plain_function(self._run):
            raise no_client(redis)
        self._key = encodable(f"aioretry_smithy:retry-budget:{name}")
        self._settings = repr(float(capacity)), brake_after or 0
        self.untold = Outcomes()

    async def pay(self) -> Balance:
        """Report all outcomes, and pay for a retry if there is a token."""
        return await self._tell(wants=1)

    async def tell(self) -> Balance:
        """Report all outcomes."""
        return await self._tell(wants=0)

    async def _tell(self, wants: int) -> Balance:
        told, self.untold = self.untold, Outcomes()
        outcomes = repr(told.tokens), int(told.has_success), told.failures
        try:
            is_paid, tokens, failures = await self._run(
                keys=[self._key], args=[*self._settings, *outcomes, wants]
            )
        except BaseException:
            told.add(self.untold)
            self.untold = told
            raise
        return Balance(bool(is_paid), float(tokens), int(failures))
