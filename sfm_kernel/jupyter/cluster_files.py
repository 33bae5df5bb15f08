"""The world, the key and the files of an ipyparallel cluster.

Engines and notebooks read world and key from the controller's connection files, which only the user
can read, so nothing has to be configured or sent.
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

from sfm_kernel.directory import check_site, requested_site
from sfm_kernel.directory.unix import remove_sockets
from sfm_kernel.errors import WorldAccess
from sfm_kernel.jupyter.titles import names_of, notebook_of

DIRECTORY = "sfm_directory"
"""The entry of a connection file with the url of the world's directory."""

SITE = "sfm_site"
"""The entry with the site of all engines of the cluster, if the controller has one."""

_KEYS = (
    "IPP_CONNECTION_INFO",
    "IPP_SESSION_KEY",
    *(f"IPP_CURVE_{kind}KEY" for kind in ("SERVER", "SECRET", "PUBLIC")),
)
"""The environment variables from which ipyparallel reads keys."""


def forget_keys() -> None:
    """Remove the cluster's keys from this process's environment: a cell's `!env` would print them.

    To be called after the keys have been read.
    """
    for name in _KEYS:
        os.environ.pop(name, None)


def make_private(path: str) -> None:
    """Create a file, unless it exists, that only the user can read; writing keeps its mode.

    The notebook's umask must not change: it is for the user's files.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def world_name(connection: Mapping[str, Any]) -> str:
    """The name of the cluster's world: the same for its engines and clients, unique to it.

    Args:
        connection: the content of ``ipcontroller-engine.json`` or ``-client.json``.
    """
    # The port distinguishes clusters that share a key (IPP_SESSION_KEY).
    port = str(connection["registration"]).rpartition(":")[2]
    label = f"sfm world name {connection['location']} {port}"
    return "ipp-" + _derive(connection, label).hex()[:16]


def world_key(connection: Mapping[str, Any]) -> bytes:
    """The world's secret, 32 bytes; only users who can read the connection file know it.

    Raises:
        WorldAccess: the cluster has no session key.
    """
    return _derive(connection, "sfm world")


def _derive(connection: Mapping[str, Any], label: str) -> bytes:
    session_key = connection.get("key") or ""
    if not session_key:
        raise WorldAccess(
            "this cluster has no session key (IPP_ENABLE_CURVE=1 turns it off), so its world "
            "would be open to anybody. Also set IPP_SESSION_KEY to a long random text, and "
            "start the cluster again"
        )
    return hmac.digest(session_key.encode(), label.encode(), hashlib.sha256)


def engine_site(connection: Mapping[str, Any]) -> str | None:
    """The site of an engine: from its environment, or the cluster's; None for its machine's site.

    Raises BadName.
    """
    site = connection.get(SITE)
    if site is not None:
        site = check_site(site, "the cluster's site (its controller's SFM_SITE, or c.SFM.site)")
    return requested_site(None) or site


def notebook_site(connection: Mapping[str, Any], site: str | None) -> str | None:
    """The site of a notebook: ``site``, or the engines' site on the controller's machine.

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
                pass  # another process has removed it


def running_clusters() -> list[Any]:
    """ipyparallel's clusters of this user, whichever program started them."""
    from ipyparallel.cluster.cluster import ClusterManager

    log = logging.getLogger("sfm.clusters")
    log.setLevel(logging.CRITICAL)  # ipyparallel reports every file of a cluster that has ended
    clusters = ClusterManager(log=log).load_clusters().values()
    controlled = [cluster for cluster in clusters if cluster.controller]
    return [cluster for cluster in controlled if cluster.controller.state != "after"]


def clusters_by_name() -> dict[str, Any]:
    """The same, by the names that ``%sfm connect`` takes: see ``titles.names_of``."""
    running = {cluster.cluster_id: cluster for cluster in running_clusters()}
    pids = {one: getattr(cluster.controller, "pid", None) for one, cluster in running.items()}
    names = names_of({one: notebook_of(pid) for one, pid in pids.items()})
    return {names[one]: cluster for one, cluster in running.items()}


def connection(cluster: Any) -> dict[str, Any]:
    """The content of the clients' connection file."""
    with open(cluster.controller.connection_files["client"]) as file:
        content: dict[str, Any] = json.load(file)
    return content
