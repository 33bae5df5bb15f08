"""Runs a program that measures from the command line, prints its table and saves its rows.

Such a program is a module: ``measure(options)`` yields rows, and ``summary(rows)`` makes the table.
It may have ``add_arguments(parser)``, which declares its options, ``tables(rows)`` instead of one
table, and ``plot(rows)``. Before it measures, it prints ``notes(options)``, or a line for each kind
of ``COMPARED`` that is left out on this machine (see ``launched.absent``). The tables and the
machine's facts go to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.arguments import at_least
from sfm_kernel.lessons.measure.launched import left_out
from sfm_kernel.lessons.measure.machine import machine
from sfm_kernel.lessons.measure.rows import Row, table, write_json

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_program(commands: Commands, name: str, module: ModuleType) -> None:
    """Add a program that measures to the commands of a parser, for ``run``."""
    title = str(module.__doc__).partition("\n")[0]
    command = commands.add_parser(name, help=title, description=title)
    command.add_argument("--repeat", type=at_least(1), metavar="R", help="rounds to measure")
    command.add_argument("--quick", action="store_true", help="few and small: does it work?")
    command.add_argument("--json", type=Path, metavar="FILE", help="write facts and rows there")
    if hasattr(module, "plot"):
        command.add_argument("--plot", type=Path, metavar="FILE", help="draw the rows (.png, .svg)")
    if hasattr(module, "add_arguments"):
        module.add_arguments(command)
    command.set_defaults(run=partial(_measure, name, module))


def run(parser: argparse.ArgumentParser, words: Sequence[str] | None = None) -> int:
    """Run the command of the words (default: ``sys.argv``); return its exit status."""
    options = parser.parse_args(words)
    if "run" not in options:
        parser.print_help()
        return 0
    name = options.command
    try:
        status: int = options.run(options)
        return status
    except SFMError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130


def _measure(name: str, module: ModuleType, options: argparse.Namespace) -> int:
    plot_file = getattr(options, "plot", None)
    for file in (options.json, plot_file):  # fails now, and not after minutes of measuring
        if file is not None and not file.parent.is_dir():
            raise SFMError(f"there is no folder {str(file.parent)!r} for {file.name!r}: create it")
    facts = machine()
    print("\n".join(f"{fact}: {value}" for fact, value in facts.items()))
    compared = getattr(module, "COMPARED", ())
    for line in module.notes(options) if hasattr(module, "notes") else left_out(compared):
        print(line)
    print(flush=True)

    measured = _all(module.measure(options))
    summary = module.summary(measured)
    if hasattr(module, "tables"):
        shown = [f"{title}\n{table(rows)}" for title, rows in module.tables(measured).items()]
    else:
        shown = [table(summary)]
    print("\n\n".join(shown))

    if options.json is not None:
        contents = {"benchmark": name, "machine": facts, "rows": measured}
        write_json(options.json, contents | {"summary": summary})
        print(f"\nrows written to {options.json}")
    if plot_file is not None:
        module.plot(measured).savefig(plot_file)
        print(f"\nplot written to {plot_file}")
    return 0


def _all(rows: Iterable[Row]) -> list[Row]:
    """The rows. A ValueError before the first one is about an option; nothing was measured."""
    watched = sys.stderr.isatty()
    measured: list[Row] = []
    try:
        for row in rows:
            measured.append(row)
            if watched:
                print(f"\r{len(measured)} measured", end="", file=sys.stderr, flush=True)
    except ValueError as problem:
        if measured:
            raise
        raise SFMError(str(problem)) from None
    if watched:
        print("\r" + " " * 24 + "\r", end="", file=sys.stderr)
    return measured
