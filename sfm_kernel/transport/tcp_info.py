"""The kernel's facts about a TCP connection, and the congestion control that it uses.

Each function takes a Python socket or its file descriptor; ``os.dup`` one that a library owns
and may close meanwhile.
"""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from sfm_kernel import _native
from sfm_kernel.errors import SFMError

_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

Info = dict[str, int | float | None]


def tcp_info(connection: socket.socket | int) -> Info:
    """The kernel's TCP_INFO as it is now: the 42 fields of it that are of use here.

    Names of times end with ``_s`` and are seconds; rates are bytes per second; the windows
    ``snd_cwnd`` and ``snd_ssthresh`` are packets of ``snd_mss`` bytes, ``snd_wnd`` and ``rcv_wnd``
    bytes; all others are bytes or counts. ``snd_ssthresh`` is 2**31 - 1 as long as nothing was
    lost. A field that this kernel does not have is None: ``total_rto`` came with Linux 6.7,
    ``rcv_wnd`` with 6.2, ``snd_wnd`` with 5.4.

    Raises:
        OSError: this is no TCP socket, or it is closed.
    Cost: one system call, 3 us.
    """
    return _native.tcp_info(_fd(connection))


def congestion(connection: socket.socket | int) -> str:
    """The congestion control that this connection uses. Raises OSError as ``tcp_info``."""
    return _native.congestion(_fd(connection))


def set_congestion(connection: socket.socket | int, name: str) -> None:
    """Make this connection use that congestion control, and verify with the kernel that it does.

    Raises:
        SFMError: the kernel has none of that name, or does not let this user choose it; the
            connection uses the same as before. The error names those that can be chosen.
        OSError: as ``tcp_info``.
    """
    try:
        _native.set_congestion(_fd(connection), name)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL):
            why, remedy = "is not in this kernel", f"modprobe tcp_{name}, or take one"
        elif error.errno in (errno.EPERM, errno.EOPNOTSUPP):
            why, remedy = "may not be chosen here", f"ask root to add it to {_ALLOWED}, or take one"
        else:
            raise
        available = ", ".join(choosable()) or "unknown"
        raise SFMError(f"congestion control {name!r} {why}: {remedy} of: {available}") from error


def choosable() -> list[str]:
    """The congestion controls that a socket of this network namespace can be given.

    Without CAP_NET_ADMIN (in the namespace) a process may choose the allowed ones only. Empty if
    the kernel does not list them.
    """
    for file in (_ALLOWED, _AVAILABLE):
        try:
            return file.read_text().split()
        except OSError:
            continue
    return []


def _fd(connection: socket.socket | int) -> int:
    return connection if isinstance(connection, int) else connection.fileno()
