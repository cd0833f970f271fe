"""Let many processes share retry budgets and open circuits, by Redis.

The extra ``redis`` installs ``redis``, whose asynchronous client it takes.
"""

from __future__ import annotations

from .._facade import publish
from ._budget import SharedRetryBudget
from ._circuits import SharedCircuitBreakers

__all__ = ["SharedCircuitBreakers", "SharedRetryBudget"]


publish()
