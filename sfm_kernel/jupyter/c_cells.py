"""``%%sfm c`` and ``%%sfm c++``: programs and functions in C, in cells.

A cell with ``main`` is a program that runs in several processes. A cell without ``main`` defines
functions: later C cells and Python may call them, in this notebook and on the engines
(``sfm.c.f(x)``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from IPython.core.error import UsageError

from sfm_kernel.c import compiler
from sfm_kernel.c.compiler import CELL, Source
from sfm_kernel.c.functions import functions, problem
from sfm_kernel.c.text import Declared, declared, defines_main
from sfm_kernel.jupyter import programs
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.mpi.launch.mpiexec import DEFAULT_SIZE, ranks

LANGUAGES = ("c", "c++")

_USAGE = "%%sfm c [-n 4 | A,B] [--fast | --asan] [--stdin TEXT|FILE] [arguments]"

_Cell = tuple[Source, Declared]
_Engines = Callable[[list[str]], Sequence[Any]]
_Load = Callable[..., None]


class CCells:
    """The C cells of one notebook."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._cells: OrderedDict[object, _Cell] = OrderedDict()  # the cells that define functions

    def run(self, words: Sequence[str], text: str, engines: _Engines, load: _Load) -> None:
        """Run a cell.

        Args:
            words: the words of the magic's line, beginning with the language.
            text: the lines below it.
            engines: returns the engines that words name; all if there are no words. Raises
                UsageError if a word names no engine, or if there are no engines.
            load: calls a function with arguments on engines.
        Raises:
            UsageError: the words cannot be parsed.
            CompileError: the cell does not compile.
            CellFailed, CellInterrupted: the program failed, or was stopped.
        """
        language, options = words[0], _parse(words)
        number, identity = self._lines.cell
        name = f"cell {number}" if number is not None else "this cell"
        # The empty line stands for the magic's line, so that line numbers are right.
        source = Source(CELL, f"\n{text}", language, name)
        before = self._before(identity, source)
        if defines_main(text):
            self._run_program(source, before, options, engines)
        elif options.asan:
            raise UsageError(
                "%%sfm c: --asan is for programs, and this cell has no main: Python, which calls "
                "its functions, was built without AddressSanitizer. Call them from a cell with main"
            )
        else:
            self._define_functions(source, before, options, engines, load)

    # ---- programs

    def _run_program(
        self, source: Source, before: list[Source], options: argparse.Namespace, engines: _Engines
    ) -> None:
        size, arguments = options.size, list(options.words)
        if size is None:
            size, arguments = _size(arguments, engines)
        number, identity = self._lines.cell
        words = ["-n", str(size), *(["--label"] if size > 1 else [])]
        if options.timeout is not None:
            words += ["--timeout", options.timeout]
        environment = {"SFM_CELL": f"{number or ''}\t{identity or ''}"}
        with _stdin(options.stdin) as stdin:
            with programs.launcher(stdin=stdin, environment=environment) as run:
                made = {"fast": options.fast, "asan": options.asan}
                built = compiler.build([source], before=before, **made)
                if built.warnings:
                    print(built.warnings, end="", file=sys.stderr, flush=True)
                run([*words, built.path, *arguments])

    # ---- functions

    def _define_functions(
        self,
        source: Source,
        before: list[Source],
        options: argparse.Namespace,
        engines: _Engines,
        load: _Load,
    ) -> None:
        number, identity = self._lines.cell
        assert source.text is not None
        fresh = declared(source.text, source.language)
        built = compiler.build([source], before=before, fast=options.fast, shared=True)
        if built.warnings:
            print(built.warnings, end="", file=sys.stderr, flush=True)
        earlier = [cell for other, cell in self._cells.items() if other != identity]
        callable_cells = [declarations for cell, declarations in earlier if cell in before]
        cells = [*callable_cells, fresh]
        combined = Declared(
            [text for cell in cells for text in cell.types],
            {name: text for cell in cells for name, text in cell.functions.items()},
            source.language,
        )
        arguments = source, before, combined, options.fast, source.shown
        loaded = functions.load(*arguments)
        members = engines(options.words) if options.words else []
        with contextlib.suppress(UsageError):  # a notebook without engines
            members = members or engines([])
        load(members, _load, *arguments)
        self._remember(identity if identity is not None else number, source, fresh)
        names = ", ".join(f"sfm.c.{name}" for name in fresh.functions if name in loaded)
        why = "" if names else problem(next(iter(fresh.functions), ""))
        print(f"{names or 'no function'}{_where_loaded(members)}{why and f': {why}'}")

    def _remember(self, identity: object, source: Source, fresh: Declared) -> None:
        """Remember a cell; it replaces the cells that have defined one of its functions."""
        for other, (_, declarations) in list(self._cells.items()):
            if other == identity or declarations.functions.keys() & fresh.functions.keys():
                del self._cells[other]
        self._cells[identity] = source._replace(name=source.shown), fresh

    def _before(self, identity: object, source: Source) -> list[Source]:
        """The earlier cells whose functions this cell may call."""
        assert source.text is not None
        defined = declared(source.text, source.language).functions.keys()
        return [
            cell
            for other, (cell, declarations) in self._cells.items()
            if other != identity
            and cell.language in (source.language, "c")
            and not declarations.functions.keys() & defined
        ]


def _load(*arguments: Any) -> None:
    """Load functions in an engine."""
    from sfm_kernel.c.functions import functions as engine_functions

    engine_functions.load(*arguments)


class WithoutEngines:
    """``sfm`` in a notebook without engines: it has only ``sfm.c``."""

    c = functions

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no engines, so there is no sfm.{name}: `%sfm start 4` starts four")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%sfm c: {message}. It takes: {_USAGE}")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog=f"%%sfm {words[0]}", usage=_USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("-n", "-np", dest="size", type=ranks)
    checks = parser.add_mutually_exclusive_group()
    checks.add_argument("--fast", action="store_true")
    checks.add_argument("--asan", action="store_true")
    parser.add_argument("--stdin")
    parser.add_argument("--timeout")
    rest, position = words[1:], 0
    while position < len(rest) and rest[position].startswith("-"):
        position += 2 if rest[position] in ("-n", "-np", "--stdin", "--timeout") else 1
    options = list(rest[:position])
    if options and options[-1] == "--":
        options.pop()
    parsed = parser.parse_args(options)
    parsed.words = list(rest[position:])
    return parsed


def _size(words: list[str], engines: _Engines) -> tuple[int, list[str]]:
    """The number of processes, and the words that remain as arguments of the program.

    The number is that of the engines that the first word names, or of all engines.
    """
    if words:
        with contextlib.suppress(UsageError):  # the word is an argument of the program
            return len(engines(words[:1])), words[1:]
    with contextlib.suppress(UsageError):
        return len(engines([])) or DEFAULT_SIZE, words
    return DEFAULT_SIZE, words


@contextmanager
def _stdin(given: str | None) -> Iterator[Any]:
    """The program's input: a file, a text, or None if the user is to be asked for it."""
    if given is None:
        yield None
    elif os.path.isfile(given):
        with open(given, "rb") as file:
            yield file
    else:
        with tempfile.TemporaryFile() as file:
            file.write(given.encode() + (b"" if given.endswith("\n") else b"\n"))
            file.seek(0)
            yield file


def _where_loaded(members: Sequence[Any]) -> str:
    if not members:
        return " in this notebook"
    return f" in this notebook and on {', '.join(str(member.name) for member in members)}"


def language(line: str) -> list[str]:
    """The words of a magic's line if it introduces a C cell; otherwise none.

    Raises:
        UsageError: a quotation mark is not closed.
    """
    first = line.split(None, 1)[:1]
    if not first or first[0] not in LANGUAGES:
        return []
    try:
        return shlex.split(line)
    except ValueError as problem:
        raise UsageError(f"%%sfm {first[0]}: {problem}") from None
