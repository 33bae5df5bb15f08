"""Objects of this process to which other processes have references, and the operations on them."""

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

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.message import Message
from sfm_kernel.serving.asking import Answerer
from sfm_kernel.serving.offers import Offers, attribute, public
from sfm_kernel.serving.values import pack, unpack

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class Reference:
    """Base of references to objects of other processes; they are sent as references."""

    __slots__ = ()


class _Local(threading.local):
    packs_for: Any = None  # the asker whose question is temporarily packed
    objects: Objects | None = None  # the answerer that is unpacking a question
    sfm: Any = None  # the endpoint in either case


current = _Local()
"""The packing or unpacking that this thread is doing."""

_objects: dict[str, Objects] = {}
_lent: dict[int, tuple[Any, Objects | None]] = {}
_numbers = itertools.count(1)


@contextmanager
def temporarily(**values: Any) -> Iterator[None]:
    """Set attributes of ``current`` within the block."""
    before = {name: getattr(current, name) for name in values}
    vars(current).update(values)
    try:
        yield
    finally:
        vars(current).update(before)


class Wrapped:
    """Wraps a result of which a reference is sent, although a copy could be."""

    def __init__(self, value: Any) -> None:
        self.value = value


def lend(value: Any, lender: Objects | None) -> int:
    """Keep a value for another process, which claims it by the number that is returned."""
    number = next(_numbers)
    _lent[number] = value, lender
    return number


def claimed(number: int) -> Any:
    """The value that was lent under this number; it is no longer kept."""
    return _lent.pop(number)[0]


def is_referenced(value: object) -> bool:
    """Whether other processes have references to the value."""
    return any(id(value) in lender.numbers for lender in _objects.values())


def own_object(number: int) -> Any:
    """Unpickle an argument that refers to an object of this process."""
    assert current.objects is not None
    return current.objects.table[number]


class Objects(Answerer):
    """The objects of this process to which one owner has references."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self.table: dict[int, Any] = {0: Offers(sfm.name)}
        self.numbers = {id(self.table[0]): 0}  # the number of each object in the table, by its id
        self._counts = Counter([0])

    def do(self, message: Message) -> dict[str, Any]:
        """Apply the operation ``what`` to the target; the answer has the result or a reference."""
        operation, _, method = message.what.partition(" ")
        target = self.table[message.target]
        with temporarily(objects=self, sfm=self.sfm):
            args, kwargs = unpack(message)
        if operation == "lend":
            return pack(lend(target, self))
        if operation == "call":
            function = getattr(target, method) if method else target
            result = function(*args, **kwargs)
        else:
            function = _DO.get(operation) or getattr(operator, operation, None)
            function = function or getattr(builtins, operation)
            result = function(target, *args, **kwargs)
        by_reference = operation in ("claim", "get", "iter", "new") or isinstance(function, type)
        if isinstance(result, Wrapped):
            result, by_reference = result.value, True
        if operation == "value":
            return pack(result)
        if isinstance(result, (Reference, *_PLAIN)):
            by_reference = False
        elif id(result) in self.numbers:
            by_reference = True
        with suppress(Exception), temporarily(sfm=self.sfm):
            if not by_reference:
                return pack(result)
        number = self.numbers.setdefault(id(result), next(_numbers))
        self.table[number] = result
        self._counts[number] += 1
        kind = type(result)
        methods = [name for name in public(kind) if callable(getattr(kind, name))]
        return {"reference": number, "methods": methods}

    def notice(self, message: Message) -> None:
        """The owner has dropped references."""
        self._counts.subtract(message.dropped)
        for number in set(message.dropped):
            if self._counts[number] == 0:
                del self.numbers[id(self.table.pop(number))], self._counts[number]

    def close(self) -> None:
        """The owner has released this process, or has died: forget its references."""
        _objects.pop(self.key, None)
        for number in [number for number, (_, lender) in _lent.items() if lender is self]:
            del _lent[number]
        self.table.clear()


def objects(sfm: Endpoint, owner: Name, key: str) -> Objects:
    """The objects to which this owner has references, over the attachment with this key."""
    return _objects.get(key) or _objects.setdefault(key, Objects(sfm, owner, key))


_DO: dict[str, Callable[..., Any]] = {
    "claim": lambda target, number: claimed(number),
    "dir": public,
    "doc": lambda target, name: inspect.getdoc(getattr(target, name)),
    "get": attribute,
    "new": lambda target, function, /, *args, **kwargs: function(*args, **kwargs),
    "signature": lambda target, name: inspect.signature(getattr(target, name)),
    "value": lambda target: target,
}
"""Operations on a target by name; all others are functions of ``operator`` and ``builtins``."""
