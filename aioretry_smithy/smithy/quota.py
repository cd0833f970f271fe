"""Limit what all calls together may spend on retries."""

from __future__ import annotations

import threading
from dataclasses import replace

from .._errors import bad_argument
from .._failures.retry_info import RetryInfo
from .errors import RetryError
from .profile import RetryProfile
from .shared import Shared


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
        raise RetryError(f"Retry quota exceeded: {available} left of {cost}")

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
