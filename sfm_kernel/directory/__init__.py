"""The directory: the members of a world, their addresses, and which of them have died.

``open_directory`` gives the directory of a world: ``LocalDirectory``, a table in the world's folder
on this machine, or, for a world of several machines, ``RemoteDirectory``, which asks a
``DirectoryServer``. Processes use it to find each other; their messages do not pass through it, and
they go on when it has ended.

    local     the directory in a folder, whose table and files the native core keeps
    sites     whether sites are worth showing
    unix      the sockets of a cluster's controller
    server, liveness, client, remote    the directory between machines
    clients   the clients that the server admits, by their keys
    gateways  the gateways that the server knows, and their key
    carrier   carries the messages between relays and observers as bytes, and reads none of them
    signals   signals a process of this machine, and never a stranger's

Only ``server`` and ``zmq/`` import the package zmq.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import (
    SITES,
    JoinRequest,
    Member,
    Name,
    Table,
    WorldFolder,
    check_private,
    check_site,
    check_world,
    clean_worlds,
    is_alive,
    make_folder,
    make_root,
    remove_dead,
    remove_sites,
    remove_unused,
    remove_world,
    requested_site,
    root,
    site_of_host,
    sites_folder,
    worlds,
)
from sfm_kernel.directory.unix import clean_sockets
from sfm_kernel.errors import WorldError

if TYPE_CHECKING:
    from sfm_kernel.directory.client import Client
    from sfm_kernel.directory.local import LocalDirectory
    from sfm_kernel.directory.remote import RemoteDirectory
    from sfm_kernel.directory.server import DirectoryServer
    from sfm_kernel.transport.base import Directory

__all__ = [
    "SITES",
    "Client",
    "DirectoryServer",
    "JoinRequest",
    "LocalDirectory",
    "Member",
    "Name",
    "RemoteDirectory",
    "Table",
    "WorldFolder",
    "check_private",
    "check_site",
    "check_world",
    "clean",
    "is_alive",
    "make_folder",
    "make_root",
    "open_directory",
    "remove_dead",
    "remove_sites",
    "remove_unused",
    "remove_world",
    "requested_site",
    "root",
    "site_of_host",
    "sites_folder",
    "worlds",
]


def clean() -> list[str]:
    """Remove the files of dead processes; returns the paths that were removed.

    Worlds in which no process lives are removed completely; from the others, the files of dead
    processes and their entries in the table. Safe while processes join or leave.

    Raises WorldAccess, as all functions of this module, if the root is another user's or open to
    others.
    """
    return [*clean_worlds(), *clean_sockets()]


def open_directory(
    world: str, *, create: bool, url: str | None = None, key: bytes | None = None
) -> Directory:
    """The directory of ``world``, opened; close it after use.

    Args:
        create: make the world on this machine if it does not exist (without ``url``).
        url: the address of a DirectoryServer, with its key (see ``DirectoryServer``); default
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
    # Importing zmq takes 50 ms, and a world in a folder does not need it.
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_MODULES = {
    "Client": "client",
    "DirectoryServer": "server",
    "LocalDirectory": "local",
    "RemoteDirectory": "remote",
}
