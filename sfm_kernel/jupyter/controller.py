"""What ipyparallel's controller does for SFM; ``etc/ipython/ipcontroller_config.py`` calls it.

- If other machines can reach it (``--ip=*``), it serves the world's directory and writes its url
  into the connection files, so that engines everywhere find the world: MPI, SSH, Slurm, PBS. A
  controller on the loopback interface needs none: the folder of this machine is the directory.
- If it was told a site (SFM_SITE, or ``c.SFM.site`` in its configuration), it writes that into the
  connection files: it is that of all engines of the cluster which were not told another.
- A controller that ``%sfm start`` started ends when the notebook's process ends, however it dies.
- If it serves one machine, it has Unix sockets where ``cluster`` says, and no port.
- Its ports, if any, stay free for it until it binds them.
- It does not take an engine's greeting for an error.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from typing import Any

from jupyter_client.session import DELIM

from sfm_kernel.directory.sites import SITE as TOLD_SITE
from sfm_kernel.jupyter.places import DIRECTORY, SITE, forget_keys, world_key, world_name
from sfm_kernel.jupyter.sites import TOLD
from sfm_kernel.spawn.lifeline import die_with

PARENT = "SFM_PARENT"
"""The environment variable with the process to end with."""

SOCKETS = "SFM_SOCKETS"
"""The environment variable with what the paths of its Unix sockets begin with."""

GREETING = "iopub_welcome"

_ADDRESSES = {
    f"{whose}{what}" for whose in ("", "engine_", "client_", "monitor_")
    for what in ("ip", "transport", "ports", "ssh_server")
}  # fmt: skip
"""What a configuration says about where a controller can be reached."""

_LOOPBACK = ("tcp://127.", "tcp://localhost", "ipc://")


def install() -> None:
    """Prepare this process, a controller that is about to start. Never raises."""
    from ipyparallel import util
    from ipyparallel.controller.app import IPController
    from ipyparallel.controller.hub import Hub

    if parent := os.environ.get(PARENT):
        forget_keys()
        os.umask(0o077)
        # It would have Python look for modules in the notebook's folder first.
        IPController.to_work_dir = lambda app: None
        # Which engines there were matters to a controller that starts again, and this one does not.
        # Written while everything ends, that file would be the one thing that stays.
        Hub._save_engine_state = lambda hub: None
        watcher = threading.Thread(
            target=_end_with, args=(int(parent),), name="sfm-parent", daemon=True
        )
        watcher.start()
        own = os.getpid()
        os.register_at_fork(after_in_child=lambda: die_with(own))  # its heart monitor
    util.select_random_ports = reserve_ports
    _take_greetings(Hub)
    _offer_sockets(IPController)
    save = IPController.save_connection_dict

    def save_with_directory(self: Any, name: str, connection: dict[str, Any]) -> None:
        is_open = not connection["interface"].startswith(_LOOPBACK)
        if is_open or os.environ.get(TOLD):  # its engines share no memory
            try:
                connection[DIRECTORY] = _serve(connection)
            except Exception as error:  # noqa: BLE001 - a cluster without SFM is better than none
                self.log.warning("sfm: no directory for engines on other machines: %s", error)
        site = os.environ.get(TOLD_SITE) or self.config.SFM.get("site")
        if site:  # where it can be none, the engines say so to whoever starts them
            connection[SITE] = str(site)
        save(self, name, connection)

    IPController.save_connection_dict = save_with_directory


def _take_greetings(hub: Any) -> None:
    """Have the hub pass over what ipykernel 7 sends to each new subscriber of an engine's output.

    The hub hears it, being told all output, and looks for a topic; the greeting of a subscriber to
    everything has none. It logged an error for each engine. Everything else goes on to it.
    """
    dispatch = hub.dispatch_monitor_traffic

    def dispatch_others(self: Any, message: list[bytes]) -> None:
        if not (message[:2] == [b"iopub", DELIM] and _kind(self.session, message) == GREETING):
            dispatch(self, message)

    hub.dispatch_monitor_traffic = dispatch_others


def _kind(session: Any, message: list[bytes]) -> str:
    """The type of a message of the hub's monitor; empty if it cannot be read."""
    try:
        _, (_, header, *_) = session.feed_identities(message[1:])
        return str(session.unpack(header)["msg_type"])
    except Exception:  # noqa: BLE001 - the hub says what is wrong with it
        return ""


def _offer_sockets(controller: Any) -> None:
    """Have a controller use Unix sockets if it is told where, and its configuration says nothing.

    ipyparallel knows them, but its clients and engines write every url with a colon, and its
    controllers these with a hyphen: they never met. A colon it is, now.
    """
    begin, next_port, construct = (
        controller.init_hub,
        controller.next_port,
        controller.construct_url,
    )
    numbers = itertools.count(1)

    def init_hub(self: Any) -> None:
        told = os.environ.get(SOCKETS)
        if told and not self.engine_info and not _ADDRESSES & set(self.config.IPController):
            self.transport, self.ip = "ipc", told
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
    """Numbers of free TCP ports that nobody else is given as long as this process lives.

    ipyparallel chooses all ports and binds them later; a class that starts its clusters at once
    took each other's in between. A socket that is bound and does not listen keeps the kernel from
    giving its port to anybody who asks for any, and where both set SO_REUSEADDR, as libzmq does,
    the port can still be bound by its number.
    """
    ports = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("", 0))
        _reserved.append(one)
        ports.append(one.getsockname()[1])
    return ports


_servers: dict[str, Any] = {}


def _serve(connection: dict[str, Any]) -> str:
    """The url of this cluster's directory, which is started if it is not there yet."""
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
    os.kill(os.getpid(), signal.SIGTERM)  # it removes its connection files
    time.sleep(3)
    os._exit(1)
