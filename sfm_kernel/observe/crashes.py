"""Sentences about the end of a C program: the signal that killed it, or the call that ended it.

``crash.rs`` and ``callers.rs`` of native/endpoint/src write the reports. The observer looks up the
lines of source, since a program that crashes can only report the address of an instruction.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress

from sfm_kernel.observe.code_locations import CodeLocation, code_location, in_line, source, words

_OURS = ("libmpi.so", "libmpi_abi.so", "libsfm.so")

_RUNTIMES = re.compile(r"/lib/(libcxx|libcxxabi|libunwind|libc|compiler_rt)/")
"""Sources of a compiler's libraries, which ziglang puts into the program with their lines."""

_NULL = 4096
"""The lowest address that can be mapped: an access below it has followed a null pointer."""

_FPE_INTDIV = 1

_CHECKS = {
    0: "an integer overflow",
    1: "code that cannot be reached was reached",
    3: "a division by zero, or an overflow of the quotient",
    5: "a number is too large for its new type",
    6: "a call of a function that has another type",
    10: "a value that its type does not have",
    11: "no return in a function that returns a value",
    12: "an integer overflow",
    13: "an integer overflow",
    16: "a null pointer is passed as an argument that must not be null",
    17: "a null pointer is returned by a function that must not return one",
    18: "an index out of bounds",
    19: "a pointer out of bounds",
    20: "a shift by too many bits",
    21: "an integer overflow",
    22: "a null pointer, or a pointer to a wrong address",
    24: "an array of no length",
}
"""clang's checks by their numbers (SanitizerHandler); gcc's have none."""


def crash_text(report: str) -> str:
    """The signal, its meaning and the line: "SIGFPE (a division by zero) in a.c, line 3"."""
    number, code, address, full, check = map(int, report.partition("\n")[0].split())
    name = _name(number)
    meaning = _meaning(number, code, address, bool(full), check)
    text = f"{name} ({meaning})" if meaning else name
    place = crash_place(report)
    return f"{text} in {place}" if place else text


def crash_place(report: str) -> str:
    """The line in which the signal came, with its source: 'a.c, line 3 (main): "x = 1 / 0;"'.

    Empty if it is unknown.
    """
    _, cell, *lines = report.split("\n")
    location = _innermost(lines, cell)
    line = _line(location) if location is not None else ""
    return words(location) + (f': "{line}"' if line else "")


def call_text(report: str) -> tuple[str, str]:
    """The line of a call, and the report about it: (" in a.c, line 3", "a text").

    The line is empty if it is unknown: other languages call through their own libraries.
    """
    cell, site, text = report.split("\n", 2)
    return in_line(_innermost([site], cell)), with_lines(text)


_MARKED = re.compile("\x02([^\x02\x03]*)\x03([0-9]{1,10})\x02")
"""A location in another process, inside a text: native/mpi/src/engine/origin.rs."""


def with_lines(text: str) -> str:
    """The text with such locations in words."""
    return _MARKED.sub(_in_words, text)


def _in_words(found: re.Match[str]) -> str:
    return in_line(code_location(found[1], int(found[2])))


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _meaning(number: int, code: int, address: int, full: bool, check: int) -> str:
    if code <= 0:  # a process sent it: by abort or kill
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


def _innermost(lines: list[str], cell: str) -> CodeLocation | None:
    """The program's innermost frame with a line; if none has a line, its innermost frame."""
    identity = cell.split("\t") if cell.count("\t") == 1 else ["", ""]
    known = None
    for line in filter(None, lines):
        address, build_id, binary = line.split(" ", 2)
        if os.path.basename(binary).startswith(_OURS):
            continue
        number = int(identity[0]) if identity[0].isdecimal() else None
        location = source(binary, int(address), build_id[1:], number, identity[1] or None)
        if location is not None and _RUNTIMES.search(location["file"]):
            continue
        if location is not None and location["line"]:
            return location
        known = known or location
    return known


def _line(location: CodeLocation) -> str:
    """The text of the line, if it can be read."""
    with suppress(OSError), open(location["file"], encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if number == location["line"]:
                return line.strip().strip("{}")
    return ""
