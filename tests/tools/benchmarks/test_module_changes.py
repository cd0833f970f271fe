"""The way of a call through modules."""

from module_changes import Called, recorded, way_of

from aioretry_smithy import Backoff


def test_a_way_is_as_long_as_it_changes_the_module():
    """Each return to a module is one more change."""
    called = [Called("a", "f"), Called("a", "g"), Called("b", "h"), Called("a", "f")]

    assert [("a", ["f", "g"]), ("b", ["h"]), ("a", ["f"])] == way_of(called)


def test_a_way_goes_through_the_package_only():
    """What the package calls elsewhere is no part of it."""
    with recorded() as called:
        Backoff.of("fibonacci=200:10000").next_delay(1)

    assert called
    assert {"aioretry_smithy"} == {each.module.split(".")[0] for each in called}
