"""One object for each scope, or one for all."""

import pytest
from chains import bad_argument, in_threads

from aioretry_smithy.smithy.limiters import StandardRetryQuota
from aioretry_smithy.smithy.strategies import PerScope


@pytest.fixture
def quotas():
    """A quota for each scope."""
    return PerScope(StandardRetryQuota)


def test_scope_keeps_its_object(quotas):
    """One scope, one object; another scope, another one."""
    first = quotas.get("a")

    assert first is quotas.get("a")
    assert first is not quotas.get("b")
    assert quotas.given is None


def test_scope_without_a_name_is_one_too(quotas):
    """None and the empty name are the same scope."""
    nameless = quotas.get()

    assert nameless is quotas.get(None) is quotas.get("")
    assert nameless is not quotas.get("a")


def test_given_object_is_for_all_scopes():
    """Then none is made."""
    quota = StandardRetryQuota()
    quotas = PerScope(lambda: pytest.fail("made one"), quota)

    assert quota is quotas.given is quotas.get() is quotas.get("a")


def test_falsy_object_is_given_all_the_same():
    """Only None is no object."""
    assert 0 == PerScope(lambda: 1, 0).get("a")


def test_scopes_are_forgotten_in_the_end(quotas):
    """A crawler meets any number of hosts; 1024 of them are remembered."""
    oldest, used_again = quotas.get("oldest"), quotas.get("used again")
    for host in range(1022):
        quotas.get(str(host))
    assert used_again is quotas.get("used again")
    assert oldest is quotas.get("oldest")

    quotas.get("used again")
    quotas.get("one more")
    second_oldest = quotas.get("1")
    for host in range(1022):
        quotas.get(f"other {host}")

    assert second_oldest is quotas.get("1")
    assert oldest is not quotas.get("oldest")


@pytest.mark.parametrize("scope", [443, b"example.com", ("example.com", 443)])
@pytest.mark.parametrize("given", [None, StandardRetryQuota()])
def test_scope_is_text(scope, given):
    """A scope that is no name is refused, also where it would make no difference."""
    with bad_argument("token_scope", scope, "a str, or None"):
        PerScope(StandardRetryQuota, given).get(scope)


@pytest.mark.usefixtures("eager_threads")
def test_threads_get_the_same_object_for_a_scope(quotas):
    """A scope that is met by several threads at once still has one object."""
    found = []
    in_threads(
        lambda: found.extend((scope, quotas.get(str(scope))) for scope in range(20))
    )

    assert 160 == len(found)
    assert 20 == len({*found})
