"""The folder of a user's worlds on a machine, on which all processes of the user agree.

It is ``sfm-UID`` in shared memory. Another user may have taken that name: shared memory is open to
all, and a folder belongs to its maker. Then the folder has a name that nobody can guess, and a file
in the user's home records it.

A folder ``sfm-UID`` that belongs to the user takes precedence over the record, since nobody else
can make or remove one; so the record is read only if the name is taken, which is rare. Neither
depends on the environment: XDG_RUNTIME_DIR and XDG_STATE_HOME are set in a login, but not in a cron
job or by a hub's spawner, and the former is removed at logout while engines go on. Several machines
may share a home, and a machine may have several shared memories (containers): a record is valid for
one shared memory, until the machine restarts.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import stat

from sfm_kernel.errors import WorldAccess

SHARED = "/dev/shm"

_LONGEST = "x" * 150
"""As long as the path of any file is within the root."""


def root() -> str:
    """The folder of this user's worlds: ``$SFM_DIR``, or one in shared memory. Not created.

    Raises WorldAccess if SFM_DIR cannot be a folder, or if another user has taken the usual name
    and the user's home cannot record another one.
    """
    if chosen := os.environ.get("SFM_DIR"):
        path = os.path.abspath(chosen)
        try:
            os.lstat(os.path.join(path, _LONGEST))
        except FileNotFoundError:
            return path
        except OSError as problem:
            raise unusable(path, problem) from None
        return path
    shared = SHARED
    if not (os.path.isdir(shared) and os.access(shared, os.W_OK | os.X_OK)):
        import tempfile

        shared = tempfile.gettempdir()
    usual = os.path.join(shared, f"sfm-{os.geteuid()}")
    owner = _owner(usual)
    if owner == os.geteuid():
        return usual
    record = _record(shared)
    known = _read(record, usual)
    if known is None and owner is None:
        return usual
    if known is None or _owner(known) not in (None, os.geteuid()):
        known = _write(record, usual, known)
    # The other user may have removed the folder meanwhile, and a process of this user made it.
    return usual if _owner(usual) == os.geteuid() else known


def unusable(path: str, problem: OSError) -> WorldAccess:
    """The error for a root that cannot be made or entered."""
    named = f"SFM_DIR={os.environ['SFM_DIR']!r}" if os.environ.get("SFM_DIR") else path
    return WorldAccess(
        f"{named} cannot hold your worlds: {problem.strerror}. Set SFM_DIR to a folder of your "
        f"own, in shared memory if possible"
    )


def _owner(path: str) -> int | None:
    """The number of the user that owns the path; None if it does not exist."""
    try:
        return os.lstat(path).st_uid
    except FileNotFoundError:
        return None


def _record(shared: str) -> str:
    """The file in the user's home that records the folder for this shared memory."""
    import hashlib

    boot = ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    digest = hashlib.sha256(f"{boot} {os.stat(shared).st_dev}".encode()).hexdigest()[:16]
    return os.path.join(home(), ".local", "state", "sfm-kernel", f"root-{digest}")


def home() -> str:
    """The user's home by the system's password database; if it has none, ``$HOME``."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


def _read(record: str, usual: str) -> str | None:
    """The recorded folder; None if there is no record, or others could have written it."""
    try:
        fd = os.open(record, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(fd, errors="replace") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return None
        if status.st_mode & 0o077:
            return None
        known = file.read(1000)
    return known if re.fullmatch(re.escape(usual) + "-[0-9a-f]{32}", known) else None


def _write(record: str, usual: str, instead_of: str | None) -> str:
    """Record a folder, unless another process has just done so; return the recorded folder."""
    import secrets

    fresh = f"{record}.{secrets.token_hex(8)}"
    try:
        os.makedirs(os.path.dirname(record), mode=0o700, exist_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "w") as file:
                file.write(f"{usual}-{secrets.token_hex(16)}")
            try:
                os.link(fresh, record)
            except FileExistsError:
                if _read(record, usual) in (None, instead_of):  # the old record is useless
                    os.replace(fresh, record)
            except OSError:  # a file system that has no links
                os.replace(fresh, record)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh)
    except OSError as error:
        raise WorldAccess(
            f"{usual} belongs to another user, and {record}, which would record another folder for "
            f"your worlds, cannot be written ({error.strerror}). Set SFM_DIR to a folder of your "
            f"own, in shared memory if possible"
        ) from error
    known = _read(record, usual)
    if known is None:
        raise WorldAccess(f"{record} must be a file that only you can read and write. Remove it")
    return known
