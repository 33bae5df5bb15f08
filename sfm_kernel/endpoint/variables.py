"""Whether a program's variables change from call to call, and whether its loops have an end.

Messages may flow for ever because a program counts its rounds, or because nobody decides anything
any more. Observers ask seldom, and the next call answers: the thread that makes it reads its own
frames, and the globals and objects of the user's modules. What cannot be read counts as unchanged,
so that observers conclude no more than a doubt.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from types import (
    CellType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from sfm_kernel._native import set_variables
from sfm_kernel.endpoint.bystanders import other_threads
from sfm_kernel.endpoint.loops import is_endless, is_told_otherwise
from sfm_kernel.endpoint.seen import is_own, is_users_file

_FRAMES, _VALUES, _ITEMS, _DEPTH = 12, 3000, 30, 3
"""Frames of a stack, values of all of them, items of a container and levels of containers that are
read."""

_BYTES, _PIECES = 1 << 16, 16
"""Bytes of an array that are read, and the places of a large one where they are."""

_PLAIN = (bool, int, complex, str, bytes, type(None))

_EXAMPLES: tuple[Any, ...] = (iter(range(1)), iter(range(1 << 80)), iter(()), iter([]), iter(""))
_ITERATORS = (itertools.repeat, *map(type, _EXAMPLES))
"""Iterators that know how much is left."""

_FRONT_END = ("IPython", "ipykernel")

_UNREAD = {*_FRONT_END, "ipyparallel", "sfm_kernel", "traitlets"}
"""Packages whose objects are not read: they change by themselves, or refer to a whole kernel."""


def answer() -> int:
    """``variables()`` in a call; 0 beside threads that could change what is not read."""
    return 0 if other_threads() else variables()


def variables() -> int:
    """A number that differs if the variables of this thread's program do; 0 if nobody can tell.

    Its last bit says that the program is in a loop that nothing but an error ends.
    """
    try:
        frames, reader = list(_users(sys._getframe(1))), _Reader()
        read = [(frame.f_lasti, reader.namespace(frame.f_locals)) for frame in frames]
        modules = {id(frame.f_globals): frame.f_globals for frame in frames}
        seen = hash((*read, *map(reader.globals, modules.values())))
        if is_told_otherwise(frames, reader.functions):
            return 0
        endless = any(is_endless(frame.f_code, frame.f_lasti) for frame in frames)
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
    """There are more values than are read, or one that nobody can read."""


class _Reader:
    """Reads values: what is compared of each can be hashed, and no function of the user is called.

    Attributes:
        functions: the user's functions that were found, by their names.
    """

    def __init__(self) -> None:
        self.functions: dict[str, list[FunctionType]] = {}
        self._left = _VALUES
        self._known: set[int] = set()  # functions, classes and modules, each read once

    def namespace(self, names: dict[str, Any]) -> Any:
        return tuple((name, self._value(names[name], _DEPTH)) for name in sorted(names))

    def globals(self, names: dict[str, Any]) -> Any:
        """The names of a module that its program has made."""
        return self.namespace({name: names[name] for name in list(names) if name[:2] != "__"})

    def _value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _TooMuch
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return repr(value)  # each NaN differs
        if kind in (list, tuple, deque, dict):
            items = value.items() if kind is dict else value
            return len(value), self._items(items, depth)
        if kind in (set, frozenset, bytearray):
            return len(value)
        if kind in _ITERATORS:
            return operator.length_hint(value, 0)
        if kind is itertools.count:
            return repr(value)
        if kind is GeneratorType:
            frame = value.gi_frame
            return frame and (frame.f_lasti, self._attributes(frame.f_locals, depth))
        if isinstance(value, (type, ModuleType, FunctionType)):
            return self._definition(value, depth)
        if kind.__module__.partition(".")[0] in ("numpy", "array"):
            return None if callable(value) else _array(value)
        return self._object(value, depth)

    def _items(self, items: Iterable[Any], depth: int) -> Any:
        if depth == 0:
            return None
        return tuple(self._value(item, depth - 1) for item in itertools.islice(items, _ITEMS))

    def _attributes(self, names: dict[str, Any], depth: int) -> Any:
        """All attributes, of which an object has as many as its class says."""
        if depth == 0:
            return None
        return tuple((name, self._value(value, depth - 1)) for name, value in list(names.items()))

    def _definition(self, value: Any, depth: int) -> Any:
        """The variables of a function (its closure), of a class, or of a module of the user."""
        if id(value) in self._known or depth == 0:
            return None
        self._known.add(id(value))
        if isinstance(value, FunctionType):
            if not is_users_file(value.__code__.co_filename):
                return None
            self.functions.setdefault(value.__name__, []).append(value)
            return self._items((value.__closure__ or ()), depth)
        if isinstance(value, ModuleType):
            return self.globals(vars(value)) if _is_users(value.__name__) else None
        if not _is_users(value.__module__):
            return None
        names = {name: item for name, item in vars(value).items() if name[:2] != "__"}
        return self._attributes(names, depth)

    def _object(self, value: Any, depth: int) -> Any:
        """The attributes of an object, also those in slots; the contents of a cell of a closure."""
        kind = type(value)
        if kind is CellType:
            with contextlib.suppress(ValueError):  # it is empty
                return self._value(value.cell_contents, depth)
            return None
        if kind is MethodType:
            return self._value(value.__func__, depth), self._value(value.__self__, depth)
        if str(kind.__module__).partition(".")[0] in _UNREAD or depth == 0:
            return None
        names: dict[str, Any] = {}
        for parent in kind.__mro__ if _is_users(kind.__module__) else ():
            self._definition(parent, depth)
            for name, member in vars(parent).items():
                if type(member) is MemberDescriptorType:
                    with contextlib.suppress(AttributeError):  # it was never set
                        names[name] = member.__get__(value)
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            attributes = None
        if type(attributes) is dict:
            names |= attributes
        return self._attributes(names, depth)


def _array(value: Any) -> Any:
    try:
        with memoryview(value) as whole:
            if not whole.c_contiguous:
                if whole.nbytes > _BYTES:
                    raise _TooMuch
                return whole.nbytes, zlib.crc32(whole.tobytes())
            with whole.cast("B") as data:
                return whole.nbytes, zlib.crc32(_sample(data))
    except (TypeError, ValueError, BufferError, NotImplementedError):
        raise _TooMuch from None


def _sample(data: memoryview) -> Any:
    """All bytes, or equal pieces from all over a large array."""
    if len(data) <= _BYTES:
        return data
    piece, step = _BYTES // _PIECES, len(data) // _PIECES
    return b"".join(data[nth * step : nth * step + piece] for nth in range(_PIECES))


@functools.lru_cache(256)
def _is_users(module: str) -> bool:
    """Whether a module is the user's: not a library's, and not this package's."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return is_users_file(file) if file else module == "__main__"


set_variables(answer)
