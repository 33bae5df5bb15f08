"""``%%sfm c`` and ``%%sfm c++``: programs and functions in C, in cells.

A cell with ``main`` is a program of several processes. One without defines functions: later C cells
may call them, and so may Python, in this notebook and on the engines (``sfm.c.f(x)``).
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

_USAGE = "%%sfm c [-n 4 | A,B] [--fast] [--stdin TEXT|FILE] [arguments]"

_Cell = tuple[Source, Declared]
_Engines = Callable[[list[str]], Sequence[Any]]
_Load = Callable[..., None]


class CCells:
    """The C cells of one notebook."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._cells: OrderedDict[object, _Cell] = OrderedDict()  # those that define functions

    def run(self, words: Sequence[str], text: str, engines: _Engines, load: _Load) -> None:
        """Run a cell.

        Args:
            words: those of the magic's line, the language first.
            text: what is below it.
            engines: those that words name, all for none. It raises UsageError where one of the
                words is no engine's, or there are no engines at all.
            load: calls a function with arguments on engines.
        Raises:
            UsageError: the words mean nothing.
            CompileError: the cell does not compile.
            CellFailed, CellInterrupted: the program failed, or was stopped.
        """
        language, given = words[0], _parse(words)
        number, identity = self._lines.cell
        name = f"cell {number}" if number is not None else "this cell"
        # One line was the magic's own.
        source = Source(CELL, f"\n{text}", language, name)
        before = self._before(identity, source)
        if defines_main(text):
            self._program(source, before, given, engines)
        else:
            self._functions(source, before, given, engines, load)

    # ---- programs

    def _program(
        self, source: Source, before: list[Source], given: argparse.Namespace, engines: _Engines
    ) -> None:
        size, arguments = given.size, list(given.words)
        if size is None:
            size, arguments = _size(arguments, engines)
        number, identity = self._lines.cell
        words = ["-n", str(size), *(["--label"] if size > 1 else [])]
        if given.timeout is not None:
            words += ["--timeout", given.timeout]
        environment = {"SFM_CELL": f"{number or ''}\t{identity or ''}"}
        with _stdin(given.stdin) as stdin:
            with programs.launcher(stdin=stdin, environment=environment) as run:
                built = compiler.build([source], before=before, fast=given.fast)
                if built.warnings:
                    print(built.warnings, end="", file=sys.stderr, flush=True)
                run([*words, built.path, *arguments])

    # ---- functions

    def _functions(
        self,
        source: Source,
        before: list[Source],
        given: argparse.Namespace,
        engines: _Engines,
        load: _Load,
    ) -> None:
        number, identity = self._lines.cell
        assert source.text is not None
        own = declared(source.text, source.language)
        built = compiler.build([source], before=before, fast=given.fast, shared=True)
        if built.warnings:
            print(built.warnings, end="", file=sys.stderr, flush=True)
        same = [cell for one, cell in self._cells.items() if one != identity]
        kept = [about for one, about in same if one in before]
        whole = Declared(
            [text for about in [*kept, own] for text in about.types],
            {name: text for about in [*kept, own] for name, text in about.functions.items()},
            source.language,
        )
        arguments = source, before, whole, given.fast, source.shown
        loaded = functions.load(*arguments)
        members = engines(given.words) if given.words else []
        with contextlib.suppress(UsageError):  # there need not be any
            members = members or engines([])
        load(members, _load, *arguments)
        self._take(identity if identity is not None else number, source, own)
        names = ", ".join(f"sfm.c.{name}" for name in own.functions if name in loaded)
        why = "" if names else problem(next(iter(own.functions), ""))
        print(f"{names or 'no function'}{_places(members)}{why and f': {why}'}")

    def _take(self, identity: object, source: Source, own: Declared) -> None:
        """Remember a cell; it replaces those that have defined one of its functions."""
        for other, (_, about) in list(self._cells.items()):
            if other == identity or about.functions.keys() & own.functions.keys():
                del self._cells[other]
        self._cells[identity] = source._replace(name=source.shown), own

    def _before(self, identity: object, source: Source) -> list[Source]:
        """The earlier cells whose functions this one may call."""
        assert source.text is not None
        own = declared(source.text, source.language).functions.keys()
        return [
            cell
            for other, (cell, about) in self._cells.items()
            if other != identity
            and cell.language in (source.language, "c")
            and not about.functions.keys() & own
        ]


def _load(*arguments: Any) -> None:
    """Load functions in an engine."""
    from sfm_kernel.c.functions import functions as there

    there.load(*arguments)


class Alone:
    """What ``sfm`` is in a notebook without engines: only ``sfm.c``."""

    c = functions

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"no engines, and so no sfm.{name}: `%sfm start 4` starts four")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%sfm c: {message}. It takes: {_USAGE}")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog=f"%%sfm {words[0]}", usage=_USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("-n", "-np", dest="size", type=ranks)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--stdin")
    parser.add_argument("--timeout")
    given, rest, position = words[1:], [], 0
    while position < len(given) and given[position].startswith("-"):
        position += 2 if given[position] in ("-n", "-np", "--stdin", "--timeout") else 1
    options, rest = list(given[:position]), list(given[position:])
    if options and options[-1] == "--":
        options.pop()
    found = parser.parse_args(options)
    found.words = rest
    return found


def _size(words: list[str], engines: _Engines) -> tuple[int, list[str]]:
    """How many processes: as many as engines are named first, or as there are; and the rest."""
    if words:
        with contextlib.suppress(UsageError):  # then it is an argument of the program
            return len(engines(words[:1])), words[1:]
    with contextlib.suppress(UsageError):
        return len(engines([])) or DEFAULT_SIZE, words
    return DEFAULT_SIZE, words


@contextmanager
def _stdin(wanted: str | None) -> Iterator[Any]:
    """What a program reads: a file, a text, or (None) what the user is asked for."""
    if wanted is None:
        yield None
    elif os.path.isfile(wanted):
        with open(wanted, "rb") as file:
            yield file
    else:
        with tempfile.TemporaryFile() as file:
            file.write(wanted.encode() + (b"" if wanted.endswith("\n") else b"\n"))
            file.seek(0)
            yield file


def _places(members: Sequence[Any]) -> str:
    if not members:
        return " in this notebook"
    return f" in this notebook and on {', '.join(str(member.name) for member in members)}"


def language(line: str) -> list[str]:
    """The words of a magic's line, if it is for a C cell; else none.

    Raises:
        UsageError: its quotes are not closed.
    """
    first = line.split(None, 1)[:1]
    if not first or first[0] not in LANGUAGES:
        return []
    try:
        return shlex.split(line)
    except ValueError as problem:
        raise UsageError(f"%%sfm {first[0]}: {problem}") from None
