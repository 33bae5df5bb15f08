"""Functions on their way: each is sent once to a process, and then called by its number; and names
that were injected there."""

from __future__ import annotations

import dis
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, ModuleType
from typing import Any

import cloudpickle

from sfm_kernel.errors import EncodeError
from sfm_kernel.serving.values import dumps, is_own

Which = int | str
"""A function: the number under which it was sent, or the name by which it was injected."""


class Functions:
    """The owner's side: what was sent to whom is the caller's to remember."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._code: dict[int, bytes] = {}

    def number(self, function: Callable[..., Any] | str) -> Which:
        """What calls it there; a name stays what it is.

        The function is taken as it is now: what it reads of globals is sent with it. One that
        changes a global is warned of: the change is made to the other process's copy.
        Raises: EncodeError.
        """
        if isinstance(function, str):
            return function
        code = _packed(function)
        number = self._numbers.setdefault(code, len(self._numbers))
        self._code[number] = code
        return number

    def code(self, which: Iterable[Which], known: Iterable[Which] = ()) -> dict[int, bytes]:
        """Those of these functions that are not known there, as ``Namespace.learn`` takes them."""
        return {one: self._code[one] for one in set(which).difference(known) if one in self._code}


class Namespace:
    """The other side: functions by number, and names that were injected."""

    def __init__(self, **names: Any) -> None:
        self._names: dict[str, Any] = {"__name__": "injected"} | names
        self._found: dict[Which, Callable[..., Any]] = {}
        self._code: dict[int, bytes] = {}

    def learn(self, code: Mapping[int, bytes]) -> None:
        """Functions by their numbers."""
        self._code |= code

    def code(self, which: Iterable[Which]) -> dict[int, bytes]:
        """What another process has to learn for these."""
        return {one: self._code[one] for one in set(which) if one in self._code}

    def function(self, which: Which) -> Callable[..., Any]:
        """The function. Raises LookupError, and what unpickling it raises."""
        return self._found.get(which) or self._look(which)

    def _look(self, which: Which) -> Callable[..., Any]:
        found: Any
        if isinstance(which, str):
            if which not in self._names:
                known = ", ".join(one for one in self._names if not one.startswith("__"))
                raise LookupError(f"nothing was injected here as {which!r}. There: {known}")
            found = self._names[which]
        else:
            found = cloudpickle.loads(self._code[which])
        self._complete(getattr(found, "__globals__", self._names))
        self._found[which] = found
        return self._found[which]

    def _complete(self, names: dict[str, Any]) -> None:
        """What a function lacks that was sent by value may have been injected."""
        module = sys.modules.get(names.get("__name__", ""))
        if names is self._names or names is getattr(module, "__dict__", None):
            return
        given = names.setdefault("__injected__", set())
        given |= self._names.keys() - names.keys()
        names |= {name: self._names[name] for name in given}

    def inject(self, code: Iterable[Any], data: Mapping[str, Any]) -> None:
        """Add data, functions, classes, modules, and what Python text defines, by their names."""
        self._names |= data
        for one in code:
            if isinstance(one, str):
                exec(compile(one, "<injected>", "exec"), self._names)
            else:
                name = one.__name__
                self._names[name.rpartition(".")[2] if isinstance(one, ModuleType) else name] = one
        self._found.clear()  # they are to find the new names


def name_of(function: object) -> str:
    """What a function is called."""
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", function))


def _packed(function: Callable[..., Any]) -> bytes:
    if changed := _changes(getattr(function, "__code__", None)):
        names = " and ".join(sorted(changed))
        warnings.warn(
            f"{name_of(function)} changes the global {names}: each process that runs it changes a "
            f"copy of its own, and here nothing changes. Return the value instead",
            stacklevel=_outside(),
        )
    try:
        return dumps(function)
    except Exception as error:
        why = f"it uses what cannot be pickled ({type(error).__name__}: {error})"
        raise EncodeError(name_of(function), why) from error


def _changes(code: CodeType | None) -> set[str]:
    """The globals that code binds anew, in itself or in a function that it makes."""
    if code is None:
        return set()
    found = {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_GLOBAL"}
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return found.union(*map(_changes, inner))


def _outside() -> int:
    """How far out the program is, for a warning of who calls this."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level
