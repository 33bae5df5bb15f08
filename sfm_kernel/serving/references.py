"""What others refer to in this process: the objects, for whom, and what they do with them."""

from __future__ import annotations

import builtins
import inspect
import itertools
import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sfm_kernel.endpoint import Endpoint
from sfm_kernel.message import Message
from sfm_kernel.serving.asking import Answerer
from sfm_kernel.serving.offers import Offers, attribute, public
from sfm_kernel.serving.values import pack, unpack
from sfm_kernel.transport.base import Name

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class Reference:
    """The base of what refers to objects of other processes; it travels as such."""

    __slots__ = ()


class _Here(threading.local):
    packs_for: Any = None  # who asks for what is being packed
    objects: Objects | None = None  # who answers what is being unpacked
    sfm: Any = None  # the endpoint in either case


here = _Here()
"""What this thread is in."""

_all: dict[str, Objects] = {}
_lent: dict[int, tuple[Any, Objects | None]] = {}
_numbers = itertools.count(1)


@contextmanager
def being(**what: Any) -> Iterator[None]:
    """``here`` has these attributes meanwhile."""
    before = {name: getattr(here, name) for name in what}
    vars(here).update(what)
    try:
        yield
    finally:
        vars(here).update(before)


class Wrapped:
    """Around a result that is to be referred to, although it could be sent."""

    def __init__(self, value: Any) -> None:
        self.value = value


def lend(value: Any, lender: Objects | None) -> int:
    """The number under which another process claims it."""
    number = next(_numbers)
    _lent[number] = value, lender
    return number


def claimed(number: int) -> Any:
    """What was lent under this number."""
    return _lent.pop(number)[0]


def is_referred_to(value: object) -> bool:
    """Whether others have references to it."""
    return any(id(value) in owner.numbers for owner in _all.values())


def own(number: int) -> Any:
    """What an argument that refers to this process's own object becomes here."""
    assert here.objects is not None
    return here.objects.table[number]


class Objects(Answerer):
    """What one owner refers to in this process."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self.table: dict[int, Any] = {0: Offers(sfm.name)}
        self.numbers = {id(self.table[0]): 0}  # of the same objects, by their identity
        self._counts = Counter([0])

    def do(self, message: Message) -> dict[str, Any]:
        """Do ``what`` with the target: the result, or a reference to it."""
        what, _, method = message.what.partition(" ")
        target = self.table[message.target]
        with being(objects=self, sfm=self.sfm):
            args, kwargs = unpack(message)
        if what == "lend":
            return pack(lend(target, self))
        if what == "call":
            function = getattr(target, method) if method else target
            result = function(*args, **kwargs)
        else:
            function = _DO.get(what) or getattr(operator, what, None) or getattr(builtins, what)
            result = function(target, *args, **kwargs)
        refers = what in ("claim", "get", "iter", "new") or isinstance(function, type)
        if isinstance(result, Wrapped):
            result, refers = result.value, True
        if what == "value":
            return pack(result)
        if isinstance(result, (Reference, *_PLAIN)):
            refers = False
        elif id(result) in self.numbers:
            refers = True
        with suppress(Exception), being(sfm=self.sfm):
            if not refers:
                return pack(result)
        number = self.numbers.setdefault(id(result), next(_numbers))
        self.table[number] = result
        self._counts[number] += 1
        methods = [one for one in public(type(result)) if callable(getattr(type(result), one))]
        return {"reference": number, "methods": methods}

    def hear(self, message: Message) -> None:
        """References have ended."""
        self._counts.subtract(message.dropped)
        for number in set(message.dropped):
            if self._counts[number] == 0:
                del self.numbers[id(self.table.pop(number))], self._counts[number]

    def close(self) -> None:
        """The owner has left, or has died."""
        _all.pop(self.key, None)
        for number in [number for number, (_, lender) in _lent.items() if lender is self]:
            del _lent[number]
        self.table.clear()


def objects(sfm: Endpoint, owner: Name, key: str) -> Objects:
    """What this owner refers to here, over the attachment with this key."""
    return _all.get(key) or _all.setdefault(key, Objects(sfm, owner, key))


_DO: dict[str, Callable[..., Any]] = {
    "claim": lambda target, number: claimed(number),
    "dir": public,
    "doc": lambda target, name: inspect.getdoc(getattr(target, name)),
    "get": attribute,
    "new": lambda target, function, *args, **kwargs: function(*args, **kwargs),
    "signature": lambda target, name: inspect.signature(getattr(target, name)),
    "value": lambda target: target,
}
"""What is done with a target; the rest is what ``operator`` and ``builtins`` have."""
