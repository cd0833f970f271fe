"""A docstring's first line stands alone, in the words of the field."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from parsed import nodes_in, nodes_of

import aioretry_smithy

PACKAGE = Path(aioretry_smithy.__file__).parent

MOST = 0.2
"""Share of pronouns and fillers in a first line; it only goes down."""

FILLERS = frozenset(
    "also another anything as else everything he here it its itself nobody nothing"
    " one ones other others same so somebody something such that their theirs them"
    " then there these they this those thus too what whatever where which who whom"
    " whose".split()
)

PICTURES = frozenset(
    "care goal goals heed heeds lend lends lent passage passages rehearsal rehearsals"
    " rehearse rehearsed rehearses standing told".split()
)
"""Pictures of what has a name: a permit, a placeholder, a snapshot, a weak reference,
the hot path, panic mode, a fallback."""

REFERENCE = re.compile(r"``[^`]*``|:\w+:`[^`]*`")
WORD = re.compile(r"[A-Za-z']+")


def first_lines(nodes):
    """Yield the number and the first paragraph of each docstring in a module."""
    for node in nodes:
        body = getattr(node, "body", None)
        # That of a lambda is no list.
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(docstring))):
                    first = docstring.strip().split("\n\n")[0]
                    yield statement.lineno, " ".join(first.split())


def words_of(line):
    """Return the words of a line in lower case; a reference is one noun."""
    return [word.lower() for word in WORD.findall(REFERENCE.sub("noun", line))]


def share_of_fillers(line):
    words = words_of(line)
    return sum(word in FILLERS for word in words) / len(words)


def names_in(nodes):
    """Yield the number and the name of all that a module defines."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def parts_of(name):
    """Return the words that a name is made of."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def found(judge, things_in):
    """Return what is at fault, as ``file:line: thing``."""
    return [
        f"{path.relative_to(PACKAGE)}:{number}: {thing}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, thing in things_in(nodes_of(path))
        if judge(thing)
    ]


def test_first_lines_name_what_they_are_about():
    """Pronouns refer to what an editor's hover does not show."""
    assert [] == found(lambda line: share_of_fillers(line) > MOST, first_lines)


def test_first_lines_have_the_words_of_the_field():
    """A mechanism that has a name is called by it."""
    assert [] == found(lambda line: PICTURES & {*words_of(line)}, first_lines)


def test_names_are_no_pictures():
    """A name says what readers know from elsewhere."""
    assert [] == found(lambda name: PICTURES & parts_of(name), names_in)


def test_line_of_pronouns_is_seen():
    """Half of the words are such; what is quoted counts as a noun."""
    assert 0.5 == share_of_fillers("Return what ``it`` there.")


def test_attributes_are_documented_too():
    """What stands below an attribute is its docstring; further paragraphs are free."""
    text = (
        'class A:\n    """Some\n    thing.\n\n    It."""\n    b: int\n    """Its."""\n'
    )

    assert [(2, "Some thing."), (7, "Its.")] == list(first_lines(nodes_in(text)))


def test_words_of_a_name_are_seen():
    """Both spellings of names have words."""
    assert [{"is", "lent"}, {"told", "of"}] == [*map(parts_of, ["_is_lent", "ToldOf"])]
