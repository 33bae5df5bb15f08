"""Runs a program that measures from the command line, prints its table and saves its rows.

Such a program is a module: ``plan(options)`` lists what is measured (``results.Part``), and
``summary(rows)`` makes the table. It may have ``add_arguments(parser)``, which declares its
options, ``tables(rows)`` instead of one table, and ``plot(rows)``. Before it measures, it prints
``notes(options)``, or a line for each kind of ``COMPARED`` that is left out on this machine (see
``launched.absent``). If it is stopped, it shows the tables of the parts that it has finished.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.arguments import at_least
from sfm_kernel.lessons.measure.launched import left_out
from sfm_kernel.lessons.measure.machine import machine
from sfm_kernel.lessons.measure.results import Results
from sfm_kernel.lessons.measure.rows import table

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_program(commands: Commands, name: str, module: ModuleType) -> None:
    """Add a program that measures to the commands of a parser, for ``run``."""
    title = str(module.__doc__).partition("\n")[0]
    command = commands.add_parser(name, help=title, description=title)
    command.add_argument("--repeat", type=at_least(1), metavar="R", help="rounds to measure")
    command.add_argument("--quick", action="store_true", help="few and small: does it work?")
    command.add_argument("--json", type=Path, metavar="FILE", help="keep each row, as a line")
    command.add_argument("--resume", action="store_true", help="measure what the FILE lacks")
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
    except KeyboardInterrupt as stop:
        print(f"{name}: interrupted", file=sys.stderr)
        return 128 + int(stop.args[0] if stop.args else signal.SIGINT)


def _measure(name: str, module: ModuleType, options: argparse.Namespace) -> int:
    plot_file = getattr(options, "plot", None)
    for file in (options.json, plot_file):  # fails now, and not after minutes of measuring
        if file is not None and not file.parent.is_dir():
            raise SFMError(f"there is no folder {str(file.parent)!r} for {file.name!r}: create it")
    if options.resume and options.json is None:
        raise SFMError("--resume needs the results to go on with: --json FILE")
    asked = {
        f"--{option}": value for option, value in vars(options).items() if option not in _UNASKED
    }
    facts = machine()
    results = Results(options.json, {"command": name} | asked | facts, options.resume)
    print("\n".join(f"{fact}: {value}" for fact, value in facts.items()))
    compared = getattr(module, "COMPARED", ())
    for line in module.notes(options) if hasattr(module, "notes") else left_out(compared):
        print(line)
    parts = module.plan(options)
    print(results.announcement(parts) + "\n", flush=True)

    before = signal.signal(signal.SIGTERM, _stop)
    try:
        results.measure(parts)
    except ValueError as problem:  # about an option, unless something was measured
        if results.rows(unfinished=True):
            raise
        raise SFMError(str(problem)) from None
    except (KeyboardInterrupt, SFMError):
        if results.finished:
            _show(module, results)
        print(f"\n{name}: stopped; {results.kept()}", flush=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    _show(module, results)
    if options.json is not None:
        print(f"\nrows written to {options.json}")
    if plot_file is not None:
        module.plot(results.rows()).savefig(plot_file)
        print(f"\nplot written to {plot_file}")
    return 0


_UNASKED = ("command", "run", "json", "resume", "plot")
"""Options that change no measurement."""


def _stop(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _show(module: ModuleType, results: Results) -> None:
    measured = results.rows()
    if hasattr(module, "tables"):
        shown = [f"{title}\n{table(rows)}" for title, rows in module.tables(measured).items()]
    else:
        shown = [table(module.summary(measured))]
    print("\n" + "\n\n".join([*shown, *filter(None, [results.doubts()])]))
