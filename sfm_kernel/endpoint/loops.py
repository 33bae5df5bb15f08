"""Loops of a program's code: whether they have an end, and whether they look at the time or try at
random."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Mapping
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dis

Namespace = Mapping[str, Any]

_CLOCKS = {"monotonic", "now", "perf_counter", "process_time", "utcnow", "Wtime"}
_CLOCKS |= {"monotonic_ns", "perf_counter_ns", "time_ns"}
_CLOCKS.add("repeat")  # the rest of its repetitions is in no variable, if a loop is over them
_CLOCKS |= {"choice", "choices", "gauss", "getrandbits", "integers", "normal", "rand", "randint"}
_CLOCKS |= {"randn", "random", "randrange", "sample", "shuffle", "uniform"}  # so is their state


def is_told_otherwise(
    frames: Iterable[FrameType], functions: Mapping[str, Iterable[FunctionType]]
) -> bool:
    """Whether code looks at the time, or counts what nobody can read, although no variable changes.

    ``functions``: those of the user by their names; the frames' code and others may call them.
    """
    ahead = [(frame.f_code, frame.f_globals) for frame in frames]
    reached = {code for code, _ in ahead}
    while ahead:
        code, known = ahead.pop()
        if _has_clock(code) or ("time" in code.co_names and known.get("time") is time.time):
            return True
        called = (function for name in code.co_names for function in functions.get(name, ()))
        for function in called:
            if function.__code__ not in reached:
                reached.add(function.__code__)
                ahead.append((function.__code__, function.__globals__))
    return False


@functools.lru_cache(64)
def _has_clock(code: CodeType) -> bool:
    if not _CLOCKS.isdisjoint(code.co_names):
        return True
    attributes = ("LOAD_ATTR", "LOAD_METHOD")
    return any(one.argval == "time" for one in _listing(code) if one.opname in attributes)


@functools.lru_cache(256)
def is_endless(code: CodeType, instruction: int) -> bool:
    """Whether an instruction is in a loop from which no return can be reached; errors aside."""
    after = _successors(code)
    # The interpreter may count the cache of an instruction as its last part.
    ahead, reached = [max(offset for offset in after if offset <= instruction)], set()
    while ahead:
        offset = ahead.pop()
        if offset not in reached and offset in after:
            name, following = after[offset]
            if name.startswith("RETURN_") and name != "RETURN_GENERATOR":
                return False
            reached.add(offset)
            ahead += following
    return any(to <= offset for offset in reached for to in after[offset][1])


@functools.lru_cache(64)
def _successors(code: CodeType) -> dict[int, tuple[str, list[int]]]:
    """For each instruction its name, and those that may follow it."""
    import dis

    listing = _listing(code)
    targets = {*dis.hasjrel, *dis.hasjabs}
    handlers = getattr(dis.Bytecode(code), "exception_entries", ())
    found = {}
    for nth, one in enumerate(listing):
        following = [entry.target for entry in handlers if entry.start <= one.offset < entry.end]
        if one.opcode in targets:
            following.append(one.argval)
        always = one.opname in _ALWAYS or one.opname.startswith(("JUMP_BACKWARD", "RETURN_"))
        if not always and nth + 1 < len(listing):
            following.append(listing[nth + 1].offset)
        found[one.offset] = one.opname, following
    return found


_ALWAYS = ("JUMP_FORWARD", "JUMP_ABSOLUTE", "RAISE_VARARGS", "RERAISE")
"""Instructions after which the next one does not follow."""


@functools.lru_cache(64)
def _listing(code: CodeType) -> list[dis.Instruction]:
    import dis  # seldom used, and 3 ms at the start of each process

    return list(dis.get_instructions(code))
