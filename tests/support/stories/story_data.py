"""Stories as they were recorded, packed, with variants by the version of aiohttp."""

import hashlib
import json
import lzma
from collections.abc import Mapping
from pathlib import Path

import aiohttp

FOLDER = Path(__file__).parents[2] / "matrices" / "stories"
LONG = 2000
"""Characters of a text, or bytes, above which its hash stands for it."""

NEWEST = "newest"
OLDER = next(
    (each for each in ("3.12", "3.13") if aiohttp.__version__.startswith(f"{each}.")),
    None,
)
"""The version of aiohttp, where some of its stories are others than the newest's."""


def plain(value):
    """Return a story as values that JSON has."""
    # What there is most of comes first: a story has hundreds of values.
    if isinstance(value, str):
        return _short(str(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)
    return _short(_text(value))


def _text(value):
    if isinstance(value, bytes):
        return f"bytes: {value.decode('latin-1')}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    return repr(value)


def _short(text):
    if len(text) <= LONG:
        return text
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:100]}... {len(text)} in all, {found[:16]}"


def read(group):
    """Return the stories of a set by name, each packed."""
    file = FOLDER / f"{group}.jsonl.xz"
    if not file.exists():
        return {}
    lines = lzma.decompress(file.read_bytes()).decode().splitlines()
    return dict(line.split("\t", 1) for line in lines)


def write(group, stories):
    """Store packed stories by name; the same stories give the same bytes."""
    lines = [f"{name}\t{stories[name]}\n" for name in sorted(stories)]
    FOLDER.mkdir(exist_ok=True)
    packed = lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / f"{group}.jsonl.xz").write_bytes(packed)


def expected(packed):
    """Return the story that is to be told with this version of aiohttp, or None."""
    variants = json.loads(packed or "{}")
    return variants.get(OLDER, variants.get(NEWEST))


def changed(packed, story):
    """Return a packed story as it is told now, with this version of aiohttp.

    An older version has a variant of its own where it differs from the newest.
    """
    variants = json.loads(packed or "{}")
    variants[OLDER or NEWEST] = story
    if OLDER and variants.get(NEWEST) == story:
        del variants[OLDER]
    return json.dumps(variants, sort_keys=True, separators=(",", ":"))
