"""Both lanes of a call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from aioretry_smithy._session import seam


@contextlib.contextmanager
def ordinary_lane_only() -> Iterator[None]:
    """Let no session that is made in the block have a short lane."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seam, "short_lane_of", lambda *_: None, raising=False)
        yield


LANES = {"as built": contextlib.nullcontext, "ordinary": ordinary_lane_only}
"""By name: the block in which a session is made."""
