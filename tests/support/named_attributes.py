"""The attributes that source code names."""

from __future__ import annotations

import ast


def attribute_of_another(node: ast.AST) -> str | None:
    """Return the attribute of another object that a node names, also in a text."""
    match node:
        case ast.Attribute(ast.Name("self" | "cls")):
            return None
        case ast.Attribute(attr=name) | ast.Call(args=[_, ast.Constant(str(name)), *_]):
            return name
    return None
