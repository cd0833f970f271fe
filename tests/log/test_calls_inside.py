"""The logs of the calls that were made inside an attempt."""

from __future__ import annotations

import gc
import weakref

from aioretry_smithy import ClientRequestContext, HttpRequest

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
    """Who keeps the log of a call inside keeps nothing of what it was made in."""
    outer, inner = call(), call().log
    outer.log._add_call(inner)
    outer_log = weakref.ref(outer.log)
    gc.disable()
    try:
        del outer

        assert outer_log() is None
    finally:
        gc.enable()
