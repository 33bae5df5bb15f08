"""Remote objects: what another process has is used as if it were here.

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

Names and attributes give references, or copies of plain data (numbers, texts, bytes); so do calls
of classes. Other calls give copies, but references to what cannot be sent, or is referred to
already, or is returned as ``ref(x)``. Arguments are copied; a reference becomes the object where
that is, and elsewhere a reference to it. Who waits for a call answers what is called on behalf of
it meanwhile: A may call B, which calls A (``serving.asking``).

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
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.errors import RemoteError, SFMError
from sfm_kernel.message import Message
from sfm_kernel.serving import Question
from sfm_kernel.serving.offers import export, offer
from sfm_kernel.serving.references import (
    Reference,
    Wrapped,
    being,
    claimed,
    here,
    is_referred_to,
    lend,
    objects,
    own,
)
from sfm_kernel.serving.values import reducers
from sfm_kernel.transport.base import Name

__all__ = ["Proxy", "Question", "connect", "export", "offer", "ref", "value"]

_links: weakref.WeakValueDictionary[tuple[str, Name], _Link] = weakref.WeakValueDictionary()
"""Those that were made for references that others had sent."""


def connect(sfm: Endpoint, name: Name, timeout: float | None = None) -> Engine:
    """The process of this name or rank, which has as attributes what it offers.

    That is what it has exported, and what an engine's cells have made. It answers while it serves:
    an engine between cells, others in ``serving.serve(sfm)``. ``engine.new(C, x)`` makes ``C(x)``
    there; ``with`` ends all references.

    Args:
        timeout: seconds for each call; without, calls wait as long as the process lives.
    Raises: UnknownName, PeerLost.
    """
    return Engine(_Link(sfm, name, timeout), 0, (), "")


def value(proxy: Proxy) -> Any:
    """A copy of what the proxy refers to."""
    return proxy._do("value")


class ref(Wrapped):
    """``ref(x)`` as an argument or result: the other side gets a reference to ``x``, no copy."""

    def __reduce__(self) -> Any:
        return _claim, (here.sfm.world, here.sfm.name, lend(self.value, None), "ref")


def _referred(value: Any) -> Any:
    """Inside of what is sent: what others refer to travels as a reference."""
    return ref(value).__reduce__() if here.sfm is not None and is_referred_to(value) else None


reducers.append(_referred)


class Proxy(Reference):
    """A reference to an object of another process, which keeps it as long as the reference lives.

    Calls, methods, attributes, items, ``len``, ``in``, iteration and ``bool`` are the object's.
    ``method.future(x)`` begins a call, and gives a ``concurrent.futures.Future``. What begins with
    an underscore is not reached.
    """

    _link: _Link
    _title: str
    __slots__ = ("__weakref__", "_link", "_methods", "_number", "_title")

    def __init__(self, link: _Link, number: int, methods: tuple[str, ...], title: str) -> None:
        given = {"_link": link, "_number": number, "_methods": {*methods}, "_title": title}
        for name, one in given.items():
            object.__setattr__(self, name, one)
        if number:
            weakref.finalize(self, link.drop, number).atexit = False

    def _do(self, what: str, *args: Any, **kwargs: Any) -> Any:
        return self._link.call(self, what, args, kwargs).result(self._link.timeout)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self!r} keeps {name!r} for itself")
        return _Method(self, name) if name in self._methods else self._do("get", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._do("call", *args, **kwargs)

    def future(self, *args: Any, **kwargs: Any) -> Question:
        """Begin to call the object."""
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
        if here.packs_for is link:
            return own, (self._number,)
        return _claim, (link.sfm.world, link.name, self._do("lend"), self._title)


def _forward(what: str) -> Callable[..., Any]:
    return lambda self, *args: self._do(what, *args)


_FORWARDED = "len getitem setitem delitem contains setattr delattr iter next bool"
for _what in _FORWARDED.split():
    setattr(Proxy, f"__{_what}__", _forward(_what))


class Engine(Proxy):
    """A process: its attributes are what it offers."""

    __slots__ = ()

    def new(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A reference to what the function or class, which is sent there, makes there."""
        return self._do("new", function, *args, **kwargs)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.attachment.release()


class _Method:
    """A method of a remote object; ``?`` shows its signature and its text."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        self._proxy, self._name = proxy, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._proxy._do(f"call {self._name}", *args, **kwargs)

    def future(self, *args: Any, **kwargs: Any) -> Question:
        """Begin to call it."""
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
        self, proxy: Proxy, what: str, args: tuple[Any, ...], kwargs: Any, waits: bool = True
    ) -> Question:
        title = _title(proxy._title, what, args, kwargs)
        try:
            with being(packs_for=self, sfm=self.sfm):
                given = [ref(one) if is_referred_to(one) else one for one in args]
                packed = serving.pack((given, kwargs))
        except Exception as error:
            why = serving.bad_argument(args, kwargs) or str(error)
            told = f"{title} on {self.name!r} was not called: {why}, or give it as remote.ref(x)"
            raise RemoteError(told) from error
        return self.ask(title, waits=waits, what=what, target=proxy._number, **packed)

    def result(self, question: Question, message: Message) -> Any:
        if "reference" in message:
            return Proxy(self, message.reference, message.methods, question.title)
        with being(sfm=self.sfm):
            return serving.unpack(message)

    def drop(self, number: int) -> None:
        """A reference has ended."""
        self._dropped.append(number)
        with suppress(SFMError):  # the process is gone; or this came in the middle of a call
            self.tell(dropped=[self._dropped.popleft() for _ in range(len(self._dropped))])


def _title(of: str, what: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    what, _, method = what.partition(" ")
    if what == "claim":
        return of
    if what == "get":
        return f"{of}.{args[0]}".lstrip(".")
    shown = [*map(reprlib.repr, args), *(f"{k}={reprlib.repr(v)}" for k, v in kwargs.items())]
    if what == "call":
        return f"{of}.{method}".strip(".") + f"({', '.join(shown)})"
    if what == "new":
        return f"{serving.name_of(args[0])}({', '.join(shown[1:])})"
    return f"{what}({', '.join(filter(None, [of, *shown]))})"


def _claim(world: str, name: Name, number: int, title: str) -> Any:
    """What a reference becomes that somebody has sent: the object where it is, else a reference."""
    there = [here.sfm] if here.sfm else [one for one in open_endpoints() if one.world == world]
    if not there:
        raise SFMError(f"a reference to {title} on {name!r} needs an endpoint of world {world!r}")
    if there[0].name == name:
        return claimed(number)
    link = _links.get((there[0].uid, name)) or _Link(there[0], name)
    _links[there[0].uid, name] = link
    return Proxy(link, 0, (), title)._do("claim", number)
