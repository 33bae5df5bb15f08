"""Python calls the functions of C cells: ``sfm.c.f(x)``, with NumPy arrays as pointers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sfm_kernel.c import compiler
from sfm_kernel.c.advice import advice
from sfm_kernel.c.compiler import Source
from sfm_kernel.c.text import Declared
from sfm_kernel.errors import CompileError

_KINDS = {"float": "f", "double": "f", "_Bool": "b", "float _Complex": "c", "double _Complex": "c"}
"""The kinds of NumPy types by C type; every other basic type is an integer."""


class Functions:
    """The functions of C cells that this process has loaded; each is an attribute.

    A function accepts numbers, NumPy arrays (and other buffers) for pointers, and str or bytes for
    ``const char *``. Arrays are not copied: they must be contiguous, and of the pointer's type.
    While C computes, other threads of this process run, but Stop has to wait.
    """

    def __init__(self) -> None:
        self._functions: dict[str, Any] = {}
        self._problems: dict[str, str] = {}
        self._libraries: list[Any] = []  # never unloaded: C's arrays may be inside

    def __getattr__(self, name: str) -> Any:
        if name in self._functions:
            return self._functions[name]
        if name in self._problems:
            raise AttributeError(self._problems[name])
        there = ", ".join(sorted(self._functions)) or "none yet; a cell `%%sfm c` without main"
        raise AttributeError(f"no C cell has defined a function {name!r}. There: {there}")

    def __dir__(self) -> list[str]:
        return sorted(self._functions)

    def __repr__(self) -> str:
        return "\n".join(map(str, self._functions.values())) or "no functions of C cells"

    def load(
        self, source: Source, before: Sequence[Source], declared: Declared, fast: bool, name: str
    ) -> list[str]:
        """Compile a cell of functions, unless the cache has it, and load them into this process.

        Returns the names of the functions that Python can call.

        Args:
            before: the cells that this one may use; their functions are loaded again with it,
                which resets their variables.
            declared: the declarations of all these cells.
            name: the library's name in messages.
        Raises:
            CompileError: it does not compile, or cannot be loaded.
        """
        import cffi

        built = compiler.build([source], before=before, fast=fast, shared=True)
        ffi = cffi.FFI()
        problems = {}
        for text in declared.types:
            try:
                ffi.cdef(text, override=True)
            except Exception:  # noqa: BLE001 - only functions that need it cannot be called
                continue
        for function, text in declared.functions.items():
            try:
                ffi.cdef(f"{text};", override=True)
            except Exception as problem:  # noqa: BLE001 - cffi and pycparser raise many kinds
                why = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
                problems[function] = (
                    f"Python cannot call {function}, since it does not understand `{text}` "
                    f"({why}): parameters can be numbers, pointers to numbers, and structs that "
                    f"the cell itself defines"
                )
        try:
            library = ffi.dlopen(built.path, os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as problem:
            reason = advice(f"{built.warnings}{problem}") or problem
            raise CompileError(f"{name} cannot be loaded: {reason}") from None
        self._libraries.append(library)
        for function, text in declared.functions.items():
            if function not in problems:
                try:
                    called = getattr(library, function)
                except AttributeError:
                    problems[function] = declared.hidden(function)
                    continue
                self._functions[function] = Function(ffi, called, function, text)
        for function in problems:
            self._functions.pop(function, None)
        self._problems = problems
        return [name for name in declared.functions if name not in problems]


class Function:
    """A C function. Printing it shows its declaration in the cell."""

    def __init__(self, ffi: Any, called: Any, name: str, text: str) -> None:
        self._ffi, self._called, self._name, self._text = ffi, called, name, text
        self.__name__, self.__doc__ = name, text
        self._type = ffi.typeof(called)

    def __repr__(self) -> str:
        return self._text

    def __call__(self, *arguments: Any) -> Any:
        parameters = self._type.args
        if len(arguments) != len(parameters) and not self._type.ellipsis:
            takes = "1 argument" if len(parameters) == 1 else f"{len(parameters)} arguments"
            raise TypeError(f"{self._text} takes {takes}, not {len(arguments)}")
        pairs = enumerate(zip(arguments, parameters, strict=False), start=1)
        given = [self._argument(number, value, kind) for number, (value, kind) in pairs]
        try:
            result = self._called(*given, *arguments[len(parameters) :])
        except TypeError as problem:
            raise TypeError(f"{self._text}: {problem}") from None
        if self._type.result.kind == "pointer" and self._type.result.item.cname == "char":
            return self._ffi.string(result).decode(errors="replace") if result else None
        return result

    def _argument(self, number: int, value: Any, kind: Any) -> Any:
        if kind.kind != "pointer" or value is None:
            return self._ffi.NULL if value is None else _number(value)
        item = kind.item
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes) and item.cname in ("char", "void"):
            return value
        if isinstance(value, self._ffi.CData):
            return value
        place = f"{self._text}, argument {number}"
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(
                f"{place}: `{kind.cname}` takes a NumPy array, not {type(value).__name__}"
            ) from None
        if not view.c_contiguous:
            raise TypeError(
                f"{place}: the array is not contiguous; numpy.ascontiguousarray copies it"
            )
        if view.readonly and "const" not in self._text:
            raise TypeError(f"{place}: the array is read-only, and C may write there")
        if item.kind == "primitive":
            size, letter = self._ffi.sizeof(item), _KINDS.get(item.cname, "iu")
            dtype = getattr(value, "dtype", None)
            has = (dtype.kind, dtype.itemsize) if dtype is not None else ("", view.itemsize)
            if has[1] != size or not (has[0] in letter or not has[0] or size == 1):
                better = f"{letter[0]}{size}"
                raise TypeError(
                    f"{place}: `{kind.cname}` takes elements of {size} bytes, and these are "
                    f"{dtype or view.format}: x.astype({better!r}) makes a copy that fits"
                )
        return self._ffi.cast(kind, self._ffi.from_buffer(value))


def _number(value: Any) -> Any:
    """A NumPy number as a Python number."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value


functions = Functions()
"""The functions of this process."""


def problem(name: str) -> str:
    """The reason why Python cannot call a function of the latest cell; empty if it can."""
    return functions._problems.get(name, "")
