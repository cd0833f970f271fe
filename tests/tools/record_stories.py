"""Record the stories as they are told now; see ``docs/contributing.rst``.

    python tests/tools/record_stories.py [PART_OF_A_NAME ...]

Without arguments it records all of them. Run it with the newest aiohttp first, then
with each older one that ``tox.ini`` names.
"""

import sys
from pathlib import Path

sys.path.extend(str(folder) for folder in Path(__file__).parents[1].glob("support/**/"))

import story_text
from story_sets import SETS, is_all_here, tell
from story_text import differences

SHOWN = 5
"""Differences of a story that are printed."""


def record(group, parts):
    """Record the stories of a set whose names have one of these parts, if any."""
    recorded = story_text.read(group)
    kept = recorded
    if is_all_here():
        kept = {name: each for name, each in recorded.items() if name in SETS[group]}
    for name in sorted(SETS[group]):
        title = f"{group}: {name}"
        is_meant = any(part in title for part in parts or [""])
        if is_meant and (news := told(group, name, kept.get(name))):
            kept[name] = story_text.changed(kept.get(name), news)
    story_text.write(group, kept)


def told(group, name, packed):
    """Tell a story, and print what is new in it, which must be told twice.

    Return None where nothing is new.
    """
    story, before = tell(group, name), story_text.expected(packed)
    news = ["new"] if before is None else differences(before, story)
    if not news:
        return None
    if chance := differences(story, tell(group, name)):
        raise SystemExit(f"{group}: {name} is told in two ways: {chance[:SHOWN]}")
    print(f"{group}: {name}", *news[:SHOWN], sep="\n    ")
    return story


if __name__ == "__main__":
    for group in SETS:
        record(group, sys.argv[1:])
