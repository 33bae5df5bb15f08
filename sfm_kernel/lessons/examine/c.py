"""A trial of a function in C: compiles a program around it, and launches that as an MPI program."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

from sfm_kernel.c import compiler
from sfm_kernel.c.compiler import CELL, Source
from sfm_kernel.c.text import declared, defines_main
from sfm_kernel.errors import CompileError
from sfm_kernel.lessons.examine.cell import Attempt, Unready
from sfm_kernel.lessons.examine.check import Arguments, Check
from sfm_kernel.lessons.examine.trial import Trial, arguments
from sfm_kernel.spawn import process

_LINES = 20
"""Lines of a launcher's report that the student sees."""

_READ = {"int": "atoi({})", "long": "atol({})", "double": "atof({})"}
_WRITE = {"int": "%d", "long": "%ld", "double": "%.17g"}

_MAIN = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **given)
{{
    MPI_Init(&argc, &given);
    {kind} result = {name}({arguments});
    printf("\\n{result}{format}\\n", result);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}}
"""

_RESULT = "the result of this rank: "
"""Before the result, in the last line that a rank prints: no other rank can print that for it."""


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
        name=check.name, kind=kind, format=_WRITE[kind], result=_RESULT,
        arguments=", ".join(_READ[kind].format(f"given[{n}]") for n, kind in enumerate(kinds, 1)),
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
    ended = _launched(program, attempt.number, check.seconds, given)
    texts = [_printed_by(ended.stdout, rank) for rank in range(size)]
    found.printed = [re.sub(rf"(?s)(.*)\n{_RESULT}.*", r"\1", text) for text in texts]
    values = [_value(text, check) for text in texts]
    if ended.returncode == 0 and None not in values:
        found.values = values
    elif ended.returncode == 0:
        found.failed = values.index(None), "returned, but its output was closed or turned elsewhere"
    else:
        text = _without_prefixes(ended.stderr)
        if "Deadlock" in text:
            found.hangs = text
        elif "not ended after" in text or "--timeout" in text or ended.returncode == 124:
            found.slow = text
        else:
            found.failed = -1, f"failed:\n{text or f'exit status {ended.returncode}'}"
    return found


def _launched(
    program: str, cell: int, seconds: float, given: Arguments
) -> subprocess.CompletedProcess[str]:
    """Run the program; each rank gets its own arguments alone, by a pipe: all can read a command
    line."""
    words: list[str] = []
    for rank, numbers in enumerate(given):
        words += [":"] * (rank > 0) + ["-n", "1", program, *map(str, numbers)]
    read, write = os.pipe()
    with open(write, "w") as pipe:
        json.dump(words, pipe)  # a few numbers for each rank: the pipe has room for them
    launcher = process.python("sfm_kernel.mpi", "--words", str(read))
    launcher += ["--label", "--detect", "--timeout", str(seconds)]
    environment = {**os.environ, "SFM_CELL": f"{cell}\t"}
    try:
        return subprocess.run(
            launcher, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            env=environment, pass_fds=[read],
        )  # fmt: skip
    finally:
        os.close(read)


def _without_prefixes(report: str) -> str:
    """A launcher's report, without the rank and program in front of each line."""
    lines = [re.sub(r"^(\[\d+\] )?(sfm: )?", "", line) for line in report.strip().splitlines()]
    return "\n".join(line for line in lines[:_LINES] if line != "the other ranks were ended")


def _value(text: str, check: Check) -> Any:
    """The result in the output of a rank; None if there is none."""
    shown = text.rpartition(f"\n{_RESULT}")[2].partition("\n")[0]
    try:
        return float(shown) if _types(check.signature)[0] == "double" else int(shown)
    except ValueError:
        return None


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
