"""Handle: what communicators, datatypes, requests, groups … have in common."""

from __future__ import annotations

from collections.abc import Callable
from copyreg import __newobj__ as newobj  # type: ignore[attr-defined]
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from sfm_kernel.mpi.base.constants import ERR_ARG, ERR_COMM
from sfm_kernel.mpi.base.errors import fail

State = TypeVar("State")


class Handle(Generic[State]):
    """Stands for something of MPI. Handles that share a *state* are equal; one without is null.

    What a handle stands for lives until it is freed, however many handles there are. A class that
    derives directly from this one is a *kind*: Comm is one, and Intracomm belongs to it.

    A kind says
        _null_error: the error class of calls on a null handle.
        _free_call: the name of the call that frees; empty if there is none.
    Its methods begin with ``state = self._live``.
    """

    __slots__ = ("__weakref__", "_state")
    __hash__ = None  # type: ignore[assignment]

    _null_error: ClassVar[int] = ERR_COMM
    _free_call: ClassVar[str] = "Free"
    _kind: ClassVar[type[Handle[Any]]]
    _constants: ClassVar[list[tuple[Handle[Any], str]]]
    _by_number: ClassVar[WeakValueDictionary[int, Any]]

    _state: State | None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if Handle in cls.__bases__:
            cls._kind = cls
            cls._constants = []
            cls._by_number = WeakValueDictionary()

    def __new__(cls, other: Any = None, /, **named: Any) -> Self:
        """A handle for what another one stands for, which may be given by the kind's name."""
        if named:
            other = named.pop(cls._kind.__name__.lower(), other)
        if named:
            raise TypeError(f"{cls.__name__}() has no argument {next(iter(named))!r}")
        if other is None:
            return cls._of(None)
        if not isinstance(other, cls._kind):
            raise TypeError(
                f"{cls.__name__}() takes a {cls._kind.__name__} or None, not a "
                f"{type(other).__name__}"
            )
        return cls._of(other._state)

    @classmethod
    def _of(cls, state: State | None) -> Self:
        """A new handle of this class for a state."""
        self = object.__new__(cls)
        self._state = state
        return self

    @classmethod
    def _constant(cls, name: str, state: State | None = None) -> Self:
        """A handle that is a constant of MPI: ``free`` leaves it, and it is pickled by name."""
        self = cls._of(state)
        cls._constants.append((self, name))
        return self

    def _named(self) -> tuple[Handle[Any] | None, str]:
        """The constant that this handle is, or is equal to, and its name; (None, "") if none."""
        for one in self._constants:
            if one[0] is self:
                return one
        for one in self._constants:
            if one[0]._state is self._state:
                return one
        return None, ""

    @property
    def _live(self) -> State:
        """The state.

        Raises:
            Exception: the handle is null.
        """
        state = self._state
        if state is None:
            kind = self._kind.__name__
            fail(
                self._null_error,
                f"this {kind} is null or has been freed: use one that was created and is not freed",
            )
        return state

    @property
    def _is_predefined(self) -> bool:
        """Whether this stands for what a constant of MPI stands for."""
        return self._named()[0] is not None

    def __bool__(self) -> bool:
        return self._state is not None

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, self._kind):
            return NotImplemented
        return self._state is other._state

    def __ne__(self, other: object, /) -> bool:
        if not isinstance(other, self._kind):
            return NotImplemented
        return self._state is not other._state

    def __reduce__(self) -> str | tuple[Any, ...]:
        constant, name = self._named()
        if constant is None:
            return self._reduce_created()
        return name if constant is self else (newobj, (type(self), constant))

    def _reduce_created(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """How one that is no constant is pickled."""
        cls = type(self)
        raise ValueError(
            f"a {cls.__module__}.{cls.__name__} cannot be pickled: it belongs to this process"
        )

    def free(self) -> None:
        """Free what this stands for, and make the handle null. Constants and null stay as is."""
        constant, _ = self._named()
        if constant is self or self._state is None:
            return
        if constant is not None:
            self._state = None
        elif self._free_call:
            getattr(self, self._free_call)()

    @property
    def handle(self) -> int:
        """A number for what this stands for; 0 if it is null."""
        state = self._state
        if state is None:
            return 0
        self._by_number[id(state)] = state
        return id(state)

    def tohandle(self) -> int:
        """A number that ``fromhandle`` takes, in this process, while the thing lives."""
        return self.handle

    @classmethod
    def fromhandle(cls, handle: int) -> Handle[State]:
        """A handle for what has this number.

        Raises:
            Exception: nothing that lives has it.
        """
        state = cls._by_number.get(handle)
        if state is None and handle != 0:
            fail(ERR_ARG, f"{handle} is the number of no {cls._kind.__name__} of this process")
        return cls._wrap(state)

    @classmethod
    def _wrap(cls, state: State | None) -> Handle[State]:
        """A handle of the class that fits the state."""
        return cls._of(state)

    # There is one kind of numbers here; in MPI, those of C and of Fortran have other calls.

    def toint(self) -> int:
        """The same as ``tohandle``."""
        return self.handle

    @classmethod
    def fromint(cls, arg: int, /) -> Handle[State]:
        """The same as ``fromhandle``."""
        return cls.fromhandle(arg)

    def py2f(self) -> int:
        """The same as ``tohandle``."""
        return self.handle

    @classmethod
    def f2py(cls, arg: int) -> Handle[State]:
        """The same as ``fromhandle``."""
        return cls.fromhandle(arg)
