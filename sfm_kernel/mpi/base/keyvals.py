"""Attributes: values that a program attaches to communicators, datatypes and windows.

A *keyval* is the key of an attribute, made by ``Create_keyval``. It brings the functions that are
called when what has the attribute is duplicated, and when the attribute goes. Who duplicates or
frees calls ``_copy_attributes`` or ``_delete_attributes``.
"""

from __future__ import annotations

import itertools
import operator
import os
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from sfm_kernel.mpi.base import codes
from sfm_kernel.mpi.base.constants import (
    ANY_SOURCE,
    APPNUM,
    ERR_KEYVAL,
    IO,
    KEYVAL_INVALID,
    LASTUSEDCODE,
    TAG_UB,
    UNIVERSE_SIZE,
    WTIME_IS_GLOBAL,
)
from sfm_kernel.mpi.base.errors import code_for, fail

LARGEST_TAG = 2**31 - 1
"""The value of the attribute TAG_UB."""

APPNUM_VARIABLE = "SFM_MPI_APPNUM"
"""In the environment: the number of the program, where a launcher has started several."""

ADDRESSES = 1 << 8 * struct.calcsize("P")
"""A value of a ``nopython`` attribute is as large as an address, and unsigned."""

CopyFunction = Callable[[Any, int, Any], Any]
DeleteFunction = Callable[[Any, int, Any], None]


class Keyval:
    """The key of an attribute.

    Args:
        copy_fn: called with the old handle, the key and the value when that is duplicated; returns
            the value for the new one, or NotImplemented for none. True: the same value; None or
            False: none.
        delete_fn: called with the handle, the key and the value when the attribute goes.
        nopython: values are integers and not objects.
    """

    def __init__(
        self,
        number: int,
        copy_fn: CopyFunction | bool | None,
        delete_fn: DeleteFunction | bool | None,
        nopython: bool,
    ) -> None:
        self.number, self.nopython = number, nopython
        self.copy_fn, self.delete_fn = copy_fn, delete_fn

    def value(self, value: Any) -> Any:
        """``value`` as it is kept."""
        return operator.index(value) % ADDRESSES if self.nopython else value

    def copy(self, handle: Any, value: Any) -> Any:
        """The value for a duplicate; NotImplemented for none."""
        if not callable(self.copy_fn):
            return value if self.copy_fn else NotImplemented
        return self.copy_fn(handle, self.number, value)

    def delete(self, handle: Any, value: Any) -> None:
        """Say that the attribute is gone."""
        if callable(self.delete_fn):
            self.delete_fn(handle, self.number, value)


Attributes = dict[int, tuple[Keyval, Any]]
"""What a state has as ``attributes``, in the order in which they were set."""

_keyvals: dict[tuple[type, int], Keyval] = {}
_numbers = itertools.count(KEYVAL_INVALID + 1)


def _universe_size() -> int:
    from sfm_kernel.mpi.engine.process import process  # it starts what imports this

    return process().size


def _appnum() -> int | None:
    number = os.environ.get(APPNUM_VARIABLE)
    return int(number) if number else None


PREDEFINED: dict[str, dict[int, Callable[[], Any]]] = {
    "Comm": {
        TAG_UB: lambda: LARGEST_TAG,
        IO: lambda: ANY_SOURCE,  # each process can
        WTIME_IS_GLOBAL: lambda: 0,  # other machines have other clocks
        UNIVERSE_SIZE: _universe_size,
        APPNUM: _appnum,
        LASTUSEDCODE: codes.last_used,
    }
}
"""The attributes that MPI sets, by kind of handle."""


class HasAttributes:
    """Part of the handles whose state has ``attributes``, a dict."""

    __slots__ = ()

    @classmethod
    def Create_keyval(
        cls,
        copy_fn: CopyFunction | bool | None = None,
        delete_fn: DeleteFunction | bool | None = None,
        nopython: bool = False,
    ) -> int:
        """A new key for attributes of this kind of handle.

        Args:
            copy_fn: what a duplicate gets: None or False: nothing; True: the same value; or a
                function of the old handle, the key and the value, which returns the new value, or
                NotImplemented for none.
            delete_fn: called with the handle, the key and the value when the attribute goes.
            nopython: values are integers.
        """
        keyval = Keyval(next(_numbers), copy_fn, delete_fn, nopython)
        _keyvals[cls._kind, keyval.number] = keyval  # type: ignore[attr-defined]
        return keyval.number

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free a key; attributes that have it stay. Returns KEYVAL_INVALID."""
        if _keyvals.pop((cls._kind, keyval), None) is None:  # type: ignore[attr-defined]
            _no_such(keyval, None)
        return KEYVAL_INVALID

    def Get_attr(self, keyval: int) -> int | Any | None:
        """The value of an attribute; None if it is not set."""
        attributes: Attributes = self._live.attributes  # type: ignore[attr-defined]
        kind: type = self._kind  # type: ignore[attr-defined]
        if keyval in attributes:
            return attributes[keyval][1]
        predefined = PREDEFINED.get(kind.__name__, {}).get(keyval)
        if predefined is not None:
            return predefined()
        if (kind, keyval) not in _keyvals:
            _no_such(keyval, self)
        return None

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Attach a value; one that is there already is deleted first."""
        attributes: Attributes = self._live.attributes  # type: ignore[attr-defined]
        key = _keyvals.get((self._kind, keyval))  # type: ignore[attr-defined]
        if key is None:
            _no_such(keyval, self)
        value = key.value(attrval)
        if keyval in attributes:
            self.Delete_attr(keyval)
        attributes[keyval] = key, value

    def Delete_attr(self, keyval: int) -> None:
        """Delete an attribute, if it is set.

        Raises:
            Exception: there is no such key; or what its ``delete_fn`` has raised, which is printed.
        """
        attributes: Attributes = self._live.attributes  # type: ignore[attr-defined]
        if keyval in attributes:
            key, value = attributes.pop(keyval)
            _call(self, "delete_fn", key.delete, value)
        elif (self._kind, keyval) not in _keyvals:  # type: ignore[attr-defined]
            _no_such(keyval, self)

    def _copy_attributes(self, new_state: Any) -> None:
        """Give the state of a duplicate the attributes that their keys want it to have.

        Raises:
            Exception: a ``copy_fn`` has failed; ``new_state`` has what was copied before.
        """
        attributes: Attributes = self._live.attributes  # type: ignore[attr-defined]
        for key, value in list(attributes.values()):
            copied = _call(self, "copy_fn", key.copy, value)
            if copied is not NotImplemented:
                new_state.attributes[key.number] = key, key.value(copied)

    def _delete_attributes(self) -> None:
        """Delete all attributes, the youngest first, because what has them is about to go."""
        attributes: Attributes = self._live.attributes  # type: ignore[attr-defined]
        while attributes:
            self.Delete_attr(next(reversed(attributes)))


def _call(handle: Any, name: str, function: Callable[[Any, Any], Any], value: Any) -> Any:
    """Call a function of the program; what it raises is printed and becomes an error of MPI."""
    try:
        return function(handle._wrap(handle._state), value)
    except Exception as error:  # noqa: BLE001  # of the program
        traceback.print_exception(error, file=sys.stderr)
        fail(code_for(error), f"the {name} of an attribute has failed: {error!r}", handle, error)


def _no_such(keyval: int, handle: Any) -> NoReturn:
    fail(
        ERR_KEYVAL,
        f"{keyval!r} is no key of attributes that can be used here: make one with Create_keyval",
        handle,
    )
