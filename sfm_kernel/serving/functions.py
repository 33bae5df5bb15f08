"""How functions are sent: each is sent once to a process, and then called by its number. Names that
were injected into a process are called by name."""

from __future__ import annotations

import dis
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, ModuleType
from typing import Any

import cloudpickle

from sfm_kernel.endpoint import seen
from sfm_kernel.errors import EncodeError
from sfm_kernel.serving.values import dumps

Which = int | str
"""A function: the number under which it was sent, or its injected name."""


class Functions:
    """The owner's functions. The caller keeps track of which process has which."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._code: dict[int, bytes] = {}

    def number(self, function: Callable[..., Any] | str) -> Which:
        """The number of a function; a name stays as it is.

        The function is pickled as it is now, with the globals that it reads. A function that
        changes a global causes a warning: it would change the other process's copy.
        Raises: EncodeError.
        """
        if isinstance(function, str):
            return function
        code = _packed(function)
        number = self._numbers.setdefault(code, len(self._numbers))
        self._code[number] = code
        return number

    def code(self, which: Iterable[Which], known: Iterable[Which] = ()) -> dict[int, bytes]:
        """The code of these functions without the known ones, for ``Namespace.learn``."""
        return {key: self._code[key] for key in set(which).difference(known) if key in self._code}


class Namespace:
    """The functions of a process that makes calls, by number, and the injected names."""

    def __init__(self, **names: Any) -> None:
        self._names: dict[str, Any] = {"__name__": "injected"} | names
        self._functions: dict[Which, Callable[..., Any]] = {}
        self._code: dict[int, bytes] = {}

    def learn(self, code: Mapping[int, bytes]) -> None:
        """Add code of functions, by number."""
        self._code |= code

    def code(self, which: Iterable[Which]) -> dict[int, bytes]:
        """The code of these functions, for another process."""
        return {key: self._code[key] for key in set(which) if key in self._code}

    def function(self, which: Which) -> Callable[..., Any]:
        """The function. Raises LookupError, and what unpickling it raises."""
        return self._functions.get(which) or self._load(which)

    def _load(self, which: Which) -> Callable[..., Any]:
        function: Callable[..., Any]
        if isinstance(which, str):
            if which not in self._names:
                known = ", ".join(name for name in self._names if not name.startswith("__"))
                raise LookupError(f"no name {which!r} was injected here. Known names: {known}")
            function = self._names[which]
        else:
            function = cloudpickle.loads(self._code[which])
        self._complete(getattr(function, "__globals__", self._names))
        self._functions[which] = function
        return function

    def _complete(self, names: dict[str, Any]) -> None:
        """Add the injected names to the globals of a function that was sent by value."""
        module = sys.modules.get(names.get("__name__", ""))
        if names is self._names or names is getattr(module, "__dict__", None):
            return
        injected = names.setdefault("__injected__", set())
        injected |= self._names.keys() - names.keys()
        names |= {name: self._names[name] for name in injected}

    def inject(self, code: Iterable[Any], data: Mapping[str, Any]) -> None:
        """Add data, functions, classes and modules by name, and the names that Python text
        defines."""
        self._names |= data
        for item in code:
            if isinstance(item, str):
                exec(compile(item, "<injected>", "exec"), self._names)
            else:
                name = item.__name__
                if isinstance(item, ModuleType):
                    name = name.rpartition(".")[2]
                self._names[name] = item
        self._functions.clear()  # loaded again, they find the new names


def name_of(function: object) -> str:
    """The name of a function."""
    return str(getattr(function, "__qualname__", None) or getattr(function, "__name__", function))


def _packed(function: Callable[..., Any]) -> bytes:
    if changed := _changes(getattr(function, "__code__", None)):
        names = " and ".join(sorted(changed))
        warnings.warn(
            f"{name_of(function)} changes the global {names}: each process that runs it changes a "
            f"copy of its own, and nothing changes in this process. Return the value instead",
            stacklevel=_outside(),
        )
    try:
        return dumps(function)
    except Exception as error:
        why = f"it uses a value that cannot be pickled ({type(error).__name__}: {error})"
        raise EncodeError(name_of(function), why) from error


def _changes(code: CodeType | None) -> set[str]:
    """The globals that code assigns, itself or in a function that it defines."""
    if code is None:
        return set()
    names = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_GLOBAL"}
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return names.union(*map(_changes, inner))


def _outside() -> int:
    """The ``stacklevel`` of the first frame outside this package, for a warning of the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and seen.is_own(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level
