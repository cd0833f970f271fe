"""What rules take, what they refuse, and how they show themselves."""

import asyncio
import dataclasses
import functools
import http
import math

import aiohttp
import pytest
from chains import bad_argument
from pairs import (
    BACKOFF,
    KINDS,
    MAY_LACK_CONDITIONS,
    OwnError,
    answer,
    attempt,
    has_hint,
    is_local,
    is_polite,
    later,
)

from aioretry_smithy import (
    Backoff,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    RetryRule,
    RetryRuleWithContent,
)

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@pytest.mark.parametrize(
    "settings", [{}, {"methods": ["GET"]}, {"request_filter": is_local}]
)
def test_rule_that_needs_a_condition_is_refused_without(kind, settings):
    """It would match nothing, or everything: nobody knows which is meant."""
    make, _ = KINDS[kind]
    if kind in MAY_LACK_CONDITIONS:
        assert make(**settings) == make(**settings, statuses=(), on_timeout=False)
        return
    with pytest.raises(ValueError) as caught:
        make(**settings, statuses=(), on_timeout=False)

    expected = (
        "at least one of statuses, status_classes, exceptions, on_timeout,"
        " on_unprocessed, slower_than, on_response"
    )
    expected += ", on_content" * (kind == "RetryRuleWithContent")
    assert f"conditions: None (expected: {expected})" == str(caught.value)


METHODS_EXPECTED = 'a collection such as ["GET"], or None'
STATUSES_EXPECTED = "a collection of integers in [100, 599]"
CLASSES_EXPECTED = "a collection of integers in [1, 5]"
EXCEPTIONS_EXPECTED = "classes derived from Exception or plain functions of the cause"
SECONDS_EXPECTED = "finite and > 0, or None"


class AsyncCall:
    """An object whose answer would have to be awaited."""

    async def __call__(self, argument):
        return True


BAD_ARGUMENTS = [
    ("methods", "GET", METHODS_EXPECTED),
    ("methods", b"GET", METHODS_EXPECTED),
    ("methods", [], METHODS_EXPECTED),
    ("methods", [""], METHODS_EXPECTED),
    ("methods", ["GET, PUT"], METHODS_EXPECTED),
    ("methods", [" GET"], METHODS_EXPECTED),
    ("methods", ["GET", 1], METHODS_EXPECTED),
    ("methods", 1, METHODS_EXPECTED),
    ("statuses", 503, STATUSES_EXPECTED),
    ("statuses", [99], STATUSES_EXPECTED),
    ("statuses", [600], STATUSES_EXPECTED),
    ("statuses", [503, "504"], STATUSES_EXPECTED),
    ("statuses", "503", STATUSES_EXPECTED),
    ("statuses", [503.0], STATUSES_EXPECTED),
    ("statuses", "", STATUSES_EXPECTED),
    ("statuses", b"\xc8", STATUSES_EXPECTED),
    ("statuses", None, STATUSES_EXPECTED),
    ("status_classes", [0], CLASSES_EXPECTED),
    ("status_classes", [6], CLASSES_EXPECTED),
    ("status_classes", [True], CLASSES_EXPECTED),
    ("status_classes", 5, CLASSES_EXPECTED),
    ("status_classes", bytearray([4, 5]), CLASSES_EXPECTED),
    ("exceptions", asyncio.CancelledError, EXCEPTIONS_EXPECTED),
    ("exceptions", [TimeoutError, BaseException], EXCEPTIONS_EXPECTED),
    ("exceptions", [TimeoutError()], EXCEPTIONS_EXPECTED),
    ("exceptions", TimeoutError(), EXCEPTIONS_EXPECTED),
    ("exceptions", ["TimeoutError"], EXCEPTIONS_EXPECTED),
    ("exceptions", "TimeoutError", EXCEPTIONS_EXPECTED),
    ("exceptions", "", EXCEPTIONS_EXPECTED),
    ("exceptions", int, EXCEPTIONS_EXPECTED),
    ("exceptions", AsyncCall(), EXCEPTIONS_EXPECTED),
    ("exceptions", None, EXCEPTIONS_EXPECTED),
    ("exceptions", later, EXCEPTIONS_EXPECTED),
    ("exceptions", [TimeoutError, later], EXCEPTIONS_EXPECTED),
    ("exceptions", [functools.partial(later)], EXCEPTIONS_EXPECTED),
    ("on_timeout", 1, "True or False"),
    ("on_unprocessed", BACKOFF, "True or False"),
    ("slower_than", 0, SECONDS_EXPECTED),
    ("slower_than", -1.0, SECONDS_EXPECTED),
    ("slower_than", math.inf, SECONDS_EXPECTED),
    ("slower_than", math.nan, SECONDS_EXPECTED),
    ("slower_than", True, SECONDS_EXPECTED),
    ("slower_than", "2", SECONDS_EXPECTED),
    ("request_filter", True, "a plain function of the request, or None"),
    ("request_filter", later, "a plain function of the request, or None"),
    ("request_filter", AsyncCall(), "a plain function of the request, or None"),
    ("on_response", 503, "a plain function of the context, or None"),
    (
        "on_response",
        functools.partial(later),
        "a plain function of the context, or None",
    ),
]


def bad_arguments():
    """Give each kind one bad value of each argument; the others go round the kinds."""
    seen = set()
    for number, (name, value, expected) in enumerate(BAD_ARGUMENTS):
        for position, kind in enumerate(KINDS):
            if name not in seen or number % len(KINDS) == position:
                yield kind, name, value, expected
        seen.add(name)


@pytest.mark.parametrize(("kind", "name", "value", "expected"), [*bad_arguments()])
def test_bad_arguments(kind, name, value, expected):
    """Conditions that nothing can meet, or of a wrong type, are refused at once."""
    make, _ = KINDS[kind]
    with bad_argument(name, value, expected):
        make(**{"statuses": [503], name: value})


CONTENT_EXPECTED = "a plain function of bytes or None, or None"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        (
            "on_content",
            [b"busy", later, functools.partial(later), AsyncCall()],
            CONTENT_EXPECTED,
        ),
        ("max_content_length", [0, -1, 1.5, 4.0, True, None, "9"], "an int >= 1"),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        RetryRuleWithContent,
        RetryRuleWithContent.no_retry,
        CircuitBreakerRuleWithContent,
    ],
)
def test_bad_arguments_about_content(make, name, values, expected):
    """A function that cannot be asked, or a bad length, is refused as well."""
    for value in values:
        with bad_argument(name, value, expected):
            make(**{"statuses": [503], name: value})


@every_kind
def test_unknown_arguments(kind):
    """A slip of the pen is told, by all that make rules."""
    make, _ = KINDS[kind]

    with pytest.raises(TypeError, match="status_code"):
        make(status_code=[503])


@every_kind
def test_settings_are_stored_in_one_form(kind):
    """However they were written: equal rules are equal."""
    make, _ = KINDS[kind]
    rule = make(
        methods=iter(["get", "Put", "GET"]),
        statuses=range(502, 505),
        status_classes=[4],
        exceptions=OwnError,
        slower_than=2,
    )

    assert rule == make(
        methods={"PUT", "GET"},
        statuses=[504, http.HTTPStatus.BAD_GATEWAY, 503, 503],
        status_classes=(4,),
        exceptions=[OwnError],
        slower_than=2.0,
    )
    assert ({"GET", "PUT"}, {502, 503, 504}) == (rule.methods, rule.statuses)
    assert (OwnError,) == rule.exceptions
    assert hash(rule) == hash(dataclasses.replace(rule))
    assert (is_polite,) == make(exceptions=is_polite).exceptions


@every_kind
async def test_rule_can_be_replaced(kind):
    """A copy with other conditions keeps the rule's answer."""
    make, expected = KINDS[kind]
    rule = dataclasses.replace(make(statuses=[503]), statuses=[429])

    assert make(statuses=[429]) == rule
    assert expected is answer(rule, await attempt(status=429))


NAMES = {
    "RetryRule": RetryRule,
    "RetryRuleWithContent": RetryRuleWithContent,
    "CircuitBreakerRule": CircuitBreakerRule,
    "Backoff": Backoff,
    "aiohttp": aiohttp,
}


@every_kind
def test_repr_is_the_call_that_makes_it(kind):
    """``describe()`` shows it."""
    make, answered = KINDS[kind]
    name = "CircuitBreakerRule.failure" if kind == "CircuitBreakerRule" else kind
    backoff = ", backoff=Backoff.fixed(0.5)" if answered is BACKOFF else ""
    rule = make(
        methods=["put", "get"],
        statuses=[503, http.HTTPStatus.CONFLICT],
        status_classes=[5],
        exceptions=[TimeoutError, aiohttp.ClientPayloadError],
        on_timeout=True,
        on_unprocessed=True,
        slower_than=1.5,
    )

    expected = (
        f"{name}(methods=['GET', 'PUT'], statuses=[409, 503], status_classes=[5],"
        " exceptions=[TimeoutError, aiohttp.client_exceptions.ClientPayloadError],"
        f" on_timeout=True, on_unprocessed=True, slower_than=1.5{backoff})"
    )
    assert expected == repr(rule)
    assert rule == eval(repr(rule), NAMES)


@pytest.mark.parametrize("kind", MAY_LACK_CONDITIONS)
def test_repr_without_arguments(kind):
    """Arguments that are not given are not shown."""
    make, _ = MAY_LACK_CONDITIONS[kind]

    assert f"{kind}()" == repr(make())


def test_repr_names_functions():
    """A function has no call that makes it."""
    rule = RetryRule(
        request_filter=is_local, exceptions=[OwnError, is_polite], on_response=has_hint
    )

    assert all(name in repr(rule) for name in ("is_local", "is_polite", "has_hint"))
