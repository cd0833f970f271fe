"""Let many processes share retry budgets and open circuits, by Redis.

The extra ``redis`` installs ``redis``, whose asynchronous client it takes.
"""

from __future__ import annotations

from ._shared.budget import SharedRetryBudget

__all__ = ["SharedRetryBudget"]
