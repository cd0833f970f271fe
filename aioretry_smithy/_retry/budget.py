"""Budget retries across calls, paid for by calls that succeed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from .. import _checks as check
from .._call.servers import Rounds, is_of_one_server, is_throttled, is_unserved
from .._errors import bad_argument, checked_name, is_finite
from .._policies.listeners import Listeners, checked
from .._request.keys import PerKey, service_key
from .._values import Shared
from .limiter import NEGLIGIBLE, RetryLimiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._context.context import ClientRequestContext

_SERVED: Final = 1.0


class RetryPrices:
    """The price of a retry, by what the failure before it has cost the server.

    What was paid is known as long as the attempt is.

    Args:
        unserved_cost: The price after a failure that has cost the server nothing.
    """

    def __init__(self, unserved_cost: float) -> None:
        self.unserved_cost = unserved_cost
        self._paid: WeakKeyDictionary[ClientRequestContext, float] = WeakKeyDictionary()

    def of(self, ctx: ClientRequestContext, cause: Exception | None) -> float:
        """Return the price of a retry of an attempt, which is its weight as well."""
        if self.unserved_cost == _SERVED:
            return _SERVED
        is_cheap = is_unserved(ctx, cause)
        return self.unserved_cost if is_cheap else _SERVED

    def note(self, ctx: ClientRequestContext, price: float) -> None:
        """Note what the retry of an attempt was paid with."""
        if self.unserved_cost != _SERVED:
            self._paid[ctx] = price

    def paid_for(self, ctx: ClientRequestContext) -> float:
        """Return what was paid for the retry of an attempt."""
        return self._paid.get(ctx, _SERVED)


class RetryBudgetListener:
    """Receives the events of a retry budget; override the methods you need.

    The methods are plain, and called one event after the other, when the budget has
    already changed, so they may look at it. What they raise is logged.

    >>> class Purse(RetryBudgetListener):
    ...     def on_tokens_changed(self, budget):
    ...         print(budget.name, budget.tokens)
    """

    def on_retry_refused(self, budget: RetryBudget, ctx: ClientRequestContext) -> None:
        """Called when the budget refused the retry of an attempt."""

    def on_tokens_changed(self, budget: RetryBudget) -> None:
        """Called when the budget holds more tokens, or fewer."""


class RetryBudget(Shared, RetryLimiter):
    """Budgets retries: calls that succeed pay for the retries of failed calls.

    It holds *capacity* tokens at first, and never more. A retry costs 1, a success
    brings *deposit*. So up to *capacity* retries go out at once, and in the long run
    one for every ``1 / deposit`` successes: with 0.1, retries add at most a tenth to
    the load. After *brake_after* failures in a row, of all calls together, there is no
    retry before the next success, however many tokens are left.

    A server that is away, or that turns requests down at once, has no work with them.
    With an *unserved_cost* of 0.1 ten retries after such a failure cost as much as one
    after any other, and ten such failures press the brake as one does. A failure is
    unserved if the request did not reach the server, however long it took to learn
    that; or if, within a second of sending, the connection broke before an answer, or
    the answer was 502 or 503. One that says when to come back is not.

    Two kinds of failures are paid for, but are none to the brake. A server that
    restarts cuts all connections at once, which is one failure: a broken connection
    whose attempt began before the last failure that was counted is not counted. And a
    429 or 503 that says when to come back, by a ``Retry-After`` that can be read, or by
    the ``retry_after`` of an exception that throttles, is no outage.

    A retry that does not take place gives its token back. An open circuit's refusals
    change nothing. :class:`RetryLimiter` says what counts as a success or a failure.

    One budget may serve many clients, tasks and sessions of one event loop, but not
    threads. Copying one gives the same one.

    Args:
        name: For listeners and logs; ``retry-budget-0``, ``-1``, ... by default.
        deposit: Tokens that a success brings, finite and >= 0.
        capacity: Tokens at first and at most, finite and >= 1. Ten deposits of 0.1, or
            three of 1/3, pay for a retry: errors of rounding, up to 1e-9 tokens, are
            ignored.
        brake_after: Failures in a row after which there is no further retry, an int
            >= 1; None for no brake. The failure to be retried is one of them, so 3
            allows two retries while nothing succeeds, and 1 none.
        unserved_cost: What a retry after an unserved failure costs, and what that
            failure counts for the brake, 0 to 1.
        listeners: Called for each change, in this order.

    Raises:
        ValueError: An argument is not as described.

    Source: the retry budgets of Finagle and gRPC's retry throttling; the brake is our
    own.

    >>> budget = RetryBudget("orders", deposit=0.1, capacity=10)
    >>> budget
    RetryBudget('orders', deposit=0.1, capacity=10, brake_after=3)
    >>> budget.tokens
    10.0
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        deposit: float = 0.1,
        capacity: float = 10.0,
        brake_after: int | None = 3,
        unserved_cost: float = 1.0,
        listeners: Iterable[RetryBudgetListener] = (),
    ) -> None:
        _check(deposit, capacity, brake_after, unserved_cost)
        self._name = checked_name(name, "retry-budget")
        self._settings = _describe(deposit, capacity, brake_after, unserved_cost)
        self._brake_after = brake_after
        self._failures = 0.0
        self._prices = RetryPrices(unserved_cost)
        self._rounds = Rounds()
        self._deposit = deposit
        self._tokens = self._capacity = capacity
        self._listeners = Listeners(
            f"retry budget {self._name!r}", listeners, RetryBudgetListener
        )

    @classmethod
    def per_host(
        cls,
        *,
        deposit: float = 0.1,
        capacity: float = 10.0,
        brake_after: int | None = 3,
        unserved_cost: float = 1.0,
        listeners: Iterable[RetryBudgetListener] = (),
    ) -> PerHostRetryBudget:
        """Return a limiter with a budget of its own for each host and port.

        So the failures of one server cost the others nothing. The 1024 budgets most
        recently used are kept. Each is named for its host, such as
        ``example.com:443``.

        Args:
            deposit: As for :class:`RetryBudget`.
            capacity: As for :class:`RetryBudget`.
            brake_after: As for :class:`RetryBudget`.
            unserved_cost: As for :class:`RetryBudget`.
            listeners: Called for each change of every one of the budgets.

        Raises:
            ValueError: An argument is not as described.

        >>> budgets = RetryBudget.per_host(capacity=5)
        >>> budgets.budget_for("example.com:443").tokens
        5.0
        """
        budget = partial(
            cls,
            deposit=deposit,
            capacity=capacity,
            brake_after=brake_after,
            unserved_cost=unserved_cost,
            listeners=checked(listeners, RetryBudgetListener),
        )
        settings = _describe(deposit, capacity, brake_after, unserved_cost)
        return PerHostRetryBudget(budget, f"{cls.__name__}.per_host({settings})")

    @property
    def name(self) -> str:
        """The name of the budget in logs and to listeners."""
        return self._name

    @property
    def tokens(self) -> float:
        """The current number of tokens."""
        return self._shown(self._tokens)

    @property
    def failures_in_a_row(self) -> float:
        """The sum of the weights of failures since the last success.

        An int where they come to a whole number.
        """
        failures = round(float(self._failures), 9)
        return int(failures) if failures.is_integer() else failures

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        """Pay for a retry, if there is a token and the brake is not on."""
        price = self._prices.of(ctx, cause)
        if self._is_braked() or self._lacks(price):
            self._refuse(ctx)
            return False
        self._prices.note(ctx, price)
        self._change(-price)
        return True

    def release(self, ctx: ClientRequestContext) -> None:
        """Take back what a retry has cost that does not take place."""
        self._change(self._prices.paid_for(ctx))

    def on_success(self, ctx: ClientRequestContext) -> None:
        """Count a success: it adds the deposit and releases the brake."""
        self._failures = 0.0
        if self._tokens != self._capacity:
            self._change(self._deposit)

    def on_failure(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        """Count a failure, unless throttled, or one of many on a broken connection."""
        count_failure(self, ctx, cause)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, {self._settings})"

    def _is_braked(self) -> bool:
        most = self._brake_after
        return most is not None and self._failures + NEGLIGIBLE >= most

    def _lacks(self, price: float) -> bool:
        return self._tokens < price - NEGLIGIBLE

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        subject = f"retry budget {self._name!r}"
        if self._is_braked():
            failures = f"{self.failures_in_a_row:.4g} failures in a row"
            return f"{subject}, {failures}, brake_after={self._brake_after}"
        if self._lacks(price := self._prices.of(ctx, cause)):
            return f"{subject}, {self.tokens:.4g} tokens left, a retry costs {price:g}"
        # One of the user's own has asked for more.
        return subject

    def _refuse(self, ctx: ClientRequestContext) -> None:
        self._listeners.notify(lambda listener: listener.on_retry_refused(self, ctx))

    def _become(self, tokens: float, failures: float) -> None:
        """Take over the state of the budget shared by the processes."""
        self._failures = failures
        self._change(tokens - self._tokens)

    def _change(self, by: float) -> None:
        before = self._tokens
        self._tokens = max(0.0, min(before + by, self._capacity))
        if self._listeners.has_any and self._shown(before) != self.tokens:
            self._listeners.notify(lambda listener: listener.on_tokens_changed(self))

    def _shown(self, tokens: float) -> float:
        return min(round(float(tokens), 9), float(self._capacity))


class PerHostRetryBudget(Shared, RetryLimiter):
    """A retry budget for each host, from :meth:`RetryBudget.per_host`.

    Args:
        factory: Makes the budget of a name.
        description: The ``repr`` of this limiter.
    """

    def __init__(self, factory: Callable[[str], RetryBudget], description: str) -> None:
        self._budgets = PerKey("host", service_key, factory, factory)
        self._without_host = factory("no-host")
        self._description = description

    def budget_for(self, key: str | None) -> RetryBudget:
        """Return the budget of one host.

        Args:
            key: Host and port, such as ``example.com:443``; None for the one budget of
                all requests without a host.
        """
        return self._without_host if key is None else self._budgets.get(key)

    def acquire(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        """Ask the budget of the request's host."""
        return self._of(ctx).acquire(ctx, cause)

    def release(self, ctx: ClientRequestContext) -> None:
        """Give the token back to the budget of the request's host."""
        self._of(ctx).release(ctx)

    def on_success(self, ctx: ClientRequestContext) -> None:
        """Report a success to the budget of the request's host."""
        self._of(ctx).on_success(ctx)

    def on_failure(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        """Report a failure to the budget of the request's host."""
        self._of(ctx).on_failure(ctx, cause)

    def __repr__(self) -> str:
        return self._description

    def _refusal(self, ctx: ClientRequestContext, cause: Exception | None) -> str:
        return self._of(ctx)._refusal(ctx, cause)

    def _of(self, ctx: ClientRequestContext) -> RetryBudget:
        return self._budgets.of(ctx.request) or self._without_host


def count_failure(
    budget: RetryBudget, ctx: ClientRequestContext, cause: Exception | None
) -> float:
    """Count a failure like :meth:`RetryBudget.on_failure`; return the weight."""
    if (
        is_throttled(ctx, cause)
        or is_of_one_server(ctx, cause)
        or not budget._rounds.count(ctx, cause)
    ):
        return 0.0
    weight = budget._prices.of(ctx, cause)
    budget._failures += weight
    return weight


def prices_of(budget: RetryBudget) -> RetryPrices:
    """Return what retries cost a budget."""
    return budget._prices


def _check(
    deposit: object, capacity: object, brake_after: object, unserved_cost: object
) -> None:
    check.not_negative("deposit", deposit)
    if not is_finite(capacity) or capacity < 1:
        raise bad_argument("capacity", capacity, "finite and >= 1")
    check.integer("brake_after", brake_after, 1, or_none=True)
    if not is_finite(unserved_cost) or not 0 <= unserved_cost <= 1:
        raise bad_argument("unserved_cost", unserved_cost, ">= 0 and <= 1")


def _describe(
    deposit: float, capacity: float, brake_after: int | None, unserved_cost: float
) -> str:
    shown = f"deposit={deposit!r}, capacity={capacity!r}, brake_after={brake_after!r}"
    return shown if unserved_cost == 1 else f"{shown}, unserved_cost={unserved_cost!r}"
