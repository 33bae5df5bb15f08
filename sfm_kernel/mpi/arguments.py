"""The call that a frame of the program is making: its source, and values of its arguments.

mpi4py makes a reduction of objects of its own messages, so MPI gets neither its operation nor its
root. They are computed once more from the source, if that can have no effect: from numbers, names
and operators alone.
"""

from __future__ import annotations

import ast
import linecache
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

_REDUCTIONS = {"reduce": ("op", "root"), "allreduce": ("op",), "scan": ("op",), "exscan": ("op",)}
"""The methods, with their arguments behind the object."""

_DEFAULTS = {
    name: ast.parse(text, mode="eval").body for name, text in {"op": "MPI.SUM", "root": "0"}.items()
}

_HARMLESS = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.IfExp, ast.Compare,
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.FloorDiv, ast.Mod, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip

_LONGEST = 40
"""Characters of an argument's source that are shown where its value is unknown."""


def call_in(frame: FrameType) -> ast.Call | None:
    """The call that a frame is making; None if its source is unavailable or has no call there."""
    linecache.lazycache(frame.f_code.co_filename, frame.f_globals)
    return _call_at(frame.f_code, frame.f_lasti)


@lru_cache(256)
def _call_at(code: CodeType, instruction: int) -> ast.Call | None:
    positions = list(code.co_positions())
    line, last, start, end = positions[instruction // 2]
    if line is None or last is None or start is None or end is None:
        return None
    lines = linecache.getlines(code.co_filename)[line - 1 : last]
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
    nodes = _arguments(call, name_of(call.func, frame).rpartition(".")[2])
    return [(name, _shown(node, frame)) for name, node in nodes.items()]


def _arguments(call: ast.Call, method: str) -> dict[str, ast.expr]:
    """The operation and the root of a reduction of objects; empty for any other call."""
    names = _REDUCTIONS.get(method, ())
    if any(isinstance(node, ast.Starred) for node in call.args):
        return {}
    nodes: dict[str | None, ast.expr] = dict(zip(names, call.args[1:], strict=False))
    nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
    if None in nodes:  # **options
        return {}
    return {name: nodes.get(name, _DEFAULTS[name]) for name in names}


def _shown(node: ast.expr, frame: FrameType) -> str:
    """The value of an argument, or its source where that is unknown."""
    value = _value(node, frame)
    if value is None:
        source = ast.unparse(node)
        return source if len(source) <= _LONGEST else f"{source[: _LONGEST - 3]}..."
    return str(value) if isinstance(value, int) else f"MPI.{value.__reduce__()}"


def reduction(frame: FrameType) -> tuple[str, str | None, int | None, bool] | None:
    """The reduction of objects that a frame is making on a communicator; None for any other call.

    Its method, its operation (None if it is not a predefined one), its root (None if it has none),
    and whether these are the same whenever this line is run.
    """
    call = call_in(frame)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    method, nodes = call.func.attr, _arguments(call, call.func.attr)
    if not nodes or not isinstance(_object(call.func.value, frame), sys.modules["mpi4py.MPI"].Comm):
        return None
    values = {name: _value(node, frame) for name, node in nodes.items()}
    op, root = values["op"], values.get("root")
    is_fixed = all(map(_is_fixed, nodes.values()))
    op = None if op is None or isinstance(op, int) else f"MPI_{op.__reduce__()}"
    return method, op, root if isinstance(root, int) and root >= 0 else None, is_fixed


def _object(node: ast.expr, frame: FrameType) -> object:
    """The object that a name, or an attribute that is no property, stands for; None if unknown."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if not isinstance(node, ast.Attribute):
        return None
    owner = _object(node.value, frame)
    try:
        return vars(owner).get(node.attr)
    except TypeError:
        return None


def _is_fixed(node: ast.expr) -> bool:
    """Whether it has no names but those of a module, such as ``MPI.SUM``."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    owners = [part.value for part in ast.walk(node) if isinstance(part, ast.Attribute)]
    return all(name in owners for name in names)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """A number or a predefined operation; None for anything else."""
    try:
        value = _computed(node, frame.f_globals | frame.f_locals)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return None
    is_op = type(value) is sys.modules["mpi4py.MPI"].Op and value.is_predefined
    return value if is_op or type(value) is int else None


def _computed(node: ast.expr, values: dict[str, Any]) -> Any:
    """The value of an expression. Raises an exception if it is unknown."""
    module: Any = sys.modules["mpi4py.MPI"]
    if node is _DEFAULTS["op"]:
        values = {"MPI": module}
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
    return eval(compile(ast.Expression(node), "<argument>", "eval"), known)
