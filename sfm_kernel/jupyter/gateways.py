"""Runs the gateways of a cluster whose sites are on this machine, and answers for their end.

    python -m sfm_kernel.jupyter.gateways PARENT CONNECTION_FILE SITES

``cluster`` starts it beside the engines' ``supervisor``. Each gateway is a fork of it, and is
started again when it has ended: who kills one in a class sees another take its place. It ends with
its parent, however that ended, or on SIGTERM; then it removes the sites' folders, when all engines
and relays have left them. If it is killed itself, the gateways are killed by the system.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from typing import Any

from sfm_kernel.directory.cleaning import remove_sites, sites_folder
from sfm_kernel.jupyter.gateway import run
from sfm_kernel.jupyter.places import world_name
from sfm_kernel.jupyter.sites import LOOPBACK, TOLD, Sites
from sfm_kernel.jupyter.supervisor import wait_for_connection
from sfm_kernel.spawn.forked import Fork
from sfm_kernel.spawn.lifeline import die_with
from sfm_kernel.spawn.process import end

_LOOK = 0.25
_SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
_PAUSE = 0.5
"""Seconds between the end of a gateway and its next start at least."""
_PATIENCE = 20.0
"""Seconds for which engines and relays may still be in their folders."""


def main(arguments: list[str]) -> None:
    """Run the gateways until the end."""
    parent, path = int(arguments[0]), arguments[1]
    sites = Sites.of({TOLD: arguments[2]})
    assert sites is not None
    os.umask(0o077)
    connection = wait_for_connection(path, parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    running: dict[Fork, tuple[str, float]] = {}  # to its site, and when it was started
    waiting = dict.fromkeys(sites.names, 0.0)  # site -> when to start it
    while os.getppid() == parent:
        for name in [name for name, at in waiting.items() if time.monotonic() >= at]:
            del waiting[name]
            gateway = Fork(partial(_serve, name, connection, sites, os.getpid()))
            running[gateway] = name, time.monotonic()
        got = signal.sigtimedwait(_SIGNALS, _LOOK)
        if got is not None and got.si_signo == signal.SIGTERM:
            break
        for ended in [one for one in running if one.poll() is not None]:
            name, began = running.pop(ended)
            waiting[name] = max(time.monotonic(), began + _PAUSE)
    end(list(running), 0)  # they hold nothing that anybody would miss
    _remove(world_name(connection))


def _serve(name: str, connection: dict[str, Any], sites: Sites, parent: int) -> None:
    """Be the gateway of a site, in a fork."""
    die_with(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        run(connection, ["--site", name, "--bind", LOOPBACK, *sites.options])
    except BaseException as problem:  # noqa: BLE001 - whatever it is, it is shown
        print(f"sfm: the gateway of {name}: {problem}", file=sys.stderr, flush=True)


def _remove(world: str) -> None:
    """Remove the sites' folders, as soon as nobody is there any more."""
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(sites_folder(world)) and time.monotonic() < deadline:
        remove_sites(world)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
