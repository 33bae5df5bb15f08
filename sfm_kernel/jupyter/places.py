"""The world, the key and the files of an ipyparallel cluster.

Engines and notebooks read them from the controller's connection files, which only the user can
read, so nothing has to be configured or sent.
"""

from __future__ import annotations

import glob
import hashlib
import hmac
import json
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any

from sfm_kernel.directory.sites import check_site, requested_site
from sfm_kernel.directory.unix import remove_sockets
from sfm_kernel.errors import WorldAccess

DIRECTORY = "sfm_directory"
"""The entry of a connection file that holds the url of the world's directory."""

SITE = "sfm_site"
"""The entry that holds the site of all engines of the cluster, if the controller was told one."""

_KEYS = (
    "IPP_CONNECTION_INFO",
    "IPP_SESSION_KEY",
    *(f"IPP_CURVE_{kind}KEY" for kind in ("SERVER", "SECRET", "PUBLIC")),
)
"""The environment variables in which ipyparallel takes keys."""


def forget_keys() -> None:
    """Take the cluster's keys out of this process's environment: a cell's `!env` would print them.

    To be called when they have been read.
    """
    for name in _KEYS:
        os.environ.pop(name, None)


def make_private(path: str) -> None:
    """See to it that a file is there which only the user can read; writing to it changes no mode.

    The umask of a notebook's process belongs to its user's files.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def world_name(connection: Mapping[str, Any]) -> str:
    """The name of the cluster's world: the same for its engines and clients, unique to it.

    Args:
        connection: what a connection file (``ipcontroller-engine.json`` or ``-client.json``) holds.
    """
    # the port tells clusters apart that share a key (IPP_SESSION_KEY)
    port = str(connection["registration"]).rpartition(":")[2]
    label = f"sfm world name {connection['location']} {port}"
    return "ipp-" + _derive(connection, label).hex()[:16]


def world_key(connection: Mapping[str, Any]) -> bytes:
    """The world's secret, 32 bytes: only who can read the connection file knows it.

    Raises:
        WorldAccess: the cluster has no session key.
    """
    return _derive(connection, "sfm world")


def _derive(connection: Mapping[str, Any], label: str) -> bytes:
    session_key = connection.get("key") or ""
    if not session_key:
        raise WorldAccess(
            "this cluster has no session key (IPP_ENABLE_CURVE=1 turns it off), so its world "
            "would be open to anybody. Set IPP_SESSION_KEY to a long random text as well, and "
            "start the cluster again"
        )
    return hmac.digest(session_key.encode(), label.encode(), hashlib.sha256)


def engine_site(connection: Mapping[str, Any]) -> str | None:
    """The site of an engine: of its own environment, else the cluster's; None if of its machine.

    Raises BadName.
    """
    told = connection.get(SITE)
    if told is not None:
        told = check_site(told, "the cluster's site (its controller's SFM_SITE, or c.SFM.site)")
    return requested_site(None, told or "") or None


def notebook_site(connection: Mapping[str, Any], site: str | None) -> str | None:
    """The site of a notebook that was told ``site``; beside the controller it is the engines'.

    Raises BadName.
    """
    beside = connection["location"] == socket.gethostname()
    return requested_site(site) or (engine_site(connection) if beside else None)


def remove_files(profile_dir: str, cluster_id: str) -> None:
    """Remove the connection files, logs and sockets of a cluster that ends."""
    if not cluster_id:
        return
    remove_sockets(cluster_id)
    name = glob.escape(cluster_id)
    for pattern in (f"security/*-{name}.json", f"security/*-{name}-*.json", f"log/*{name}*"):
        for path in glob.glob(os.path.join(glob.escape(profile_dir), pattern)):
            try:
                os.remove(path)
            except OSError:
                pass  # somebody else removed it


def running_clusters() -> list[Any]:
    """ipyparallel's clusters of this user, whoever started them."""
    from ipyparallel.cluster.cluster import ClusterManager

    log = logging.getLogger("sfm.clusters")
    log.setLevel(logging.CRITICAL)  # it would report every file of a cluster that has ended
    found = ClusterManager(log=log).load_clusters().values()
    return [one for one in found if one.controller and one.controller.state != "after"]


def connection(cluster: Any) -> dict[str, Any]:
    """What the clients' connection file says."""
    with open(cluster.controller.connection_files["client"]) as file:
        content: dict[str, Any] = json.load(file)
    return content
