"""``python -m sfm_kernel.lessons``: runs a program of the notebooks, or copies the notebooks.

python -m sfm_kernel.lessons pingpong --quick    measures, prints a table
python -m sfm_kernel.lessons copy DIR            copies the notebooks into a new folder
python -m sfm_kernel.lessons students DIR        copies the notebooks without their solutions
python -m sfm_kernel.lessons solved DIR          writes them with the solutions, for teachers
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from sfm_kernel.lessons.measure.command import add_program, run
from sfm_kernel.lessons.students import NOTEBOOKS, laid_out, solved, students

PROGRAMS = ("cpi", "pingpong", "dot", "chunks", "reductions", "speedes", "sites")
COPIES = {
    "copy": (laid_out, "copy the notebooks into a new or empty folder, to work with them"),
    "students": (students, "copy the notebooks without their solutions; copies are overwritten"),
    "solved": (solved, "write them with the solutions, for teachers: nbgrader's source/ folder"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command of the command line; return the exit status."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(
        "python -m sfm_kernel.lessons",
        description="Run a program of the notebooks, or copy the notebooks for a class.",
    )
    commands = parser.add_subparsers(dest="command", metavar="NAME", title="commands")
    for name in PROGRAMS:
        add_program(commands, name, import_module(f"sfm_kernel.lessons.{name}"))
    for name, (write, title) in COPIES.items():
        command = commands.add_parser(name, help=title, description=title)
        command.add_argument("folder", type=Path, help="the folder to write; it may exist")
        where = "their folder; default: the package's"
        command.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help=where)
        command.set_defaults(run=partial(_copy, write))
    if words and not words[0].startswith("-") and words[0] not in commands.choices:
        parser.error(
            f"there is no {words[0]!r}, but {', '.join(commands.choices)}. Comparisons with other "
            f"libraries need a checkout of sfm-kernel: `python -m benchmarks` lists them"
        )
    return run(parser, words)


def _copy(write: Callable[[Path, Path], Sequence[Path]], options: argparse.Namespace) -> int:
    written = write(options.notebooks, options.folder)
    print(f"{len(written)} notebooks in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
