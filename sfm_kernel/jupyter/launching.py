"""Starts an ipyparallel cluster on this machine: its controller, and its engines."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ipyparallel as ipp
from ipyparallel.cluster.launcher import EngineLauncher, LocalProcessLauncher
from traitlets import Integer, List

from sfm_kernel.directory.unix import make_sockets
from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter import supervisor
from sfm_kernel.jupyter.cluster_files import make_private
from sfm_kernel.jupyter.controller import PARENT, SOCKETS
from sfm_kernel.jupyter.ending import wait_until
from sfm_kernel.jupyter.sites import SITES_VARIABLE

PATIENCE = 60.0
"""Seconds that engines have to register and to answer; the wait ends early if they end."""

_LOG_LINES = 20
# Without -P, a file in the notebook's folder could replace one of Python's modules.
_PYTHON = (sys.executable, "-P")
_CONTROLLER = (
    "--ping=100",  # ms; an engine registers after one or two pings: with 3000 after 6 s
    "--HeartMonitor.max_heartmonitor_misses=600",  # a machine that was suspended keeps its engines
    "--IPController.use_threads=True",  # 2 processes instead of 9
    "--log-level=WARN",
)


class EngineSet(LocalProcessLauncher, EngineLauncher):
    """ipyparallel's launcher for the engines that one ``supervisor`` forks."""

    entrypoint_name = f"{__name__}.EngineSet"  # the name by which other processes' Cluster find it
    ranks = List(Integer()).tag(to_dict=True)

    def find_args(self) -> list[str]:
        module = [*_PYTHON, "-m", supervisor.__name__]
        owner = [str(os.getpid()), self.connection_files["engine"]]
        ranks = self.ranks or range(self.n)  # no ranks if another program starts the set again
        return [*module, *owner, *map(str, ranks), "--", *self.engine_args]

    def start(self, n: int) -> None:
        self.n = n
        make_private(self.output_file)
        super().start()


def start_controller(engines: int, environment: Mapping[str, str]) -> Any:
    """A new cluster for that many engines; its controller is starting."""
    cluster = ipp.Cluster(
        n=engines,
        cluster_id=f"sfm-{secrets.token_hex(4)}",
        engines=EngineSet,
        controller_args=list(_CONTROLLER),
        delay=0.0,
        send_engines_connection_env=False,  # the supervisor starts together with the controller
        load_profile=False,
        shutdown_atexit=False,  # ``end_cluster`` is faster
        log_level=logging.ERROR,
    )
    log = os.path.join(cluster.profile_dir, "log", f"ipcontroller-{cluster.cluster_id}.log")
    make_private(log)
    # Sites are reached over TCP, even on one machine.
    sockets = None if SITES_VARIABLE in environment else make_sockets(cluster.cluster_id)
    cluster.start_controller_sync(
        controller_cmd=[*_PYTHON, "-m", "ipyparallel.controller"],
        # CURVE hides cells and their output from users who cannot read the connection files.
        # ipyparallel would then use no session key, but the world's key is derived from it.
        environment={
            PARENT: str(os.getpid()),
            "IPP_ENABLE_CURVE": "1",
            "IPP_SESSION_KEY": secrets.token_hex(32),
            **({SOCKETS: sockets} if sockets else {}),
            **environment,
        },
        output_file=log,
    )
    os.chmod(cluster.cluster_file, 0o600)
    return cluster


def wait_for_engines(
    client: Any,
    ranks: Iterable[int],
    launcher: Any,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Return when engines with these ranks are registered.

    Args:
        progress: called with the number of those that are, whenever it grows.

    Raises:
        WorldError: they ended or did not register; with the end of their log.
    """
    expected, count = set(ranks), 0

    def came() -> bool:
        nonlocal count
        registered = len(expected & set(client.ids))
        if progress is not None and registered > count:
            progress(registered)
        count = registered
        return registered == len(expected) or launcher.state == "after"

    # Client.wait_for_engines would fail if an older set ends meanwhile, as it does in a restart.
    wait_until(came, PATIENCE)
    if not expected <= set(client.ids):
        log = "\n".join(launcher.get_output().splitlines()[-_LOG_LINES:])
        raise WorldError(f"the engines did not start. The end of their log:\n{log}")
