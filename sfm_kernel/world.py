"""Joining a world."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sfm_kernel._native import (
    Inbox,
    JoinRequest,
    Segment,
    remove_dead,
    requested_site,
    site_of_host,
)
from sfm_kernel.directory import LocalDirectory, open_directory
from sfm_kernel.endpoint import BUFFERING, Endpoint, ending
from sfm_kernel.errors import BadName, EndpointClosed, WorldError, limits_named
from sfm_kernel.transport.base import Directory, Transport
from sfm_kernel.transport.inproc import InprocTransport
from sfm_kernel.transport.shm import ShmTransport, segment_path
from sfm_kernel.transport.zmq import ZmqTransport

KINDS = ("inproc", "shm", "zmq")


def join(
    world: str,
    name: str | None = None,
    rank: int | None = None,
    *,
    guest: bool = False,
    names: tuple[str, ...] = (),
    buffering: int = BUFFERING,
    create: bool = True,
    directory: str | None = None,
    key: bytes | None = None,
    info: dict[str, Any] | None = None,
    size: int | None = None,
    site: str | None = None,
) -> Endpoint:
    """Join ``world`` as a process. Removes this machine's worlds whose last process has died.

    Args:
        world: its name: letters, digits, ".", "_", "-".
        name: the name of this process; its rank if None.
        rank: a certain rank; without it the lowest free one, or the rank of the dead process whose
            name it takes.
        guest: join without a rank, as a notebook does: a guest can observe, send and receive.
        names: names by rank, for processes that do not know their rank yet.
        buffering: bytes; see ``Endpoint.buffering``.
        create: make the world if it does not exist; if False, raise WorldGone then.
        directory, key: address and key of a directory server, as it prints them, for worlds that
            span machines; from ``SFM_DIRECTORY`` and ``SFM_KEY`` (hexadecimal) if None. Without
            both, the world is on this machine.
        info: a dict of JSON values that others can read in ``Endpoint.members()``.
        size: the value of ``Endpoint.size``; by default the number of ranks.
        site: the site of this process; from ``SFM_SITE`` if None, or the machine's name. Machines
            that are near each other may have the same site: 1 to 64 characters without spaces.
    Returns:
        The endpoint: a context manager that leaves the world at the end.
    Raises:
        BadName, NameInUse, WorldFull, WorldGone, WorldAccess, SegmentFull, SystemLimit: each
        message says what to do. Nothing is left behind.
    Example:
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     sfm.name, sfm.rank, sfm.size
        ('A', 0, 1)
    """
    if name is not None and not isinstance(name, str):
        raise BadName(f"a name is a text of 1 to 64 characters, not {name!r}; see rank= for a rank")
    site = requested_site(site) or site_of_host(socket.gethostname())
    uid = secrets.token_hex(16)
    request: dict[str, Any] = {
        "uid": uid,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "name": name,
        "rank": rank,
        "guest": guest,
        "names": tuple(names),
        "info": info or {},
        "site": site,
    }
    JoinRequest(**request, segment="", address="")  # raises if it cannot be one
    if ending.has_begun():  # in a daemon thread; nobody would close its endpoint
        raise EndpointClosed("this process is ending and has left its worlds: it joins no other")
    chosen = _chosen()
    with limits_named(), contextlib.ExitStack() as undo:
        remove_dead()
        found = open_directory(world, create=create, url=directory, key=key)
        undo.callback(found.close)
        path = segment_path(found.folder, uid)
        inbox = Inbox(Segment.create(path, uid, ""))
        undo.callback(Path(path).unlink, missing_ok=True)
        undo.callback(inbox.close)
        if os.environ.get("SFM_TRACE") == "0":  # for measuring the cost of the trace
            inbox.trace_off()
        far = _between_machines(found, inbox, uid, site, chosen)
        if far:
            undo.callback(far.close)
        member = found.join(**request, segment=path, address=far.address if far else "")
        undo.callback(found.leave, member)
        transports: list[Transport] = [
            InprocTransport(member, inbox),
            ShmTransport(member, found.folder, inbox),
        ]
        if far:
            far.start(member, found)
            transports.append(far)
        endpoint = Endpoint(
            member, found, inbox, transports, kinds=chosen or KINDS, buffering=buffering, size=size
        )
        undo.pop_all()
        return endpoint


def _chosen() -> tuple[str, ...]:
    """The transports that ``SFM_TRANSPORT`` allows, such as "zmq" or "shm,zmq"; () if unset."""
    text = os.environ.get("SFM_TRANSPORT", "")
    chosen = tuple(filter(None, map(str.strip, text.split(","))))
    for kind in chosen:
        if kind not in KINDS:
            if kind == "tcp":
                raise WorldError(
                    f"SFM_TRANSPORT={text!r}: between machines messages go over ZeroMQ now: "
                    f"give zmq instead of tcp, to all processes of the world"
                )
            known = ", ".join(KINDS)
            raise WorldError(f"SFM_TRANSPORT={text!r}: {kind!r} is none of {known}")
    return chosen


def _between_machines(
    found: Directory, inbox: Inbox, uid: str, site: str, chosen: Collection[str]
) -> ZmqTransport | None:
    """The one between machines; None in a world of one, unless ``SFM_TRANSPORT`` requests it."""
    table = found.table if isinstance(found, LocalDirectory) else None
    if table and "zmq" not in chosen:
        return None
    context = found.client.zmq_context if found.client else None
    return ZmqTransport(inbox, found.key, found.pair, uid, site, table=table, context=context)
