"""Changes to ipyparallel's controller; ``etc/ipython/ipcontroller_config.py`` installs them.

- If other machines can reach the controller (``--ip=*``), it serves the world's directory and
  writes the directory's url into the connection files, so that engines everywhere find the world:
  MPI, SSH, Slurm, PBS. A controller on the loopback interface needs no directory server: the folder
  of this machine is the directory.
- If SFM_SITE, or ``c.SFM.site`` in its configuration, names a site, the controller writes it into
  the connection files: it is the site of all engines of the cluster that name no other.
- A controller that ``%sfm start`` started ends when the notebook's process ends, however that dies.
- A controller for one machine uses Unix sockets at the path that ``cluster`` chooses, and no port.
- A controller's ports, if any, stay reserved until it binds them.
- The controller does not mistake an engine's greeting for an error.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from functools import partial
from typing import Any

from jupyter_client.session import DELIM

from sfm_kernel.directory.sites import SITE as SITE_VARIABLE
from sfm_kernel.jupyter.cluster_files import DIRECTORY, SITE, forget_keys, world_key, world_name
from sfm_kernel.jupyter.sites import SITES_VARIABLE
from sfm_kernel.spawn.lifeline import die_with

PARENT = "SFM_PARENT"
"""The environment variable with the process whose end ends the controller."""

SOCKETS = "SFM_SOCKETS"
"""The environment variable with the beginning of the paths of the controller's Unix sockets."""

GREETING = "iopub_welcome"

_ADDRESSES = {
    f"{prefix}{name}" for prefix in ("", "engine_", "client_", "monitor_")
    for name in ("ip", "transport", "ports", "ssh_server")
}  # fmt: skip
"""The settings of a controller's addresses."""

_LOOPBACK = ("tcp://127.", "tcp://localhost", "ipc://")


def install() -> None:
    """Prepare this process, a controller that is about to start. Never raises."""
    from ipyparallel import util
    from ipyparallel.controller.app import IPController
    from ipyparallel.controller.hub import Hub

    if parent := os.environ.get(PARENT):
        forget_keys()
        os.umask(0o077)
        # The original makes Python search the notebook's folder first for modules.
        IPController.to_work_dir = lambda app: None
        # The file of the engines' state serves a controller that restarts. This one never does,
        # and a file written while everything ends would remain.
        Hub._save_engine_state = lambda hub: None
        end = partial(_end_with, int(parent))
        threading.Thread(target=end, name="sfm-parent", daemon=True).start()
        controller = os.getpid()
        os.register_at_fork(after_in_child=lambda: die_with(controller))  # the heart monitor
    util.select_random_ports = reserve_ports
    _take_greetings(Hub)
    _offer_sockets(IPController)
    save = IPController.save_connection_dict

    def save_with_directory(self: Any, name: str, connection: dict[str, Any]) -> None:
        is_open = not connection["interface"].startswith(_LOOPBACK)
        if is_open or os.environ.get(SITES_VARIABLE):  # different sites share no memory
            try:
                connection[DIRECTORY] = _serve(connection)
            except Exception as error:  # noqa: BLE001 - a cluster without SFM is better than none
                self.log.warning("sfm: no directory for engines on other machines: %s", error)
        site = os.environ.get(SITE_VARIABLE) or self.config.SFM.get("site")
        if site:  # the engines check it, and report an error to the notebook that starts them
            connection[SITE] = str(site)
        save(self, name, connection)

    IPController.save_connection_dict = save_with_directory


def _take_greetings(hub: Any) -> None:
    """Have the hub ignore the greeting that ipykernel 7 sends to each subscriber of its output.

    The hub subscribes to all output and expects a topic in each message, but the greeting for a
    subscriber to everything has none: the hub logged an error for each engine.
    """
    dispatch = hub.dispatch_monitor_traffic

    def dispatch_others(self: Any, message: list[bytes]) -> None:
        if not (message[:2] == [b"iopub", DELIM] and _kind(self.session, message) == GREETING):
            dispatch(self, message)

    hub.dispatch_monitor_traffic = dispatch_others


def _kind(session: Any, message: list[bytes]) -> str:
    """The type of a message from the hub's monitor; empty if it cannot be read."""
    try:
        _, (_, header, *_) = session.feed_identities(message[1:])
        return str(session.unpack(header)["msg_type"])
    except Exception:  # noqa: BLE001 - the hub reports what is wrong with it
        return ""


def _offer_sockets(controller: Any) -> None:
    """Have a controller use Unix sockets if SOCKETS is set, and its configuration has no address.

    ipyparallel supports Unix sockets, but its clients and engines write their urls with a colon and
    its controllers with a hyphen, so they never connect. Here the controller writes a colon, too.
    """
    begin, next_port = controller.init_hub, controller.next_port
    construct = controller.construct_url
    numbers = itertools.count(1)

    def init_hub(self: Any) -> None:
        path = os.environ.get(SOCKETS)
        if path and not self.engine_info and not _ADDRESSES & set(self.config.IPController):
            self.transport, self.ip = "ipc", path
        begin(self)

    def number(self: Any, pool_name: str = "common") -> int:
        return next(numbers) if self.transport == "ipc" else next_port(self, pool_name)

    def url(self: Any, kind: str, channel: str, index: Any = None) -> str:
        made = str(construct(self, kind, channel, index))
        if not made.startswith("ipc://"):
            return made
        path, _, port = made.rpartition("-")
        return f"{path}:{port}"

    controller.init_hub, controller.next_port, controller.construct_url = init_hub, number, url


_reserved: list[socket.socket] = []


def reserve_ports(count: int) -> list[int]:
    """Numbers of free TCP ports that the system gives to no other process while this one lives.

    ipyparallel chooses all ports first and binds them later; clusters that start at the same time
    took each other's ports in between. While a socket is bound and does not listen, the kernel
    gives its port to no process that asks for any free port. If both sockets set SO_REUSEADDR, as
    libzmq does, the port can still be bound by its number.
    """
    ports = []
    for _ in range(count):
        reserved = socket.socket()
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("", 0))
        _reserved.append(reserved)
        ports.append(reserved.getsockname()[1])
    return ports


_servers: dict[str, Any] = {}


def _serve(connection: dict[str, Any]) -> str:
    """The url of this cluster's directory server; starts the server if it does not run yet."""
    from sfm_kernel.directory import DirectoryServer

    world = world_name(connection)
    if world not in _servers:
        _servers[world] = DirectoryServer(
            world, world_key(connection), bind=f"{connection['interface']}:0"
        )
    url: str = _servers[world].url
    return url


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.25)
    os.kill(os.getpid(), signal.SIGTERM)  # the controller removes its connection files
    time.sleep(3)
    os._exit(1)
