"""What happens in calls of all kinds is what was recorded, whatever is changed inside.

Outcomes, logs in all views, the bytes of requests, and what every part of a chain was
told. ``record_stories.py`` records what is changed on purpose.
"""

import functools

import pytest
import story_text
from story_sets import LEFT_OUT, LOOP, SETS, drawn, is_all_here, tell
from story_text import differences

LARGE = ("calls", "requests", "elsewhere", "endpoints", "resumed", "tokens", "keys")
"""The sets that take seconds, of which all are told before a release only."""

recorded = functools.cache(story_text.read)

OTHERWISE = pytest.mark.skip(f"{LOOP} meets the end of a connection elsewhere")


def marked(group, name):
    is_left_out = group == "calls" and name in LEFT_OUT.get(LOOP, ())
    marks = [OTHERWISE] if is_left_out else []
    return pytest.param(group, name, id=f"{group}: {name}", marks=marks)


@pytest.mark.parametrize(
    ("group", "name"),
    [
        marked(group, name)
        for group, stories in SETS.items()
        for name in (drawn(stories) if group in LARGE else stories)
    ],
)
def test_story_is_the_one_that_was_recorded(group, name):
    """The first of two is what was recorded, the second what is told now."""
    expected = story_text.expected(recorded(group).get(name))

    assert expected is not None, "record it with record_stories.py"

    assert [] == differences(expected, tell(group, name))


@pytest.mark.skipif(not is_all_here(), reason="some stories need what is not installed")
@pytest.mark.parametrize("group", SETS)
def test_nothing_else_is_recorded(group):
    """A story that nobody tells any more is forgotten."""
    assert set() == set(recorded(group)) - set(SETS[group])
