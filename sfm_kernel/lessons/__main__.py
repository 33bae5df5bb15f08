"""Copies notebooks for a class: ``python -m sfm_kernel.lessons students DIR``, ``solved DIR``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sfm_kernel.lessons.students import NotebookError, solved, students

_HELP = """\
students  copies the notebooks without their solutions
solved    writes them with the solutions, for teachers: nbgrader's source/ folder
"""


def main() -> int:
    """Do what the command line says; the exit status."""
    parser = argparse.ArgumentParser(
        "python -m sfm_kernel.lessons",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["students", "solved"])
    parser.add_argument("folder", type=Path, help="where to; it may exist")
    parser.add_argument(
        "--notebooks", type=Path, default=Path("notebooks"), help="where they are (./notebooks)"
    )
    given = parser.parse_args()
    write = students if given.what == "students" else solved
    try:
        written = write(given.notebooks, given.folder)
    except (NotebookError, OSError) as problem:
        print(f"lessons: {problem}", file=sys.stderr)
        return 1
    print(f"{len(written)} notebooks in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
