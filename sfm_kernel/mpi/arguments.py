"""The call that a frame of the program is making: its source, and values of its arguments.

mpi4py makes a reduction of objects of its own messages, so MPI gets neither its operation nor its
root. They are computed once more from the source, if that can have no effect: from numbers, names
and operators alone.
"""

from __future__ import annotations

import ast
import linecache
import sys
from types import FrameType
from typing import Any

_REDUCTIONS = {"reduce": ("op", "root"), "allreduce": ("op",), "scan": ("op",), "exscan": ("op",)}
"""The methods, with their arguments behind the object."""

_DEFAULTS = {"op": "MPI.SUM", "root": "0"}

_HARMLESS = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.IfExp, ast.Compare,
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.FloorDiv, ast.Mod, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip

_LONGEST = 40
"""Characters of an argument's source that are shown where its value is unknown."""


def call_in(frame: FrameType) -> ast.Call | None:
    """The call that a frame is making; None if its source is unavailable or has no call there."""
    positions = list(frame.f_code.co_positions())
    line, last, start, end = positions[frame.f_lasti // 2]
    if line is None or last is None or start is None or end is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[line - 1 : last]
    if not lines:
        return None
    # Columns count bytes of UTF-8.
    lines[-1] = lines[-1].encode()[:end].decode(errors="ignore")
    lines[0] = lines[0].encode()[start:].decode(errors="ignore")
    try:
        node = ast.parse("".join(lines), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the parser can raise these
        return None
    return node if isinstance(node, ast.Call) else None


def name_of(function: ast.expr, frame: FrameType) -> str:
    """A function as the source has it; a method of mpi4py under another name gets its own."""
    source = ast.unparse(function)
    if not isinstance(function, ast.Name):
        return source
    value: Any = (frame.f_globals | frame.f_locals).get(function.id)
    owner = type(getattr(value, "__self__", None))
    if owner.__module__ != "mpi4py.MPI":
        return source
    return f"{owner.__name__}.{value.__name__}"


def given(frame: FrameType) -> list[tuple[str, str]]:
    """The operation and the root of a reduction of objects, in words; empty for any other call."""
    call = call_in(frame)
    if call is None:
        return []
    names = _REDUCTIONS.get(name_of(call.func, frame).rpartition(".")[2], ())
    if any(isinstance(node, ast.Starred) for node in call.args):
        return []
    nodes: dict[str | None, ast.expr] = dict(zip(names, call.args[1:], strict=False))
    nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
    if None in nodes:  # **options
        return []
    return [
        (name, _shown(nodes[name], frame) if name in nodes else _DEFAULTS[name]) for name in names
    ]


def _shown(node: ast.expr, frame: FrameType) -> str:
    """The value of an argument, or its source where that is unknown."""
    source = ast.unparse(node)
    try:
        value = _value(node, frame)
    except (ValueError, KeyError, TypeError, ArithmeticError):  # it is unknown
        return source if len(source) <= _LONGEST else f"{source[: _LONGEST - 3]}..."
    return str(value) if isinstance(value, int) else f"MPI.{value.__reduce__()}"


def _value(node: ast.expr, frame: FrameType) -> Any:
    """A number or a predefined operation. Raises an exception for anything else."""
    values = frame.f_globals | frame.f_locals
    module: Any = sys.modules["mpi4py.MPI"]
    known: dict[str, Any] = {"__builtins__": {}}
    for part in ast.walk(node):
        if not isinstance(part, _HARMLESS):
            raise ValueError(f"{ast.unparse(part)} may have effects")
        if isinstance(part, ast.Attribute) and not (
            isinstance(part.value, ast.Name) and values.get(part.value.id) is module
        ):
            raise ValueError(f"{ast.unparse(part)} may have effects")
        if isinstance(part, ast.Name):
            value = values[part.id]
            if type(value) not in (int, bool, module.Op) and value is not module:
                raise ValueError(f"{part.id} may have effects")
            known[part.id] = value
    value = eval(compile(ast.Expression(node), "<argument>", "eval"), known)
    if type(value) is int or (type(value) is module.Op and value.is_predefined):
        return value
    raise ValueError("the value is neither a number nor a predefined operation")
