"""Runs the gateways of a cluster whose sites are on this machine, and ends them.

    python -m sfm_kernel.jupyter.gateways PARENT CONNECTION_FILE SITES

``cluster`` starts this process beside the engines' ``supervisor``. Each gateway is a fork of this
process, which starts another one when a gateway has ended: a student who kills a gateway sees it
replaced. The process ends with its parent, however that ends, or on SIGTERM; then it removes the
sites' folders once all engines and relays have left them. If the process is killed itself, the
system kills the gateways.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from typing import Any

from sfm_kernel.directory import remove_sites, sites_folder
from sfm_kernel.jupyter.cluster_files import world_name
from sfm_kernel.jupyter.gateway import run
from sfm_kernel.jupyter.sites import LOOPBACK, SITES_VARIABLE, Sites
from sfm_kernel.jupyter.supervisor import POLL, SIGNALS, wait_for_connection
from sfm_kernel.spawn.forked import Fork
from sfm_kernel.spawn.lifeline import die_with
from sfm_kernel.spawn.process import end

_PAUSE = 0.5
"""Least seconds between two starts of a gateway."""
_PATIENCE = 20.0
"""Seconds to wait for engines and relays to leave their folders."""


def main(arguments: list[str]) -> None:
    """Run the gateways until the end."""
    parent, path = int(arguments[0]), arguments[1]
    sites = Sites.from_environment({SITES_VARIABLE: arguments[2]})
    assert sites is not None
    os.umask(0o077)
    connection = wait_for_connection(path, parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    running: dict[Fork, tuple[str, float]] = {}  # gateway -> its site and the time of its start
    waiting = dict.fromkeys(sites.names, 0.0)  # site -> the time to start its gateway
    while os.getppid() == parent:
        for name in [name for name, due in waiting.items() if time.monotonic() >= due]:
            del waiting[name]
            gateway = Fork(partial(_serve, name, connection, sites, os.getpid()))
            running[gateway] = name, time.monotonic()
        got = signal.sigtimedwait(SIGNALS, POLL)
        if got is not None and got.si_signo == signal.SIGTERM:
            break
        for ended in [gateway for gateway in running if gateway.poll() is not None]:
            name, began = running.pop(ended)
            waiting[name] = max(time.monotonic(), began + _PAUSE)
    end(list(running), 0)  # without grace: gateways hold nothing that would be lost
    _remove(world_name(connection))


def _serve(name: str, connection: dict[str, Any], sites: Sites, parent: int) -> None:
    """Run the gateway of a site, in a fork."""
    die_with(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        run(connection, ["--site", name, "--bind", LOOPBACK, *sites.options])
    except BaseException as problem:  # noqa: BLE001 - the log shows every kind of error
        print(f"sfm: the gateway of {name}: {problem}", file=sys.stderr, flush=True)


def _remove(world: str) -> None:
    """Remove the sites' folders as soon as no process uses them any longer."""
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(sites_folder(world)) and time.monotonic() < deadline:
        remove_sites(world)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
