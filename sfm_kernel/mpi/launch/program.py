"""Runs a script, a module or a text as ``__main__``, as Python itself would."""

from __future__ import annotations

import io
import linecache
import os
import runpy
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pkgutil import get_importer
from types import ModuleType, TracebackType

_PACKAGE = __file__.removesuffix("/mpi/launch/program.py")

_run_module = runpy._run_module_as_main  # type: ignore[attr-defined]
"""Python's own function for -m: the module's names are those of ``__main__``, and remain there."""


def run(words: Sequence[str]) -> None:
    """Run ``prog.py``, ``-m module``, ``-c text`` or ``-`` (from stdin), with its arguments.

    ``sys.argv``, ``sys.path`` and ``__main__`` become the program's, and remain so. ``sys.path[0]``
    is replaced.

    Raises: the program's error; ``without_frames`` removes this module's frames from its traceback.
    """
    kind, *arguments = words
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    if kind == "-m":
        sys.argv = arguments
        _set_path(os.getcwd())
        _run_module(arguments[0])
    elif kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        _set_path("")
        _run_text(arguments[0], "<string>", main)
    elif kind == "-":
        sys.argv = list(words)
        _set_path("")
        _run_text(sys.stdin.read(), "<stdin>", main)
    else:
        sys.argv = list(words)
        _run_file(kind, main)


_MPI4PY = "src/mpi4py/"
"""The folder that mpi4py's compiled code names as that of its files."""


def without_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on, without mpi4py's own frames, which have no
    source; None if it has none (a SyntaxError)."""
    ours = {__file__, "<frozen runpy>", runpy.__file__}
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    shown = trace
    while shown is not None:
        below = shown.tb_next
        while below is not None and below.tb_frame.f_code.co_filename.startswith(_MPI4PY):
            below = below.tb_next
        shown.tb_next = below
        shown = below
    return trace


def location(error: BaseException) -> str:
    """The program's line in which it was raised: not a library's, unless that is the program."""
    libraries = (_PACKAGE, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")
    trace = traceback.extract_tb(without_frames(error.__traceback__))
    own = [frame for frame in trace if not frame.filename.startswith(libraries)]
    frames = own or [frame for frame in trace if not frame.filename.startswith("<frozen")]
    if not frames:
        return "before its first line"
    last = frames[-1]
    line = f": {last.line}" if last.line else ""
    return f"{last.filename}, line {last.lineno}, in {last.name}{line}"


def _run_text(text: str, name: str, main: ModuleType) -> None:
    # Tracebacks find the lines of the text here. Python itself does this since 3.13.
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)


def _run_file(path: str, main: ModuleType) -> None:
    if get_importer(path) is not None:  # a folder, or an archive, with a __main__.py
        _set_path(path)
        _run_module("__main__", False)
        return
    _set_path(os.path.dirname(os.path.realpath(path)))
    loader = SourceFileLoader("__main__", path)
    main.__dict__.update(__file__=os.path.abspath(path), __cached__=None, __loader__=loader)
    with io.open_code(os.path.abspath(path)) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _set_path(first: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = first
