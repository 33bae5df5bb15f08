"""A trial of a function in C: compiles a program around it, and launches that as an MPI program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from sfm_kernel.c import compiler
from sfm_kernel.c.compiler import CELL, Source
from sfm_kernel.c.text import declared, defines_main
from sfm_kernel.errors import CompileError
from sfm_kernel.lessons.examine.cell import Attempt, Unready
from sfm_kernel.lessons.examine.check import Check
from sfm_kernel.lessons.examine.trial import Trial, arguments

_LINES = 20
"""Lines of a launcher's report that the student sees."""

_READ = {"int": "atoi({})", "long": "atol({})", "double": "atof({})"}
_WRITE = {"int": "%d", "long": "%ld", "double": "%.17g"}

_MAIN = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{{
    int rank;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char **given = argv + 2 + {count} * rank;
    {kind} result = {name}({arguments});
    snprintf(path, sizeof path, "%s/%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    fprintf(file, "{format}", result);
    fclose(file);
    MPI_Finalize();
    return 0;
}}
"""


def built(check: Check, attempt: Attempt) -> str:
    """The program around an attempt.

    Raises:
        Unready: it does not compile, or is not the function that the exercise asks for.
    """
    cell_name = f"cell {attempt.number}"
    if defines_main(attempt.text):
        raise Unready(
            f"{cell_name} has a `main`: move it to another cell, below. "
            f"The check has its own, which calls {check.name}"
        )
    kind, kinds = _types(check.signature)
    functions = declared(attempt.text, "c").functions
    if check.name in functions and _types(functions[check.name]) != (kind, kinds):
        raise Unready(
            f"{cell_name} defines `{functions[check.name]}`; "
            f"the exercise asks for `{check.signature}`"
        )
    main = _MAIN.format(
        count=len(kinds), name=check.name, kind=kind, format=_WRITE[kind],
        arguments=", ".join(_READ[kind].format(f"given[{nth}]") for nth, kind in enumerate(kinds)),
    )  # fmt: skip
    cell = Source(CELL, "\n" * attempt.before + attempt.text, "c", cell_name)
    try:
        return compiler.build([Source("the check", main)], before=[cell]).path
    except CompileError as problem:
        raise Unready(f"your cell does not compile:\n{problem}") from None


def trial(check: Check, attempt: Attempt, size: int, seed: int) -> Trial:
    """Like ``examine.trial.trial``, for a function in C. No rank begins late.

    Raises:
        Unready: see ``built``.
    """
    program = built(check, attempt)
    given, _ = arguments(check, size, seed)
    found = Trial(size, seed, given)
    words = [str(argument) for rank in given for argument in rank]
    launcher = [sys.executable, "-P", "-m", "sfm_kernel.mpi", "-n", str(size), "--label"]
    launcher += ["--detect", "--timeout", str(check.seconds)]
    with tempfile.TemporaryDirectory(prefix="sfm-check-") as folder:
        ended = subprocess.run(
            [*launcher, program, folder, *words], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", env={**os.environ, "SFM_CELL": f"{attempt.number}\t"},
        )  # fmt: skip
        if ended.returncode == 0:
            found.values = [_value(os.path.join(folder, str(rank)), check) for rank in range(size)]
    found.printed = [_printed_by(ended.stdout, rank) for rank in range(size)]
    if ended.returncode != 0:
        text = _without_prefixes(ended.stderr)
        if "Deadlock" in text:
            found.hangs = text
        elif "not ended after" in text or "--timeout" in text or ended.returncode == 124:
            found.slow = text
        else:
            found.failed = -1, f"failed:\n{text or f'exit status {ended.returncode}'}"
    return found


def _without_prefixes(report: str) -> str:
    """A launcher's report, without the rank and program in front of each line."""
    lines = [re.sub(r"^(\[\d+\] )?(sfm: )?", "", line) for line in report.strip().splitlines()]
    return "\n".join(line for line in lines[:_LINES] if line != "the other ranks were ended")


def _value(path: str, check: Check) -> Any:
    with open(path) as file:
        text = file.read()
    return float(text) if _types(check.signature)[0] == "double" else int(text)


def _types(signature: str) -> tuple[str, list[str]]:
    """The type of the result, and the types of the arguments."""
    head, _, rest = signature.partition("(")
    arguments = [argument.strip() for argument in rest.rpartition(")")[0].split(",")]
    return _type(head), [_type(argument) for argument in arguments if argument not in ("", "void")]


def _type(words: str) -> str:
    found = re.findall(r"\w+|\*", words)
    return " ".join(found[:-1]) if len(found) > 1 else "".join(found)


def _printed_by(text: str, rank: int) -> str:
    label = f"[{rank}] "
    lines = [line.removeprefix(label) for line in text.splitlines() if line.startswith(label)]
    return "\n".join(lines)
