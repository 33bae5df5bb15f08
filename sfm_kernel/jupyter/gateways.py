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
from contextlib import suppress
from typing import Any

from sfm_kernel.directory.cleaning import remove_sites, sites_folder
from sfm_kernel.jupyter import gateway
from sfm_kernel.jupyter.places import world_name
from sfm_kernel.jupyter.sites import LOOPBACK, TOLD, Sites
from sfm_kernel.jupyter.supervisor import wait_for_connection
from sfm_kernel.spawn.lifeline import die_with

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
    running: dict[int, tuple[str, float]] = {}  # pid -> site, and when it was started
    waiting = dict.fromkeys(sites.names, 0.0)  # site -> when to start it
    while os.getppid() == parent:
        for name in [name for name, at in waiting.items() if time.monotonic() >= at]:
            del waiting[name]
            running[_start(name, connection, sites)] = name, time.monotonic()
        got = signal.sigtimedwait(_SIGNALS, _LOOK)
        if got is not None and got.si_signo == signal.SIGTERM:
            break
        for pid in [pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]]:
            name, began = running.pop(pid)
            waiting[name] = max(time.monotonic(), began + _PAUSE)
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it has nothing that anybody would miss
    for pid in running:
        os.waitpid(pid, 0)
    _remove(world_name(connection))


def _start(name: str, connection: dict[str, Any], sites: Sites) -> int:
    own = os.getpid()
    if pid := os.fork():
        return pid
    try:
        die_with(own)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        gateway.run(connection, ["--site", name, "--bind", LOOPBACK, *sites.options])
    except BaseException as problem:  # noqa: BLE001 - a fork never returns into its parent's code
        print(f"sfm: the gateway of {name}: {problem}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def _remove(world: str) -> None:
    """Remove the sites' folders, as soon as nobody is there any more."""
    deadline = time.monotonic() + _PATIENCE
    while os.path.lexists(sites_folder(world)) and time.monotonic() < deadline:
        remove_sites(world)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
