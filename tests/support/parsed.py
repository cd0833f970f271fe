"""Source code, parsed once in each process, and the attributes that it names."""

import ast
import gc
from functools import cache


def nodes_in(text):
    """Return the nodes of a module, in the order of ``ast.walk``.

    The collector of garbage waits meanwhile: of thousands of nodes none is any.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        nodes = [ast.parse(text)]
        for node in nodes:
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    nodes.append(value)
                elif type(value) is list:
                    nodes += [each for each in value if isinstance(each, ast.AST)]
    finally:
        if was_enabled:
            gc.enable()
    return nodes


@cache
def text_of(path):
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(path):
    """Return the nodes of a file; kept, so for the package and not for its tests."""
    return nodes_in(text_of(path))


def attribute_of_another(node):
    """Return the attribute of another object that a node names, also in a text."""
    match node:
        case ast.Attribute(ast.Name("self" | "cls")):
            return None
        case ast.Attribute(attr=name) | ast.Call(args=[_, ast.Constant(str(name)), *_]):
            return name
    return None
