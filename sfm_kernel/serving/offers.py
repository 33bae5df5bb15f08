"""What a process offers to others by name: what it has exported, and what its cells have made."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfm_kernel.transport.base import Name

_exported: dict[str, Any] = {}
_offers: list[Callable[[], Mapping[str, Any]]] = [lambda: _exported]


def export(name: str, value: Any) -> None:
    """Others find ``value`` in this process under this name."""
    _exported[name] = value


def offer(names: Callable[[], Mapping[str, Any]]) -> None:
    """Others find what ``names()`` gives, too: what cells have made."""
    _offers.append(names)


class Offers:
    """All that is offered, as attributes."""

    def __init__(self, process: Name) -> None:
        vars(self)["_process"] = process

    def __dir__(self) -> list[str]:
        return [name for names in _offers for name in names()]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{name!r} is not offered")
        for names in _offers:
            if name in names():
                return names()[name]
        raise AttributeError(unknown(f"process {self._process!r}", name, public(self)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self._process!r} itself gives names: remote.export({name!r}, …)")


def attribute(target: Any, name: str) -> Any:
    """The attribute. Raises AttributeError, which tells what there is, and what is nearly it."""
    try:
        return getattr(target, name)
    except AttributeError:
        if isinstance(target, Offers) or name in dir(target):
            raise
        what = f"the {type(target).__name__}"
        raise AttributeError(unknown(what, name, public(target))) from None


def public(target: Any) -> list[str]:
    """The names of its attributes, without those that begin with an underscore."""
    return [name for name in dir(target) if not name.startswith("_")]


def unknown(what: str, name: str, there: Iterable[str]) -> str:
    """``what`` has no such name: with what there is, and what is nearly it."""
    near = difflib.get_close_matches(name, there, 1)
    hint = f" Do you mean {near[0]!r}?" if near else ""
    return f"{what} has no {name!r}. There: {', '.join(there) or 'nothing yet'}.{hint}"
