"""Info: pairs of texts that go with a call as hints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_INFO,
    ERR_INFO_KEY,
    ERR_INFO_NOKEY,
    ERR_INFO_VALUE,
    MAX_INFO_KEY,
    MAX_INFO_VAL,
)
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle

T = TypeVar("T")


class Pairs(dict[str, str]):
    """The pairs of an Info, in the order in which their keys were set first."""


class Info(Handle[Pairs]):
    """Pairs of keys and values, both texts, in the order of their setting.

    It is used by its calls, or as a dict. A null Info is an empty one that cannot be changed.
    """

    __slots__ = ()
    _null_error = ERR_INFO

    @classmethod
    def Create(
        cls, items: Info | Mapping[str, str] | Iterable[tuple[str, str]] | None = None
    ) -> Self:
        """A new Info, with these pairs."""
        info = cls._of(Pairs())
        info.update(items if items is not None else ())
        return info

    @classmethod
    def Create_env(cls, args: Sequence[str] | None = None) -> Self:
        """A new Info that says how this process runs: what INFO_ENV says.

        Args:
            args: the command and its arguments; those of this process if None.
        """
        return cls._of(_environment([args] if isinstance(args, str) else args))

    def Free(self) -> None:
        """Free it: all handles of it are null, or empty."""
        self._changeable()
        self._state = None

    def Dup(self) -> Self:
        """A new one with the same pairs."""
        return self._of(Pairs(self._live))

    def Get(self, key: str) -> str | None:
        """The value of a key; None if it is not there."""
        return self._live.get(_key(key))

    def Set(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self._changeable()[_key(key)] = _value(value)

    def Delete(self, key: str) -> None:
        """Delete a key.

        Raises:
            Exception: ERR_INFO_NOKEY: it is not there.
        """
        if self._changeable().pop(_key(key), None) is None:
            fail(ERR_INFO_NOKEY, f"there is no key {key!r} to delete: the keys are {self.keys()}")

    def Get_nkeys(self) -> int:
        """How many keys there are."""
        return len(self._live)

    def Get_nthkey(self, n: int) -> str:
        """The key with this number, from 0.

        Raises:
            Exception: ERR_ARG: there are not so many.
        """
        keys = list(self._live)
        if not 0 <= n < len(keys):
            fail(ERR_ARG, f"there is no key number {n}: there are {len(keys)}, from 0 on")
        return keys[n]

    def _changeable(self) -> Pairs:
        state = self._live
        if state is INFO_ENV._state:
            fail(ERR_INFO, "INFO_ENV cannot be changed: change a copy, INFO_ENV.Dup()")
        return state

    def _reduce_created(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).Create, (self.items(),)

    # As a dict.

    def __len__(self) -> int:
        return len(self._state or ())

    def __contains__(self, key: str) -> bool:
        return bool(self) and _key(key) in self._live

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, key: str) -> str:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        if not self:
            raise KeyError(key)
        self.Set(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self.Delete(key)

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a key, or ``default``."""
        return default if not self else self._live.get(_key(key), default)

    def keys(self) -> list[str]:
        """The keys."""
        return list(self._state or ())

    def values(self) -> list[str]:
        """The values."""
        return list((self._state or {}).values())

    def items(self) -> list[tuple[str, str]]:
        """The pairs."""
        return list((self._state or {}).items())

    def update(
        self, items: Info | Mapping[str, str] | Iterable[tuple[str, str]] = (), **kwds: str
    ) -> None:
        """Set these pairs."""
        if not self:
            raise KeyError("a null Info has no keys: make one with Info.Create")
        pairs: Any = items
        if hasattr(pairs, "keys"):
            keys = pairs.keys()  # by what mpi4py knows a mapping
            pairs = [(key, pairs[key]) for key in keys]
        for key, value in [*pairs, *kwds.items()]:
            self.Set(key, value)

    def pop(self, key: str, *default: T) -> str | T:
        """Take away the value of a key; ``default`` if it is not there."""
        value = self.get(key)
        if value is not None:
            self.Delete(key)
            return value
        if not default:
            raise KeyError(key)
        (otherwise,) = default
        return otherwise

    def popitem(self) -> tuple[str, str]:
        """Take away the last pair."""
        if not len(self):
            raise KeyError("there is no pair to take away")
        key, value = self.items()[-1]
        self.Delete(key)
        return key, value

    def copy(self) -> Self:
        """A new one with the same pairs; of a null one, a null one."""
        return self.Dup() if self else self._of(None)

    def clear(self) -> None:
        """Delete all keys."""
        for key in self.keys():
            self.Delete(key)


def _text(text: str | bytes) -> str:
    """A text of MPI, which programs may give as bytes as well."""
    if isinstance(text, bytes):
        text = text.decode()
    if not isinstance(text, str):
        raise TypeError(f"keys and values of an Info are texts, not {type(text).__name__}")
    if "\0" in text:
        raise ValueError(f"{text!r} has a null character, with which texts of MPI end")
    return text


def _key(key: str | bytes) -> str:
    text = _text(key)
    if not 0 < len(text.encode()) <= MAX_INFO_KEY:
        fail(ERR_INFO_KEY, f"a key of an Info has 1 to {MAX_INFO_KEY} bytes, and not {text!r}")
    return text


def _value(value: str | bytes) -> str:
    text = _text(value)
    if len(text.encode()) > MAX_INFO_VAL:
        fail(ERR_INFO_VALUE, f"a value of an Info has at most {MAX_INFO_VAL} bytes: {text[:40]!r}…")
    return text


def _environment(args: Sequence[str] | None = None) -> Pairs:
    """How this process was started, as far as MPI asks for it."""
    command, *arguments = args or [sys.executable or "", *getattr(sys, "argv", [])]
    machine = os.uname()
    found = {
        "command": command,
        "argv": " ".join(arguments),
        "maxprocs": os.environ.get("SFM_MPI_SIZE", "1"),
        "host": machine.nodename,
        "arch": machine.machine,
        "wdir": _folder(),
        "thread_level": "MPI_THREAD_MULTIPLE",
    }
    return Pairs((key, value[:MAX_INFO_VAL]) for key, value in found.items() if value)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


INFO_NULL = Info._constant("INFO_NULL")
INFO_ENV = Info._constant("INFO_ENV", Pairs())


def read_environment() -> None:
    """Let INFO_ENV say how this process runs, as it is when MPI is imported."""
    INFO_ENV._live.update(_environment())
