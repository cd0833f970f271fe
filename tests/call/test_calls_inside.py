"""The logs of the calls that were made inside an attempt."""

from __future__ import annotations

import gc
import weakref

from calls import begin

from aioretry_smithy._text.mask import Mask


async def test_call_inside_does_not_keep_the_call_around_it_alive():
    """The log of a call inside, kept alone, keeps nothing of the call around it."""
    outer = begin()
    _inner = begin(inside=outer.log).log
    outer_log = weakref.ref(outer.log)
    gc.disable()
    try:
        del outer

        assert outer_log() is None
    finally:
        gc.enable()


def masking(name, inside=None):
    return begin(mask=Mask((), [name]), inside=inside).log


async def test_secrets_of_a_tree_are_hidden_in_all_of_it():
    """A failure inside is shown around it as well, and each view shows all inside."""
    outer = masking("a")
    middle = masking("b", outer)
    inner = masking("c", middle)
    url = "http://example.com/?a=1&b=2&c=3&d=4"

    assert "http://example.com/?a=****&b=****&c=****&d=4" == outer.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == middle.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == inner.mask.text(url)


async def test_mask_stays_where_a_call_inside_hides_no_more():
    """Most calls hide the usual secrets, so that no mask is made for them."""
    outer = begin().log
    before = outer.mask
    begin(inside=outer)
    unchanged = outer.mask
    masking("a", outer)
    after = outer.mask
    masking("a", outer)

    assert before is unchanged
    assert after is outer.mask is not before
