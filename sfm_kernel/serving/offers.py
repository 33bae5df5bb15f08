"""The objects that a process offers to others by name: those that it has exported, and on an engine
those that its cells have defined."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfm_kernel.directory import Name

_exported: dict[str, Any] = {}
_offers: list[Callable[[], Mapping[str, Any]]] = [lambda: _exported]


def export(name: str, value: Any) -> None:
    """Offer ``value`` to other processes under this name."""
    _exported[name] = value


def offer(names: Callable[[], Mapping[str, Any]]) -> None:
    """Also offer the objects that ``names()`` gives at each request, by name."""
    _offers.append(names)


class Offers:
    """The offered objects, as attributes."""

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
        raise AttributeError(
            f"only {self._process!r} itself can export names: remote.export({name!r}, …)"
        )


def attribute(target: Any, name: str) -> Any:
    """The attribute. Raises AttributeError, which lists the names and suggests a similar one."""
    try:
        return getattr(target, name)
    except AttributeError:
        if isinstance(target, Offers) or name in dir(target):
            raise
        owner = f"the {type(target).__name__}"
        raise AttributeError(unknown(owner, name, public(target))) from None


def public(target: Any) -> list[str]:
    """The names of the target's attributes, without those that begin with an underscore."""
    return [name for name in dir(target) if not name.startswith("_")]


def unknown(owner: str, name: str, known: Iterable[str]) -> str:
    """The text of an error: ``owner`` has no such name. It lists the known names, and suggests a
    similar one."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Do you mean {near[0]!r}?" if near else ""
    return f"{owner} has no {name!r}. Known names: {', '.join(known) or 'none yet'}.{hint}"
