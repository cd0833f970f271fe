"""Bodies that say that a server is busy, and rules that look at them."""

from __future__ import annotations

from fake_responses import unending

from aioretry_smithy import CircuitBreakerClient, CircuitBreakerRuleWithContent


def is_busy(content):
    return content is not None and content.startswith(b"busy")


def busy(**conditions):
    """Return a rule by which a body that says so is a failure."""
    return CircuitBreakerRuleWithContent(on_content=is_busy, **conditions)


def noting(seen, **conditions):
    """Return the same rule, which keeps what it is shown."""
    return CircuitBreakerRuleWithContent(
        on_content=lambda content: seen.append(content) or is_busy(content),
        **conditions,
    )


def guarded(breaker, rules, **settings):
    return CircuitBreakerClient.new_decorator(breaker, rules, **settings)


def silent(ctx, request):
    """Answer with a body that begins and never ends."""
    return unending(request, start=b"bu")
