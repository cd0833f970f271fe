"""The chains that limits are tested in."""

from __future__ import annotations

import pytest
from chains import pass_on


@pytest.fixture(params=[(), (pass_on,)], ids=["alone", "beside a decorator"])
def beside(request):
    """What stands in the chain besides: nothing, or a decorator of the user's."""
    return request.param
