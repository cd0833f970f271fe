"""Frozen classes that users may derive from."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from chains import NOW, response_of, retrying, session

from aioretry_smithy import (
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    Endpoint,
    OutlierDetection,
    RequestLog,
    RetryConfig,
    RetryDecision,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
)
from aioretry_smithy.smithy import (
    ExponentialRetryBackoffStrategy,
    RetryAction,
    RetryProfile,
    RetryStrategyOptions,
)

each_kind = pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        (RetryRule, {"statuses": [503]}, "statuses"),
        (RetryRuleWithContent, {"on_content": bool}, "on_content"),
        (CircuitBreakerRule, {"statuses": [503]}, "statuses"),
        (CircuitBreakerRuleWithContent, {"on_content": bool}, "on_content"),
        (RetryConfig, {"strategy": RetryStrategy.never()}, "max_total_attempts"),
        (RetryDecision, {"backoff": NOW}, "backoff"),
        (Endpoint, {"url": "http://a.example"}, "weight"),
        (OutlierDetection, {}, "max_ejected"),
        (ExponentialRetryBackoffStrategy, {}, "max_backoff"),
        (RetryAction, {"kind": None}, "kind"),
        (RetryProfile, {}, "max_attempts"),
        (RetryStrategyOptions, {}, "max_attempts"),
    ],
)


@each_kind
def test_subclass_has_attributes_of_its_own(kind, arguments, field):
    """Its fields stay as they are all the same."""

    class Own(kind):
        def __init__(self, owner):
            super().__init__(**arguments)
            self.owner = owner

    own = Own("shop")
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{field}'"):
        setattr(own, field, 1)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{field}'"):
        delattr(own, field)

    assert "shop" == own.owner
    del own.owner
    assert not hasattr(own, "owner")


@each_kind
def test_misspelt_field_is_named(kind, arguments, field):
    """As one that is spelt well is: neither can be assigned to."""
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'feild'"):
        kind(**arguments).feild = 1


async def test_rule_of_a_subclass_decides():
    """It is a rule like any other."""

    class Noted(RetryRule):
        def __init__(self, name, **conditions):
            super().__init__(**conditions)
            self.name = name

    rule = Noted("maintenance", statuses=[503], backoff=NOW)
    response = await response_of(session([503, 200], retrying(rule)))

    assert 2 == RequestLog.of(response).total_attempts
    assert "maintenance" == rule.name
