"""MPI.Exception, the calls for error codes, and how an error is raised.

``fail`` is how the calls of MPI report an error of their own. ``translated`` makes those of the
messaging below them errors of MPI. Both go through the error handler of what the call is made on.
"""

from __future__ import annotations

import operator
from builtins import Exception as AnyException
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

from sfm_kernel.errors import EncodeError, MessageTooLarge, PeerLost, SegmentFull, SFMError
from sfm_kernel.mpi.base import codes
from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_NO_MEM,
    ERR_OTHER,
    ERR_PROC_FAILED,
    ERR_UNKNOWN,
    SUCCESS,
)


class Exception(SFMError, RuntimeError):
    """An error of MPI: a *code*, and what happened.

    It compares as its code, and is true unless that is SUCCESS. The ways to catch it are
    ``except MPI.Exception``, ``except SFMError`` and ``except RuntimeError``.
    """

    _text = ""
    _reported = False

    def __init__(self, ierr: int = SUCCESS, /, text: str = "") -> None:
        code = operator.index(ierr)
        super().__init__(code if code >= SUCCESS else ERR_UNKNOWN)
        if text:
            self._text = text

    def __int__(self) -> int:
        code: int = self.args[0]
        return code

    def __bool__(self) -> bool:
        return int(self) != SUCCESS

    def __hash__(self) -> int:
        return hash(int(self))

    def __eq__(self, other: object, /) -> bool:
        return int(self) == other

    def __ne__(self, other: object, /) -> bool:
        return int(self) != other

    def __lt__(self, other: Exception | int, /) -> bool:
        return int(self) < int(other)

    def __le__(self, other: Exception | int, /) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: Exception | int, /) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: Exception | int, /) -> bool:
        return int(self) >= int(other)

    def __repr__(self) -> str:
        return f"MPI.Exception({int(self)})"

    def __str__(self) -> str:
        return self.Get_error_string()

    def Get_error_code(self) -> int:
        """The code."""
        return int(self)

    def Get_error_class(self) -> int:
        """The class of the code; of an unknown code, ERR_UNKNOWN."""
        return codes.class_of(int(self)) if codes.is_known(int(self)) else ERR_UNKNOWN

    def Get_error_string(self) -> str:
        """What happened: the name of the class, and the details, where there are any."""
        if not self._text:
            return codes.text_of(int(self)) if codes.is_known(int(self)) else _unknown(int(self))
        name = codes.NAMES.get(self.Get_error_class(), str(int(self)))
        return f"{name}: {self._text}"

    @property
    def error_code(self) -> int:
        """The code."""
        return self.Get_error_code()

    @property
    def error_class(self) -> int:
        """The class of the code."""
        return self.Get_error_class()

    @property
    def error_string(self) -> str:
        """What happened."""
        return self.Get_error_string()


MPIError: TypeAlias = Exception
"""The same, where ``Exception`` would be taken for Python's."""


def fail(code: int, text: str, handle: Any = None, cause: BaseException | None = None) -> NoReturn:
    """Report an error: to the error handler of ``handle``, and by raising it.

    Args:
        code: an error class or code.
        text: what happened and what to do next.
        handle: the communicator, session, … that the call was made on, or its state; or None.
        cause: the error that led to this one.
    Raises:
        Exception: always, unless the handler ends the process (ERRORS_ARE_FATAL, ERRORS_ABORT).
    """
    error = MPIError(code, text)
    error.__cause__ = cause
    report(error, handle)


def report(error: MPIError, handle: Any) -> NoReturn:
    """Give an error to the error handler of ``handle``, unless one has had it; and raise it."""
    from sfm_kernel.mpi.base.errhandler import default  # it imports this module

    if not error._reported:
        error._reported = True
        errhandler = getattr(getattr(handle, "_state", handle), "errhandler", None) or default()
        errhandler._handle(handle, error)
    raise error


class translated:
    """``with translated(handle):`` errors of the messaging inside become those of MPI.

    The first error is the cause of the other. An object that cannot be pickled raises what it
    raises: that is an error of the program and none of MPI. Errors of MPI, and Stop, pass.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Any = None) -> None:
        self._handle = handle

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, SFMError) and not isinstance(error, (MPIError, EncodeError)):
            fail(code_for(error), str(error), self._handle, error)


def code_for(error: AnyException) -> int:
    """The error class for an error of the messaging."""
    if isinstance(error, MPIError):
        return int(error)
    if isinstance(error, PeerLost):
        return ERR_PROC_FAILED
    if isinstance(error, (MessageTooLarge, SegmentFull, MemoryError)):
        return ERR_NO_MEM
    return ERR_OTHER


def Get_error_class(errorcode: int) -> int:
    """The class of a code; a class is its own class."""
    return codes.class_of(_known(errorcode))


def Get_error_string(errorcode: int) -> str:
    """What a class or code means. Empty for one that the program added without a text."""
    return codes.text_of(_known(errorcode))


def Add_error_class() -> int:
    """A new error class, larger than ERR_LASTCODE. Other processes do not know it."""
    return codes.add()


def Remove_error_class(errorclass: int) -> None:
    """Remove a class that was added.

    Raises:
        Exception: ERR_ARG: it was not added, or still has codes or a text.
    """
    _remove(errorclass, a_class=True)


def Add_error_code(errorclass: int) -> int:
    """A new code of a class."""
    if not codes.is_class(_known(errorclass)):
        fail(ERR_ARG, f"{errorclass} is a code and no class: give its class")
    return codes.add(errorclass)


def Remove_error_code(errorcode: int) -> None:
    """Remove a code that was added.

    Raises:
        Exception: ERR_ARG: it was not added, or still has a text.
    """
    _remove(errorcode, a_class=False)


def Add_error_string(errorcode: int, string: str) -> None:
    """Say what a class or code means that was added."""
    codes.set_text(_added(errorcode), string)


def Remove_error_string(errorcode: int) -> None:
    """Take back what an added class or code means."""
    codes.remove_text(_added(errorcode))


def _remove(code: int, *, a_class: bool) -> None:
    if codes.is_class(_added(code)) != a_class:
        fail(ERR_ARG, f"{code} is a {'code' if a_class else 'class'}: remove it as one")
    if why := codes.remove(code):
        fail(ERR_ARG, why)


def _known(code: int) -> int:
    if not codes.is_known(operator.index(code)):
        fail(ERR_ARG, _unknown(code))
    return code


def _added(code: int) -> int:
    if codes.is_predefined(_known(code)):
        fail(ERR_ARG, f"{codes.NAMES[code]} belongs to MPI: only added codes can be changed")
    return code


def _unknown(code: int) -> str:
    return f"{code} is no error code: codes are made by Add_error_class and Add_error_code"
