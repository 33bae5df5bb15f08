"""The error classes of MPI and what each means, and the codes that a program adds to them."""

from __future__ import annotations

from sfm_kernel.mpi.base import constants
from sfm_kernel.mpi.base.constants import ERR_LASTCODE

NAMES = {
    value: f"MPI_{name}"
    for name, value in vars(constants).items()
    if name.startswith("ERR_") or name == "SUCCESS"
}

TEXTS = {
    "SUCCESS": "no error",
    "ERR_BUFFER": "a buffer cannot be used for this",
    "ERR_COUNT": "a count is negative, or does not fit",
    "ERR_TYPE": "a datatype is null, or cannot be used for this",
    "ERR_TAG": "a tag is negative, or larger than TAG_UB",
    "ERR_COMM": "a communicator is null, freed, or of the wrong kind",
    "ERR_RANK": "no process of the communicator or group has this rank",
    "ERR_ROOT": "no process of the communicator can be this root",
    "ERR_GROUP": "a group is null, or cannot be used for this",
    "ERR_OP": "a reduction operation is null, or not defined for these values",
    "ERR_TOPOLOGY": "the communicator has no such topology",
    "ERR_DIMS": "the dimensions do not fit together",
    "ERR_ARG": "an argument has no meaning here",
    "ERR_UNKNOWN": "an error that has no class",
    "ERR_TRUNCATE": "a message is longer than the buffer that receives it",
    "ERR_OTHER": "an error of another kind",
    "ERR_INTERN": "an error inside MPI",
    "ERR_IN_STATUS": "each status tells the error of its request",
    "ERR_PENDING": "the request has neither ended nor failed",
    "ERR_REQUEST": "a request is null, or cannot be used for this",
    "ERR_ACCESS": "access to the file is denied",
    "ERR_AMODE": "the file cannot be opened in this mode",
    "ERR_BAD_FILE": "the name of the file has no meaning",
    "ERR_CONVERSION": "a function that converts data has failed",
    "ERR_DUP_DATAREP": "this representation of data is already defined",
    "ERR_FILE_EXISTS": "the file exists already",
    "ERR_FILE_IN_USE": "a process has the file open",
    "ERR_FILE": "a file is null, or closed",
    "ERR_INFO": "an info is null, or freed",
    "ERR_INFO_KEY": "the key of an info is empty or too long",
    "ERR_INFO_VALUE": "the value of an info is too long",
    "ERR_INFO_NOKEY": "the info does not have this key",
    "ERR_IO": "reading or writing has failed",
    "ERR_NAME": "no service has this name",
    "ERR_NO_MEM": "there is not enough memory",
    "ERR_NOT_SAME": "the processes gave different arguments to one collective call",
    "ERR_NO_SPACE": "there is no room for the file",
    "ERR_NO_SUCH_FILE": "the file does not exist",
    "ERR_PORT": "there is no such port",
    "ERR_QUOTA": "the quota of files is used up",
    "ERR_READ_ONLY": "the file or its file system is read-only",
    "ERR_SERVICE": "a service cannot be published or withdrawn",
    "ERR_SPAWN": "processes could not be started",
    "ERR_UNSUPPORTED_DATAREP": "there is no such representation of data",
    "ERR_UNSUPPORTED_OPERATION": "the file does not support this",
    "ERR_WIN": "a window is null, or freed",
    "ERR_BASE": "the address of a window has no meaning",
    "ERR_LOCKTYPE": "there is no such type of lock",
    "ERR_KEYVAL": "there is no such attribute key",
    "ERR_RMA_CONFLICT": "accesses to a window are in conflict",
    "ERR_RMA_SYNC": "calls of a window's synchronization are in the wrong order",
    "ERR_SIZE": "the size of a window has no meaning",
    "ERR_DISP": "a displacement is outside of the window",
    "ERR_ASSERT": "there is no such assertion",
    "ERR_RMA_RANGE": "memory of the target is outside of its window",
    "ERR_RMA_ATTACH": "memory cannot be attached to the window",
    "ERR_RMA_SHARED": "memory cannot be shared by these processes",
    "ERR_RMA_FLAVOR": "the window is of the wrong flavor",
    "ERR_SESSION": "a session is null, or finalized",
    "ERR_PROC_ABORTED": "a process has aborted",
    "ERR_VALUE_TOO_LARGE": "a value does not fit into its type",
    "ERR_ERRHANDLER": "an error handler is null, or cannot be used for this",
    "ERR_ABI": "the binary interface does not know this",
    "ERR_PROC_FAILED": "a process that the call depends on has died or left",
    "ERR_PROC_FAILED_PENDING": "a process that may have sent the message has died",
    "ERR_REVOKED": "the communicator has been revoked",
    "ERR_LASTCODE": "the last code of MPI itself",
}
"""What each class means, by its name without ``MPI_``."""

_predefined = {code: f"{name}: {TEXTS[name[4:]]}" for code, name in NAMES.items()}
_class_of: dict[int, int] = {}
_texts: dict[int, str] = {}


def is_predefined(code: int) -> bool:
    return code in _predefined


def is_known(code: int) -> bool:
    return code in _predefined or code in _class_of


def class_of(code: int) -> int:
    """The class of a known code; a class is its own."""
    return _class_of.get(code, code)


def text_of(code: int) -> str:
    """What a known code means; empty for an added one that was given no text."""
    return _predefined.get(code) or _texts.get(code, "")


def last_used() -> int:
    """The largest code that exists."""
    return max(_class_of, default=ERR_LASTCODE)


def add(errorclass: int | None = None) -> int:
    """A new code of ``errorclass``, or a new class."""
    code = last_used() + 1
    _class_of[code] = code if errorclass is None else errorclass
    return code


def remove(code: int) -> str:
    """Remove an added class or code; or why that cannot be."""
    if code in _texts:
        return f"{code} still has a text: remove that first (Remove_error_string)"
    if any(errorclass == code for one, errorclass in _class_of.items() if one != code):
        return f"class {code} still has codes: remove these first (Remove_error_code)"
    del _class_of[code]
    return ""


def is_class(code: int) -> bool:
    return class_of(code) == code


def set_text(code: int, text: str) -> None:
    _texts[code] = text


def remove_text(code: int) -> None:
    _texts.pop(code, None)
