"""What MPI has and this package has not: windows, files, processes that start others, recovery.

The names exist, so that programs can ask for them. Each call raises NotOffered, which tells what
does the same work here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeVar

from sfm_kernel.mpi.base.constants import ERR_FILE, ERR_UNSUPPORTED_OPERATION, ERR_WIN
from sfm_kernel.mpi.base.errhandler import ErrhandlerState, HasErrhandler
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.keyvals import HasAttributes

Class = TypeVar("Class")


class NotOffered(MPIError, NotImplementedError):
    """What a call raises that is not offered; its class is ERR_UNSUPPORTED_OPERATION.

    Programs that ask whether an MPI library can do something catch one of its two bases. No error
    handler is called: the program has asked, and nothing has failed.
    """


def _refusing(call: str, instead: str, name: str) -> Callable[..., NoReturn]:
    def refusal(*args: Any, **kwds: Any) -> NoReturn:
        raise NotOffered(ERR_UNSUPPORTED_OPERATION, f"MPI.{call} is not offered here: {instead}")

    refusal.__name__ = refusal.__qualname__ = name
    refusal.__doc__ = f"Not offered: raises MPI.Exception. Instead, {instead}"
    return refusal


def without(
    calls: str, instead: str, properties: str = "", of: str = ""
) -> Callable[[type[Class]], type[Class]]:
    """Decorator: gives a class these calls and properties, which say what to do instead.

    Args:
        of: the class that programs know them of, if that is another one.
    """

    def add(cls: type[Class]) -> type[Class]:
        known = of or cls.__name__
        for name in calls.split():
            setattr(cls, name, _refusing(f"{known}.{name}", instead, name))
        for name in properties.split():
            setattr(cls, name, property(_refusing(f"{known}.{name}", instead, name)))
        return cls

    return add


def _function(name: str, instead: str) -> Callable[..., NoReturn]:
    return _refusing(name, instead, name)


class Nothing:
    """What a handle stands for of which none can be made."""

    errhandler: ErrhandlerState | None = None
    attributes: ClassVar[dict[int, Any]] = {}


# ---- windows ----


@without(
    "Create Allocate Allocate_shared Create_dynamic Shared_query Attach Detach Free "
    "Set_info Get_info Get_group Get_name Set_name tomemory "
    "Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap "
    "Rput Rget Raccumulate Rget_accumulate "
    "Fence Start Complete Post Wait Test Lock Unlock Lock_all Unlock_all "
    "Flush Flush_all Flush_local Flush_local_all Sync",
    "send and receive what others need (Send, Recv, Alltoallv), or, on one machine, share memory "
    "with multiprocessing.shared_memory",
    properties="info group group_size group_rank attrs flavor model name",
)
class Win(HasAttributes, HasErrhandler, Handle[Nothing]):
    """Window of memory that other processes could write to. None can be made here."""

    __slots__ = ()
    _null_error = ERR_WIN


WIN_NULL = Win._constant("WIN_NULL")


# ---- files ----

_SIDES = "Read{0} Read{0}_begin Read{0}_end Write{0} Write{0}_begin Write{0}_end"
_SPLIT = " ".join(_SIDES.format(where) for where in ("_at_all", "_all", "_ordered"))
_STARTED = "Iread{0} Iwrite{0}"
_ALL_STARTED = " ".join(_STARTED.format(w) for w in ("", "_at", "_at_all", "_all", "_shared"))


@without(
    "Open Close Delete Set_size Preallocate Get_size Get_amode Get_group Set_info Get_info "
    "Set_view Get_view Seek Get_position Get_byte_offset Seek_shared Get_position_shared "
    "Get_type_extent Set_atomicity Get_atomicity Sync "
    f"Read Read_at Read_shared Write Write_at Write_shared {_SPLIT} {_ALL_STARTED}",
    "let one process write what all have gathered (gather, Gatherv), or each process a part of one "
    "file with numpy.memmap",
    properties="size amode group group_size group_rank info atomicity",
)
class File(HasErrhandler, Handle[Nothing]):
    """File that processes read and write together. None can be opened here."""

    __slots__ = ()
    _null_error = ERR_FILE
    _free_call = "Close"

    @property
    def _live(self) -> Nothing:
        """The null file has an error handler: that of files that are opened later."""
        return _NEW_FILES


_NEW_FILES = Nothing()
FILE_NULL = File._constant("FILE_NULL")


# ---- processes ----

_START_ALL = (
    "start all processes at once (python -m sfm_kernel.mpi -n N program.py), or hand work to "
    "others with sfm_kernel.mpi.futures"
)
_ONE_JOB = (
    "processes of different jobs meet in a world of SFM (sfm_kernel.join), where each can send to "
    "the others"
)


@without("Spawn Spawn_multiple", _START_ALL, of="Intracomm")
@without("Accept Connect", _ONE_JOB, of="Intracomm")
class DynamicProcesses:
    """Part of Intracomm: starting processes, and meeting those of other jobs."""

    __slots__ = ()


@without("Join", _ONE_JOB, of="Comm")
@without(
    "Revoke Is_revoked Get_failed Ack_failed Agree Iagree Shrink Ishrink",
    "calls that need a process which has died raise an error of class ERR_PROC_FAILED on all "
    "others, who can go on in a new communicator (Create_group)",
    of="Comm",
)
class FaultTolerance:
    """Part of Comm: recovering a communicator of which a process has died."""

    __slots__ = ()


Open_port = _function("Open_port", _ONE_JOB)
Close_port = _function("Close_port", _ONE_JOB)
Publish_name = _function("Publish_name", _ONE_JOB)
Unpublish_name = _function("Unpublish_name", _ONE_JOB)
Lookup_name = _function("Lookup_name", _ONE_JOB)
Register_datarep = _function("Register_datarep", "files are read and written by other means")
