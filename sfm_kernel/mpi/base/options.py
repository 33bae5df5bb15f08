"""What a program has set in ``mpi4py.rc`` before it imported ``mpi4py.MPI``, or in the environment.

There is such a module where this package stands in for mpi4py. Elsewhere the defaults and the
environment hold.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import SimpleNamespace
from typing import Any

_SWITCH = (True, False, "yes", "no")
_LEVELS = ("single", "funneled", "serialized", "multiple")
_ERRORS = ("exception", "default", "abort", "fatal")

_OPTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "initialize": (True, _SWITCH),
    "threads": (True, _SWITCH),
    "thread_level": ("multiple", _LEVELS),
    "finalize": (None, (None, *_SWITCH)),
    "fast_reduce": (True, _SWITCH),
    "recv_mprobe": (True, _SWITCH),
    "irecv_bufsz": (32768, ()),
    "errors": ("exception", _ERRORS),
}
"""Name -> the default, and which values mean something. Obeyed are ``initialize``, ``finalize`` and
``errors``; the others choose between ways to the same."""

_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "y", "1"), True),
    **dict.fromkeys(("false", "no", "off", "n", "0"), False),
}
_PREFIX = "MPI4PY_RC_"

_elsewhere: Any = SimpleNamespace()
"""Where there is no ``mpi4py.rc``."""


def option(name: str) -> Any:
    """The value of an option now; its default if it has one that means nothing."""
    value = _value(name)
    if not _means_something(name, value):
        value = _OPTIONS[name][0]
    return {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value


def read_options() -> None:
    """Take the environment into ``mpi4py.rc``; warn of values that mean nothing."""
    for name, (default, _) in _OPTIONS.items():
        text = os.environ.get(_PREFIX + name.upper())
        if text is not None:
            found: Any = text.lower()
            if isinstance(default, int) and not isinstance(default, bool) and found.isdigit():
                found = int(found)
            setattr(_rc(), name, _WORDS.get(found, found))
        if not _means_something(name, _value(name)):
            what = f"mpi4py.rc.{name}: unexpected value {_value(name)!r:.200}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)


def _rc() -> Any:
    return sys.modules.get("mpi4py.rc", _elsewhere)


def _value(name: str) -> Any:
    return getattr(_rc(), name, _OPTIONS[name][0])


def _means_something(name: str, value: Any) -> bool:
    meant = _OPTIONS[name][1]
    return value in meant if meant else isinstance(value, int) and value >= 0
