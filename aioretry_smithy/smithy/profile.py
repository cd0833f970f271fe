"""The numbers that differ from one generation of the AWS SDKs to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

from .._errors import bad_argument, is_finite

_SECONDS = "backoff_scale_value", "throttling_backoff_scale_value", "max_backoff"
_COUNTS = "max_attempts", "retry_cost", "timeout_cost", "throttling_cost"


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
    retry_cost=5,
    timeout_cost=10,
    backoff_scale_value=1.0,
    max_added_delay=None,
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
