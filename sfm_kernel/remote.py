"""Remote objects: a program uses objects of other processes as if they were its own.

    >>> from sfm_kernel import remote, serving
    >>> def program(sfm):
    ...     if sfm.rank > 0:
    ...         remote.export("shelf", ["first"])
    ...         return serving.serve(sfm)
    ...     with remote.connect(sfm, 1) as engine:
    ...         engine.shelf.append("second")
    ...         return len(engine.shelf), engine.shelf[1], remote.value(engine.shelf)
    >>> sfm_kernel.run(program, n=2)[0]
    (2, 'second', ['first', 'second'])

An attribute gives a reference, or a copy if it is plain data (a number, text, bytes); so does the
call of a class. Every other call gives a copy of its result, except that a result which cannot be
sent, to which a reference exists already, or which is returned as ``ref(x)`` gives a reference.

Arguments are copied. A reference that is sent becomes the object itself in the process that has it,
and a reference to it in any other process. A process that waits for a call answers the calls that
are made on its behalf meanwhile: A may call B, which calls A (see ``serving.asking``).

Source: SFM paper, section 6; A. Birrell, G. Nelson, S. Owicki, E. Wobber, "Network objects",
SOSP 1993.
"""

from __future__ import annotations

import reprlib
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sfm_kernel import serving
from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.errors import RemoteError, SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving import Question
from sfm_kernel.serving.offers import export, offer
from sfm_kernel.serving.references import (
    Reference,
    Wrapped,
    claimed,
    current,
    is_referenced,
    lend,
    objects,
    own_object,
    temporarily,
)
from sfm_kernel.serving.values import reducers

__all__ = ["Proxy", "Question", "connect", "export", "offer", "ref", "value"]

_links: weakref.WeakValueDictionary[tuple[str, Name], _Link] = weakref.WeakValueDictionary()
"""Links that were made for references from other processes, by endpoint and process."""


def connect(sfm: Endpoint, name: Name, timeout: float | None = None) -> Engine:
    """Connect to the process of this name or rank. Its attributes are the objects it offers.

    A process offers what it has exported, and an engine also what its cells have defined. It
    answers while it serves: an engine between cells, another process in ``serving.serve(sfm)``.
    Used as a context manager, the connection ends all its references.

    Args:
        sfm: this process's endpoint.
        name: the name or rank of the other process.
        timeout: seconds for each call; None: a call waits as long as the process lives.
    Raises:
        UnknownName: there is no such process.
        PeerLost: the process has died.
    """
    return Engine(_Link(sfm, name, timeout), 0, (), "")


def value(proxy: Proxy) -> Any:
    """Return a copy of the object that the proxy refers to."""
    return proxy._do("value")


class ref(Wrapped):
    """``ref(x)`` as an argument or a result sends a reference to ``x`` instead of a copy."""

    def __reduce__(self) -> Any:
        return _claim, (current.sfm.world, current.sfm.name, lend(self.value, None), "ref")


def _reduce_referenced(value: Any) -> Any:
    """Pickle an object to which other processes have references as a reference."""
    return ref(value).__reduce__() if current.sfm is not None and is_referenced(value) else None


reducers.append(_reduce_referenced)


class Proxy(Reference):
    """A reference to an object of another process. The object lives as long as the reference.

    Calls, methods, attributes, items, ``len``, ``in``, iteration and ``bool`` act on the object.
    ``proxy.method.future(x)`` begins a call and returns a ``concurrent.futures.Future``. Names that
    begin with an underscore cannot be reached.

    Raises:
        RemoteError: an argument cannot be sent, or the call raised what cannot be sent back. It is
            also the cause of every error of the object, and has the traceback of that process.
        RecvTimeout: the call took longer than the ``timeout`` of the connection.
        PeerLost: the process has died.
    """

    _link: _Link
    _title: str
    __slots__ = ("__weakref__", "_link", "_methods", "_number", "_title")

    def __init__(self, link: _Link, number: int, methods: tuple[str, ...], title: str) -> None:
        attributes = {"_link": link, "_number": number, "_methods": {*methods}, "_title": title}
        for name, value in attributes.items():
            object.__setattr__(self, name, value)  # __setattr__ is the remote object's
        if number:
            weakref.finalize(self, link.drop, number).atexit = False

    def _do(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        return self._link.call(self, operation, args, kwargs).result(self._link.timeout)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} keeps {name!r} for itself")
        return _Method(self, name) if name in self._methods else self._do("get", name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._do("call", *args, **kwargs)

    def future(self, /, *args: Any, **kwargs: Any) -> Question:
        """Begin a call of the object; return a future of its result."""
        return self._link.call(self, "call", args, kwargs, waits=False)

    def __dir__(self) -> list[str]:
        return list(self._do("dir"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and hash(other) == hash(self)

    def __hash__(self) -> int:
        return hash((id(self._link), self._number))

    def __repr__(self) -> str:
        return f"<{self._title or 'remote objects'} on {self._link.name}>"

    def __reduce__(self) -> Any:
        link = self._link
        if current.packs_for is link:
            return own_object, (self._number,)
        return _claim, (link.sfm.world, link.name, self._do("lend"), self._title)


def _forward(operation: str) -> Callable[..., Any]:
    return lambda self, *args: self._do(operation, *args)


_FORWARDED = "len getitem setitem delitem contains setattr delattr iter next bool"
for _name in _FORWARDED.split():
    setattr(Proxy, f"__{_name}__", _forward(_name))


class Engine(Proxy):
    """Another process; its attributes are the objects that it offers. ``connect`` makes it."""

    __slots__ = ()

    def new(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function or class in the other process; return a reference to what it makes.

        ``engine.new(C, x)`` makes ``C(x)`` there. The class need not exist there: it is sent.
        """
        return self._do("new", function, *args, **kwargs)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.attachment.release()


class _Method:
    """A method of a remote object; ``?`` shows the object's signature and docstring."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        self._proxy, self._name = proxy, name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._proxy._do(f"call {self._name}", *args, **kwargs)

    def future(self, /, *args: Any, **kwargs: Any) -> Question:
        """Begin a call of the method; return a future of its result."""
        return self._proxy._link.call(self._proxy, f"call {self._name}", args, kwargs, waits=False)

    @property
    def __signature__(self) -> Any:
        return self._proxy._do("signature", self._name)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._proxy._do("doc", self._name)

    def __repr__(self) -> str:
        return f"<{self._proxy._title}.{self._name} on {self._proxy._link.name}>"


class _Link(serving.Asker):
    """An owner's connection to one process."""

    def __init__(self, sfm: Endpoint, name: Name, timeout: float | None = None) -> None:
        super().__init__(sfm, name, objects, "remote")
        self.timeout = timeout
        self._dropped = deque[int]()

    def call(
        self, proxy: Proxy, operation: str, args: tuple[Any, ...], kwargs: Any, waits: bool = True
    ) -> Question:
        title = _title(proxy._title, operation, args, kwargs)
        try:
            with temporarily(packs_for=self, sfm=self.sfm):
                sent = [ref(value) if is_referenced(value) else value for value in args]
                packed = serving.pack((sent, kwargs))
        except Exception as error:
            why = serving.bad_argument(args, kwargs) or str(error)
            text = f"{title} on {self.name!r} was not called: {why}, or give it as remote.ref(x)"
            raise RemoteError(text) from error
        return self.ask(title, waits=waits, what=operation, target=proxy._number, **packed)

    def result(self, question: Question, message: Message) -> Any:
        if "reference" in message:
            return Proxy(self, message.reference, message.methods, question.title)
        with temporarily(sfm=self.sfm):
            return serving.unpack(message)

    def drop(self, number: int) -> None:
        """Report to the process that a reference to its object has ended."""
        self._dropped.append(number)
        with suppress(SFMError):  # the process is dead; or the reference ended during a call
            self.send(dropped=[self._dropped.popleft() for _ in range(len(self._dropped))])


def _title(target: str, operation: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    operation, _, method = operation.partition(" ")
    if operation == "claim":
        return target
    if operation == "get":
        return f"{target}.{args[0]}".lstrip(".")
    shown = [*map(reprlib.repr, args), *(f"{k}={reprlib.repr(v)}" for k, v in kwargs.items())]
    if operation == "call":
        return f"{target}.{method}".strip(".") + f"({', '.join(shown)})"
    if operation == "new":
        return f"{serving.name_of(args[0])}({', '.join(shown[1:])})"
    return f"{operation}({', '.join(filter(None, [target, *shown]))})"


def _claim(world: str, name: Name, number: int, title: str) -> Any:
    """Unpickle a reference: in the object's process to the object itself, elsewhere to a proxy."""
    endpoints = [current.sfm] if current.sfm else open_endpoints()
    fits = (endpoint for endpoint in endpoints if current.sfm or endpoint.world == world)
    sfm = next(fits, None)
    if sfm is None:
        raise SFMError(f"a reference to {title} on {name!r} needs an endpoint of world {world!r}")
    if sfm.name == name:
        return claimed(number)
    link = _links.get((sfm.uid, name)) or _Link(sfm, name)
    _links[sfm.uid, name] = link
    return Proxy(link, 0, (), title)._do("claim", number)
