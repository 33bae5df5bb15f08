"""Unix sockets of this user's clusters on this machine, out of other users' reach.

A cluster's sockets are in a separate folder beside the worlds, ``root()/.CLUSTER``. A world's name
cannot begin with a dot, so the folder is not taken for a world.
"""

from __future__ import annotations

import contextlib
import os
import socket

from sfm_kernel._native import check_private, make_folder, make_root, root
from sfm_kernel.errors import WorldError

LONGEST = 107
"""The most bytes of a socket's path: Linux' ``sockaddr_un`` has 108, with the zero at the end."""

_CLUSTER = ".sfm-"
_LAST = "s:99"
"""The longest name of a socket in a cluster's folder."""


def can_listen(path: str) -> bool:
    """Whether a socket can be made at the unused ``path``, and only this user can reach it.

    It cannot if the path is too long, if others may enter the folder, or on file systems without
    sockets.
    """
    if len(os.fsencode(path)) > LONGEST:
        return False
    try:
        check_private(os.path.dirname(path))
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(path)
        os.unlink(path)
    except (OSError, WorldError):
        return False
    return True


def make_sockets(cluster: str) -> str | None:
    """Make the folder for a cluster's sockets; return the prefix of their paths.

    None if sockets cannot be made there.
    """
    make_root()
    folder = _folder(cluster)
    make_folder(folder)
    if can_listen(os.path.join(folder, _LAST)):
        return os.path.join(folder, "s")
    os.rmdir(folder)
    return None


def remove_sockets(cluster: str) -> None:
    """Remove the sockets of a cluster that ends; existing connections go on."""
    _remove(_folder(cluster))


def clean_sockets() -> list[str]:
    """Remove the sockets of clusters whose processes have all ended; returns the folders' paths."""
    top, removed = root(), []
    with contextlib.suppress(OSError, WorldError):
        check_private(top)
        for name in os.listdir(top):
            folder = os.path.join(top, name)
            if name.startswith(_CLUSTER) and not _is_used(folder) and _remove(folder):
                removed.append(folder)
    return removed


def _folder(cluster: str) -> str:
    return os.path.join(root(), f".{cluster}")


def _is_used(folder: str) -> bool:
    """Whether a process listens there, or may be about to."""
    files = os.listdir(folder)
    for file in files:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(os.path.join(folder, file))
            except (ConnectionRefusedError, FileNotFoundError):
                continue
            except OSError:
                pass
            return True
    return not files


def _remove(folder: str) -> bool:
    """Remove a folder and its sockets; return whether that succeeded."""
    try:
        for file in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # its owner was faster
                os.unlink(os.path.join(folder, file))
        os.rmdir(folder)
    except OSError:
        return False
    return True
