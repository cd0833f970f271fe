"""The logs of the calls that were made inside an attempt."""

from __future__ import annotations

import gc
import weakref

from calls import REQUEST, begin

from aioretry_smithy._text.mask import Mask


async def test_no_calls_inside():
    """A call that makes no others has none."""
    log = begin().log

    assert () == log.calls
    assert 0 == log.dropped_calls


async def test_calls_inside_are_in_order():
    """An attempt has the calls that it made; they are roots of their own."""
    outer = begin()
    attempt = outer.derive(REQUEST).log
    first, second = begin(inside=attempt).log, begin(inside=attempt).log

    assert (first, second) == attempt.calls
    assert () == outer.log.calls
    assert first.parent is None
    assert first is first.root


async def test_calls_after_the_hundredth_are_counted():
    """An attempt in an endless loop does not fill the memory."""
    log = begin().log
    logs = [begin(inside=log).log for _ in range(103)]

    assert tuple(logs[:100]) == log.calls
    assert 3 == log.dropped_calls


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
