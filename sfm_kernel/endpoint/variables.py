"""Whether a program's variables change from call to call, and whether its loops have an end.

Messages may flow for ever because a program counts its rounds, or because nobody decides anything
any more. Observers ask seldom, and the next call answers: the thread that makes it reads its own
frames. What cannot be read counts as unchanged, so that observers conclude no more than a doubt.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from sfm_kernel.endpoint.seen import is_own

if TYPE_CHECKING:
    import dis

_FRAMES, _VALUES, _ITEMS, _DEPTH = 12, 3000, 30, 3
"""Frames of a stack, values of all of them, items of a container and levels of containers that are
read."""

_BYTES = 1 << 16
"""Bytes of an array that are read."""

_PLAIN = (bool, int, complex, str, bytes, type(None))

_EXAMPLES: tuple[Any, ...] = (iter(range(1)), iter(range(1 << 80)), iter(()), iter([]), iter(""))
_ITERATORS = (itertools.repeat, *map(type, _EXAMPLES))
"""Iterators that know how much is left."""

_FRONT_END = ("IPython", "ipykernel")


def variables() -> int:
    """A number that differs if the variables of this thread's program do; 0 if nobody can tell.

    Its last bit says that the program is in a loop that nothing but an error ends.
    """
    try:
        left = [_VALUES]
        frames = list(_users(sys._getframe(1)))
        if any(map(_looks_at_clock, frames)):
            return 0
        seen = hash(tuple((frame.f_lasti, _namespace(frame, left)) for frame in frames))
        endless = any(_is_endless(frame.f_code, frame.f_lasti) for frame in frames)
    except _TooMuch:
        return 0
    except Exception:  # noqa: BLE001 - whatever it was, it does not concern the program
        return 0
    return 1 << 63 | (seen & (1 << 62) - 1) << 1 | endless


def _users(frame: FrameType | None) -> Iterator[FrameType]:
    """The innermost frames of the user, up to the function that this package has called."""
    found = 0
    while frame is not None and found < _FRAMES:
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if is_own(frame.f_code.co_filename) or module in _FRONT_END:
            if found:
                return
        else:
            found += 1
            yield frame
        frame = frame.f_back


class _TooMuch(Exception):
    """There are more values than are read."""


def _namespace(frame: FrameType, left: list[int]) -> Any:
    names, known = dict(frame.f_locals), frame.f_globals
    for name in frame.f_code.co_names:
        if name in known:
            names.setdefault(name, known[name])
    return tuple((name, _value(names[name], left, _DEPTH)) for name in sorted(names))


def _value(value: Any, left: list[int], depth: int) -> Any:
    """What is compared of a value: it can be hashed, and no function of the user is called."""
    left[0] -= 1
    if left[0] < 0:
        raise _TooMuch
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return repr(value)  # each NaN differs
    if kind in (list, tuple, deque, dict):
        items = value.items() if kind is dict else value
        return len(value), _items(items, left, depth)
    if kind in (set, frozenset, bytearray):
        return len(value)
    if kind in _ITERATORS:
        return operator.length_hint(value, 0)
    if kind is itertools.count:
        return repr(value)
    if kind.__module__.partition(".")[0] in ("numpy", "array"):
        return _array(value)
    return _object(value, left, depth)


def _items(items: Iterable[Any], left: list[int], depth: int) -> Any:
    if depth == 0:
        return None
    return tuple(_value(item, left, depth - 1) for item in itertools.islice(items, _ITEMS))


def _array(value: Any) -> Any:
    try:
        with memoryview(value) as whole, whole.cast("B") as data:
            return whole.nbytes, zlib.crc32(data[:_BYTES])
    except (TypeError, ValueError, BufferError, NotImplementedError):
        return None


def _object(value: Any, left: list[int], depth: int) -> Any:
    """The attributes of an object of the user's classes."""
    module = str(type(value).__module__).partition(".")[0]
    is_other = isinstance(value, (type, ModuleType, FunctionType)) or module == "sfm_kernel"
    if is_other or depth == 0:
        return None
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return _value(attributes, left, depth - 1) if type(attributes) is dict else None


# ---- the code ----

_CLOCKS = {"monotonic", "now", "perf_counter", "process_time", "utcnow", "Wtime"}
_CLOCKS |= {"monotonic_ns", "perf_counter_ns", "time_ns"}


def _looks_at_clock(frame: FrameType) -> bool:
    """Whether the function looks at the time, which changes although no variable does."""
    code, known = frame.f_code, frame.f_globals.get("time")
    return _has_clock(code) or ("time" in code.co_names and known is time.time)


@functools.lru_cache(64)
def _has_clock(code: CodeType) -> bool:
    if not _CLOCKS.isdisjoint(code.co_names):
        return True
    attributes = ("LOAD_ATTR", "LOAD_METHOD")
    return any(one.argval == "time" for one in _listing(code) if one.opname in attributes)


@functools.lru_cache(256)
def _is_endless(code: CodeType, instruction: int) -> bool:
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
