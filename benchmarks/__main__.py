"""``python -m benchmarks NAME``, in a checkout: runs a benchmark, prints its tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks import BENCHMARKS
from sfm_kernel.lessons.measure.command import add_program, run


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description="Run a benchmark: print its tables and the machine's facts, save its rows. "
        "`python -m sfm_kernel.lessons` runs the measurements of the notebooks.",
    )
    commands = parser.add_subparsers(dest="command", metavar="NAME", title="benchmarks")
    for name in BENCHMARKS:
        add_program(commands, name, import_module(f"benchmarks.{name}"))
    return run(parser, words)


if __name__ == "__main__":
    sys.exit(main())
