"""The directory: the members of a world, their addresses, and which of them have died.

``open_directory`` gives the directory of a world: ``LocalDirectory``, a table in the world's folder
on this machine, or, for a world of several machines, ``RemoteDirectory``, which asks a
``DirectoryServer``. Processes use it to find each other; their messages do not pass through it, and
they go on when it has ended.

    roots     the folder of a user's worlds on this machine
    folders   the folders of worlds, and their locks
    table     the members, and the rank and name of a newcomer
    sites     the names of sites
    local     the directory in a folder
    unix      the sockets of a cluster's controller
    cleaning  removes the files of dead processes
    address   the address of a directory server, with its key
    server, liveness, client, remote    the directory between machines
    clients   the clients that the server admits, by their keys
    gateways  the gateways that the server knows, and their key
    carrier   carries the messages between relays and observers as bytes, and reads none of them
    signals   signals a process of this machine, and never a stranger's

Only ``server``, ``client`` and ``zmq/`` import the package zmq.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from sfm_kernel.directory.roots import root
from sfm_kernel.errors import WorldError

if TYPE_CHECKING:
    from sfm_kernel.directory.cleaning import clean, remove_world, worlds
    from sfm_kernel.directory.client import Client
    from sfm_kernel.directory.local import LocalDirectory
    from sfm_kernel.directory.remote import RemoteDirectory
    from sfm_kernel.directory.server import DirectoryServer
    from sfm_kernel.transport.base import Directory

__all__ = [
    "Client",
    "DirectoryServer",
    "LocalDirectory",
    "RemoteDirectory",
    "clean",
    "open_directory",
    "remove_world",
    "root",
    "worlds",
]


def open_directory(
    world: str, *, create: bool, url: str | None = None, key: bytes | None = None
) -> Directory:
    """The directory of ``world``, opened; close it after use.

    Args:
        create: make the world on this machine if it does not exist (without ``url``).
        url: the address of a DirectoryServer, with its key (see ``ServerAddress``); default
            ``$SFM_DIRECTORY``; without either, the folder on this machine.
        key: the world's key, with ``url``; default ``$SFM_KEY`` (hexadecimal).

    Raises:
        WorldGone: the world does not exist, or the server does not answer.
        WorldAccess: the folder belongs to another user, or the key is not the server's.
        WorldError: there is a url and no key, or the url lacks the server's.
    """
    url = url or os.environ.get("SFM_DIRECTORY")
    if not url:
        from sfm_kernel.directory.local import LocalDirectory

        return LocalDirectory(world, create=create)
    from sfm_kernel.transport.address import environment_key

    key = environment_key(os.environ) if key is None else key
    if not key:
        raise WorldError(
            "the directory server admits none without the world's key: give key= or set SFM_KEY"
        )
    from sfm_kernel.directory.remote import RemoteDirectory

    return RemoteDirectory(world, url, key)


def __getattr__(name: str) -> Any:
    # Importing zmq takes 50 ms, and a world in a folder does not need it; and the launcher of C
    # programs only removes worlds.
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_MODULES = {
    "Client": "client",
    "DirectoryServer": "server",
    "LocalDirectory": "local",
    "RemoteDirectory": "remote",
    "clean": "cleaning",
    "remove_world": "cleaning",
    "worlds": "cleaning",
}
