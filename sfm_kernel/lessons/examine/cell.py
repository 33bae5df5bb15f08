"""Finds the student's cell, checks that it can run, and selects the statements that run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from sfm_kernel.c.text import declared, without_comments

STUB = "..."
"""The text that a student has to replace; alone on its line, also in C."""

_PLAIN = ("%%sfm", "%%px", "%%time", "%%capture")
"""Magics whose cells contain Python for engines or for this notebook."""

_SENDS = {"send", "recv", "recv_nb", "peek", "regcb", "print"}


class Attempt(NamedTuple):
    """A cell that defines the function of an exercise.

    Attributes:
        text: its code, without the magic's line.
        number: the cell's number, as the notebook shows it.
        before: the number of the cell's lines in front of the code.
        language: "python" or "c".
    """

    text: str
    number: int
    before: int
    language: str = "python"

    def where(self, line: int) -> str:
        """The cell and line of a line of ``text``, in words."""
        return f"cell {self.number}, line {line + self.before}"


class Unready(Exception):
    """The reason why an attempt cannot be tried; ``begun`` is False if it is still the stub."""

    def __init__(self, why: str, begun: bool = True) -> None:
        super().__init__(why)
        self.begun = begun


def find(name: str, cells: Iterable[tuple[int, str]]) -> Attempt | None:
    """The last cell that defines a function, or tries to; None if no cell does.

    ``cells``: numbers and texts of the cells that were run, in that order.
    """
    python = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}\b", re.MULTILINE)
    for number, text in reversed(list(cells)):
        attempt = _attempt(number, text)
        if attempt is None:
            continue
        if attempt.language == "python" and python.search(attempt.text):
            return attempt
        if attempt.language == "c" and _defines_in_c(attempt.text, name):
            return attempt
    return None


def _attempt(number: int, text: str) -> Attempt | None:
    blank = len(text) - len(text.lstrip("\n"))
    text = text.lstrip("\n")
    if not text.startswith("%%"):
        return Attempt(text, number, blank)
    line, _, body = text.partition("\n")
    magic, *words = line.split()
    if magic not in _PLAIN:
        return None
    in_c = magic == "%%sfm" and words[:1] in (["c"], ["c++"])
    return Attempt(body, number, blank + 1, "c" if in_c else "python")


def _defines_in_c(text: str, name: str) -> bool:
    if name in declared(text, "c").functions:
        return True
    # `declared` finds nothing if a brace is missing: the cell is the attempt nevertheless.
    return bool(re.search(rf"(?m)^\w[\w \t*]*\b{name}\s*\([^;{{]*\)\s*\{{", without_comments(text)))


def ready(attempt: Attempt, name: str) -> str:
    """The code of an attempt, without lines that only IPython understands.

    Raises:
        Unready: it is unfinished, or has a syntax error; names the line.
    """
    if attempt.language == "c":
        for line, text in enumerate(attempt.text.splitlines(), 1):
            if text.strip() in (STUB, f"/* {STUB} */", f"// {STUB}"):
                raise Unready(_unsolved(attempt, name, line), begun=False)
        return attempt.text
    text, tree = _parsed(attempt)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            break
    else:
        raise Unready(
            f"{name} in cell {attempt.number} is inside another block: "
            f"write `def {name}(…):` at the beginning of a line"
        )
    if isinstance(node, ast.AsyncFunctionDef):
        raise Unready(
            f"{name} in {attempt.where(node.lineno)} is `async def`: remove `async`, "
            "send and recv are ordinary functions"
        )
    if line := _stub(node):
        raise Unready(_unsolved(attempt, name, line), begun=False)
    return text


def definitions(text: str) -> ast.Module:
    """The statements of a cell that a process runs: imports, definitions and constants.

    Other statements, with which the student tries them, are left out: they may be for certain
    engines only.
    """
    tree = ast.parse(text)
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    tree.body = [node for node in tree.body if _is_definition(node, defined | _SENDS)]
    return tree


def _unsolved(attempt: Attempt, name: str, line: int) -> str:
    return (
        f"not solved yet: {name} still has `{STUB}` in {attempt.where(line)}. "
        "Replace it by your lines, run that cell, then this one"
    )


def _parsed(attempt: Attempt) -> tuple[str, ast.Module]:
    try:
        return attempt.text, ast.parse(attempt.text)
    except SyntaxError as problem:
        # IPython runs lines such as `%time x`. But Python's own lines may begin with %, too.
        text = re.sub(r"(?m)^([ \t]*)[%!][^\n]*", r"\1pass", attempt.text)
        try:
            return text, ast.parse(text)
        except SyntaxError:
            raise Unready(_syntax(attempt, problem)) from None
    except ValueError as problem:  # a null byte
        raise Unready(f"cell {attempt.number} cannot be read: {problem}") from None


def _syntax(attempt: Attempt, problem: SyntaxError) -> str:
    line = problem.lineno or 1
    lines = attempt.text.splitlines()
    shown = lines[line - 1].strip() if line <= len(lines) else ""
    return (
        f"your cell has a syntax error in line {line + attempt.before} (cell {attempt.number}): "
        f"{problem.msg}{shown and f': `{shown}`'}. Mend it, run that cell, then this one"
    )


def _stub(function: ast.FunctionDef) -> int:
    """The line that makes a function unfinished; 0 if it is finished."""
    for node in ast.walk(function):
        if isinstance(node, ast.Expr) and ast.unparse(node) == STUB:
            return node.lineno
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                return node.lineno
    return 0


def _is_definition(node: ast.stmt, excluded: set[str]) -> bool:
    """Whether a statement is an import, a definition or a constant.

    An assignment that calls one of the ``excluded`` functions is none of these.
    """
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return False
    called = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return not any(
        (isinstance(function, ast.Name) and function.id in excluded)
        or (isinstance(function, ast.Attribute) and function.attr in _SENDS)
        for function in called
    )
