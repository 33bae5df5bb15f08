"""What has killed a program in C, in words, from what its last handler has told; and where the call
was that has ended one.

Who writes it are ``crash.rs`` and ``callers.rs`` of native/endpoint/src. The lines of source are
found here, since a program that crashes can do no more than say in which of its instructions.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress

from sfm_kernel.observe.code_locations import CodeLocation, in_line, source, words

_OURS = ("libmpi.so", "libmpi_abi.so", "libsfm.so")

_RUNTIMES = re.compile(r"/lib/(libcxx|libcxxabi|libunwind|libc|compiler_rt)/")
"""Sources of a compiler's own libraries, which ziglang puts into the program with their lines."""

_NULL = 4096
"""Nothing ever is at a lower address: whoever goes there has followed a null pointer."""

_FPE_INTDIV = 1

_CHECKS = {
    0: "an integer is too large",
    1: "this cannot be reached",
    3: "a division by zero, or its result is too large",
    5: "a number is too large for its new type",
    6: "a function of another type",
    10: "a value that its type does not have",
    11: "no return in a function that gives a value",
    12: "an integer is too large",
    13: "an integer is too large",
    16: "a null pointer is passed where none may be",
    17: "a null pointer is returned where none may be",
    18: "an index out of bounds",
    19: "a pointer out of bounds",
    20: "a shift by too many bits",
    21: "an integer is too large",
    22: "a null pointer, or one to a wrong address",
    24: "an array of no length",
}
"""Checks of clang's by their numbers (SanitizerHandler); those of gcc have none."""


def told(report: str) -> str:
    """The signal, what it means here, and the line: "SIGFPE (a division by zero) in a.c, line 3".

    ``report``: the text of the report.
    """
    first, cell, *lines = report.split("\n")
    number, code, address, full, check = map(int, first.split())
    name = _name(number)
    meaning = _meaning(number, code, address, bool(full), check)
    where = _place(lines, cell)
    text = f"{name} ({meaning})" if meaning else name
    if where is None:
        return text
    line = _line(where)
    return f"{text} in {words(where)}" + (f': "{line}"' if line else "")


def called(report: str) -> tuple[str, str]:
    """Where a call was made, and what is told of it: (" in a.c, line 3", "a text").

    The place is empty where no line is known: other languages call through libraries of theirs.
    """
    cell, site, text = report.split("\n", 2)
    return in_line(_place([site], cell)), text


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _meaning(number: int, code: int, address: int, full: bool, check: int) -> str:
    if code <= 0:  # somebody has sent it: with abort, with kill
        return ""
    if number in (signal.SIGSEGV, signal.SIGBUS):
        if full:
            return "the stack is full: an endless recursion, or an array too large for it"
        return f"address {address:#x}" + (": a null pointer" if address < _NULL else "")
    if number == signal.SIGFPE:
        return "a division by zero" if code == _FPE_INTDIV else ""
    if number in (signal.SIGILL, signal.SIGTRAP):
        return f"a check has failed: {_CHECKS[check]}" if check in _CHECKS else "a check has failed"
    return ""


def _place(lines: list[str], cell: str) -> CodeLocation | None:
    """The innermost frame that is the program's own; one with a line goes before all others."""
    identity = cell.split("\t") if cell.count("\t") == 1 else ["", ""]
    known = None
    for line in filter(None, lines):
        address, build_id, binary = line.split(" ", 2)
        if os.path.basename(binary).startswith(_OURS):
            continue
        number = int(identity[0]) if identity[0].isdecimal() else None
        where = source(binary, int(address), build_id[1:], number, identity[1] or None)
        if where is not None and _RUNTIMES.search(where["file"]):
            continue
        if where is not None and where["line"]:
            return where
        known = known or where
    return known


def _line(where: CodeLocation) -> str:
    """What stands there, if it can be read."""
    with suppress(OSError), open(where["file"], encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if number == where["line"]:
                return line.strip().strip("{}")
    return ""
