"""Count modules, lines of code and of imports, and places where types are left open.

    python tests/tools/benchmarks/code_size.py
    python tests/tools/benchmarks/code_size.py FOLDER ...

Lines of code are those that are neither empty nor comments nor docstrings; imports are
among them. A module without any code is not counted. ``Any`` is counted as a word
wherever it stands, ``cast`` and ``type: ignore`` where they act.
"""

import argparse
import ast
import io
import re
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "aioretry_smithy", ROOT / "tests")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


class Size(NamedTuple):
    """What was counted in some source."""

    modules: int = 0
    code_lines: int = 0
    imports: int = 0
    anys: int = 0
    casts: int = 0
    ignores: int = 0


def size_of(source):
    """Count in the text of a module."""
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    tree = ast.parse(source)
    lines = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    code_lines = len(lines.difference(docstring_lines(ast.walk(tree))))
    return Size(
        modules=int(code_lines > 0),
        code_lines=code_lines,
        imports=len({*_import_lines(tree)}),
        anys=len(re.findall(r"\bAny\b", source)),
        casts=sum(_is_cast(node) for node in ast.walk(tree)),
        ignores=sum(
            token.type == tokenize.COMMENT and "type: ignore" in token.string
            for token in tokens
        ),
    )


def size_of_folder(folder):
    """Add up all modules in it."""
    sizes = [size_of(path.read_text("utf-8")) for path in folder.rglob("*.py")]
    return Size(*map(sum, zip(*sizes, strict=True)))


def docstring_lines(nodes):
    """Find the strings that are statements: those below an attribute are docs, too."""
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield from range(node.lineno, node.end_lineno + 1)


def _import_lines(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from range(node.lineno, node.end_lineno + 1)


def _is_cast(node):
    match node:
        case ast.Call(func=ast.Name(id="cast")):
            return True
    return False


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    print(f"{'':24}", *(f"{heading:>10}" for heading in Size._fields))
    for folder in parser.parse_args().folders:
        size = size_of_folder(folder)
        print(f"{folder.name:24}", *(f"{count:10,}" for count in size))


if __name__ == "__main__":
    main()
