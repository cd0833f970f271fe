"""Limit what all calls together may spend on retries, at the prices of a profile."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from .._errors import bad_argument, is_finite
from .._failures.hints import RetryInfo
from .._values import Shared, extensible
from .interfaces import RetryError

_SECONDS = "backoff_scale_value", "throttling_backoff_scale_value", "max_backoff"
_COUNTS = "max_attempts", "retry_cost", "timeout_cost", "throttling_cost"


@extensible
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryProfile:
    """The constants of the standard and the adaptive mode.

    ==================================  ==========  ==========  ============  =========
    constant                            ``V2_1``    ``V2_0``    ``DYNAMODB``  ``GUIDE``
    ==================================  ==========  ==========  ============  =========
    ``max_attempts``                    3           3           4             5
    ``retry_cost``                      14          5           14            5
    ``timeout_cost``                    14          10          14            10
    ``throttling_cost``                 5           5           5             5
    ``no_retry_increment``              1           1           1             1
    ``success_refund``                  None        None        None          1
    ``backoff_scale_value``             0.05 s      1 s         0.025 s       1 s
    ``throttling_backoff_scale_value``  1 s         1 s         1 s           1 s
    ``max_backoff``                     20 s        20 s        20 s          20 s
    ``max_added_delay``                 5 s         None        5 s           inf
    ==================================  ==========  ==========  ============  =========

    Make one of your own with :func:`dataclasses.replace`. Costs of 0 make a quota that
    never refuses.

    Args:
        max_attempts: Attempts of one call, the first one included, >= 1.
        retry_cost: What a retry takes from the quota, an int >= 0.
        timeout_cost: The same after a timeout.
        throttling_cost: The same after the server has complained of too many requests.
        no_retry_increment: What a call that needed no retry adds to the quota, an int
            >= 0.
        success_refund: What a call that succeeded by a retry adds to the quota, an int
            >= 0. None: what its last retry has cost.
        backoff_scale_value: Longest delay before the first retry in seconds, >= 0.
        throttling_backoff_scale_value: The same where the server throttles.
        max_backoff: Limit of the delays in seconds, >= 0.
        max_added_delay: Seconds by which the server can make a delay longer, >= 0.
            ``math.inf``: as many as it asks for. None: up to a delay of *max_backoff*.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs; ``GUIDE`` is the example strategy of Smithy's guide.

    >>> from dataclasses import replace
    >>> replace(RetryProfile.V2_1, retry_cost=10)
    RetryProfile(retry_cost=10)
    """

    V2_1: ClassVar[RetryProfile]
    """The defaults of the SDKs since November 2026."""

    V2_0: ClassVar[RetryProfile]
    """The defaults of the SDKs before that."""

    DYNAMODB: ClassVar[RetryProfile]
    """``V2_1`` for DynamoDB, which answers faster than other services."""

    GUIDE: ClassVar[RetryProfile]
    """The numbers of the example strategy in Smithy's guide.

    A success refunds 1, whatever its retries have cost, and a server may ask for any
    delay. The guide's sample code counts retries against its maximum of attempts,
    and so makes six where it says five; this makes five.
    """

    max_attempts: int = 3
    retry_cost: int = 14
    timeout_cost: int = 14
    throttling_cost: int = 5
    no_retry_increment: int = 1
    success_refund: int | None = None
    backoff_scale_value: float = 0.05
    throttling_backoff_scale_value: float = 1.0
    max_backoff: float = 20.0
    max_added_delay: float | None = 5.0

    def __post_init__(self) -> None:
        for name in (*_COUNTS, "no_retry_increment"):
            count, least = getattr(self, name), 1 if name == "max_attempts" else 0
            if type(count) is not int or count < least:
                raise bad_argument(name, count, f"an int >= {least}")
        refund = self.success_refund
        if refund is not None and (type(refund) is not int or refund < 0):
            raise bad_argument("success_refund", refund, "an int >= 0, or None")
        for name in _SECONDS:
            seconds = getattr(self, name)
            if not is_finite(seconds) or seconds < 0:
                raise bad_argument(name, seconds, "finite and >= 0")
        added = self.max_added_delay
        if added not in (None, math.inf) and not (is_finite(added) and added >= 0):
            expected = "finite and >= 0, math.inf, or None"
            raise bad_argument("max_added_delay", added, expected)

    def __repr__(self) -> str:
        for name in ("V2_1", "V2_0", "DYNAMODB", "GUIDE"):
            if self == getattr(RetryProfile, name):
                return f"RetryProfile.{name}"
        settings = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"RetryProfile({', '.join(settings)})"


RetryProfile.V2_1 = RetryProfile()
RetryProfile.V2_0 = RetryProfile(
    retry_cost=5, timeout_cost=10, backoff_scale_value=1.0, max_added_delay=None
)
RetryProfile.DYNAMODB = RetryProfile(max_attempts=4, backoff_scale_value=0.025)
RetryProfile.GUIDE = RetryProfile(
    max_attempts=5,
    retry_cost=5,
    timeout_cost=10,
    success_refund=1,
    backoff_scale_value=1.0,
    max_added_delay=math.inf,
)


class StandardRetryQuota(Shared):
    """A bucket of tokens that pays for retries.

    It is full at first. A retry takes out what it costs, a success puts something back,
    and a call that fails in the end puts back nothing. So retries stop while most
    calls fail, and begin again when the server has recovered.

    Calls, strategies, event loops and threads may share one. A copy of it is the quota
    itself.

    The constants are those of ``V2_1``. A subclass may have others, and a quota with a
    *profile* has that one's.

    Args:
        initial_capacity: Tokens at the beginning, and at most, an int >= 0.
        profile: The costs and refunds, for all strategies that have this quota,
            whatever their own profile says. None: the constants of the class.

    Raises:
        ValueError: An argument is not as described.

    Source: the AWS SDKs and smithy-python, whose class of this name it is.

    >>> quota = StandardRetryQuota(20)
    >>> cost = quota.acquire(error=ConnectionResetError())
    >>> quota.release(release_amount=cost)
    >>> cost, quota.available_capacity
    (14, 20)
    """

    INITIAL_RETRY_TOKENS: int = 500
    """The tokens of a quota that is made without *initial_capacity*."""

    RETRY_COST: int = RetryProfile.V2_1.retry_cost
    """Tokens that a retry takes out."""

    THROTTLING_RETRY_COST: int = RetryProfile.V2_1.throttling_cost
    """Tokens that a retry takes out after throttling."""

    NO_RETRY_INCREMENT: int = RetryProfile.V2_1.no_retry_increment
    """Tokens that a call without a retry puts in."""

    def __init__(
        self,
        initial_capacity: int = INITIAL_RETRY_TOKENS,
        *,
        profile: RetryProfile | None = None,
    ) -> None:
        if type(initial_capacity) is not int or initial_capacity < 0:
            raise bad_argument("initial_capacity", initial_capacity, "an int >= 0")
        if profile is None:
            profile = replace(
                RetryProfile.V2_1,
                retry_cost=self.RETRY_COST,
                timeout_cost=self.RETRY_COST,
                throttling_cost=self.THROTTLING_RETRY_COST,
                no_retry_increment=self.NO_RETRY_INCREMENT,
            )
        check_profile(profile)
        self.RETRY_COST = profile.retry_cost
        self.THROTTLING_RETRY_COST = profile.throttling_cost
        self.NO_RETRY_INCREMENT = profile.no_retry_increment
        self._max_capacity = initial_capacity
        self._available_capacity = initial_capacity
        self._profile = profile
        self._lock = threading.Lock()

    @property
    def available_capacity(self) -> int:
        """The tokens in the quota now."""
        with self._lock:
            return self._available_capacity

    def acquire(self, *, error: Exception) -> int:
        """Pay for a retry.

        Args:
            error: What the attempt before failed with. Its price is that of throttling,
                else that of a timeout, else that of any other retry.

        Returns:
            What was paid, to be given back by :meth:`release` if the retry succeeds.

        Raises:
            RetryError: There are too few tokens; none was taken.
        """
        cost = self._cost(RetryInfo.of(error))
        with self._lock:
            available = self._available_capacity
            if cost <= available:
                self._available_capacity = available - cost
                return cost
        raise RetryError(f"Retry quota exceeded: needs {cost} tokens, {available} left")

    def release(self, *, release_amount: int) -> None:
        """Put tokens back after a success; the bucket never holds more than at first.

        Args:
            release_amount: What the last retry of the call has paid, an int >= 0; the
                profile's ``success_refund`` is put back in its place where there is
                one. 0 for a call that needed none, which brings the profile's
                ``no_retry_increment``.

        Raises:
            ValueError: *release_amount* is not as described.
        """
        if type(release_amount) is not int or release_amount < 0:
            raise bad_argument("release_amount", release_amount, "an int >= 0")
        profile = self._profile
        if not release_amount:
            amount = profile.no_retry_increment
        elif profile.success_refund is None:
            amount = release_amount
        else:
            amount = profile.success_refund
        self._add(amount)

    def __repr__(self) -> str:
        settings = f"{self._max_capacity}, profile={self._profile!r}"
        return f"{type(self).__name__}({settings})"

    def _add(self, amount: int) -> None:
        with self._lock:
            self._available_capacity = min(
                self._available_capacity + amount, self._max_capacity
            )

    def _cost(self, info: RetryInfo) -> int:
        if info.is_throttling_error:
            return self._profile.throttling_cost
        if info.is_timeout_error:
            return self._profile.timeout_cost
        return self._profile.retry_cost


def check_profile(value: object) -> None:
    """Refuse an argument that is no profile."""
    if not isinstance(value, RetryProfile):
        raise bad_argument("profile", value, "a RetryProfile")
