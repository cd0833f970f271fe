"""The logs of the calls that were made inside an attempt."""

from __future__ import annotations

import gc
import weakref

from aioretry_smithy import ClientRequestContext, HttpRequest
from aioretry_smithy._masking.mask import Mask

PLAIN = HttpRequest("GET", "http://example.com/")


def call():
    return ClientRequestContext(PLAIN)


async def test_no_calls_inside():
    """A call that makes no others has none, and no list is made for them."""
    log = call().log

    assert () == log.calls
    assert 0 == log.dropped_calls
    assert log._calls is None


async def test_calls_inside_are_in_order():
    """An attempt has the calls that it made; they are roots of their own."""
    outer, first, second = call(), call().log, call().log
    attempt = outer.derive(PLAIN).log
    attempt._add_call(first)
    attempt._add_call(second)

    assert (first, second) == attempt.calls
    assert () == outer.log.calls
    assert first.parent is None
    assert first is first.root


async def test_calls_after_the_hundredth_are_counted():
    """An attempt in an endless loop does not fill the memory."""
    log, logs = call().log, [call().log for _ in range(103)]
    for inner in logs:
        log._add_call(inner)

    assert tuple(logs[:100]) == log.calls
    assert 3 == log.dropped_calls


async def test_call_inside_does_not_keep_the_call_around_it_alive():
    """The log of a call inside, kept alone, keeps nothing of the call around it."""
    outer, inner = call(), call().log
    outer.log._add_call(inner)
    outer_log = weakref.ref(outer.log)
    gc.disable()
    try:
        del outer

        assert outer_log() is None
    finally:
        gc.enable()


def masking(*names):
    return ClientRequestContext(PLAIN, None, None, None, Mask((), names)).log


async def test_secrets_of_a_tree_are_hidden_in_all_of_it():
    """A failure inside is shown around it as well, and each view shows all inside."""
    outer, middle, inner = masking("a"), masking("b"), masking("c")
    outer._add_call(middle)
    middle._add_call(inner)
    url = "http://example.com/?a=1&b=2&c=3&d=4"

    assert "http://example.com/?a=****&b=****&c=****&d=4" == outer.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == middle.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == inner.mask.text(url)


async def test_mask_stays_where_a_call_inside_hides_no_more():
    """Most calls hide the usual secrets, so that no mask is made for them."""
    outer, same, more = call().log, call().log, masking("a")
    before = outer.mask
    outer._add_call(same)
    unchanged = outer.mask
    outer._add_call(more)
    after = outer.mask
    outer._add_call(masking("a"))

    assert before is unchanged
    assert after is outer.mask is not before
