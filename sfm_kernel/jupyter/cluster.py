"""ipyparallel clusters: engines of this machine are started, ended and started again."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ipyparallel as ipp
from ipyparallel.cluster.cluster import ClusterManager
from ipyparallel.cluster.launcher import EngineLauncher, LocalProcessLauncher
from traitlets import Integer, List

from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter import supervisor
from sfm_kernel.jupyter.controller import PARENT
from sfm_kernel.jupyter.places import remove_files
from sfm_kernel.transport.base import Member

PATIENCE = 60.0
"""Seconds for engines to register and to answer. Ended early when they end."""

_LOG_LINES = 20
_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_CONTROLLER = (
    "--ping=100",  # ms; an engine is there after one or two of them, with 3000 after 6 s
    "--HeartMonitor.max_heartmonitor_misses=600",  # a machine that slept keeps its engines
    "--IPController.use_threads=True",  # 2 processes instead of 9
    "--log-level=WARN",
)


class EngineSet(LocalProcessLauncher, EngineLauncher):
    """ipyparallel's launcher of the engines that one ``supervisor`` forks."""

    entrypoint_name = f"{__name__}.EngineSet"  # how another process's Cluster finds it
    ranks = List(Integer()).tag(to_dict=True)

    def find_args(self) -> list[str]:
        module = [sys.executable, "-m", supervisor.__name__]
        where = [str(os.getpid()), self.connection_files["engine"]]
        ranks = self.ranks or range(self.n)  # none: another program starts the set again
        return [*module, *where, *map(str, ranks), "--", *self.engine_args]

    def start(self, n: int) -> None:
        self.n = n
        super().start()


def start_controller(engines: int) -> Any:
    """A new cluster for that many engines, of which the controller is starting."""
    cluster = ipp.Cluster(
        n=engines,
        cluster_id=f"sfm-{secrets.token_hex(4)}",
        engines=EngineSet,
        controller_args=list(_CONTROLLER),
        delay=0.0,
        send_engines_connection_env=False,  # the supervisor starts together with the controller
        load_profile=False,
        shutdown_atexit=False,  # ours is faster
        log_level=logging.ERROR,
    )
    cluster.start_controller_sync(environment={PARENT: str(os.getpid())})
    return cluster


def start_engines(cluster: Any, ranks: Sequence[int], environment: Mapping[str, str]) -> Any:
    """Start engines with these ranks; returns their launcher at once."""
    if not any(name in os.environ for name in _BLAS):
        environment = {**environment, **dict.fromkeys(_BLAS, "1")}  # engines fill the cores
    key = cluster.start_engines_sync(len(ranks), ranks=list(ranks), environment=dict(environment))
    return cluster.engines[key]


def wait_for_engines(client: Any, ranks: Iterable[int], launcher: Any) -> None:
    """Return when engines with these ranks are registered.

    Raises:
        WorldError: they ended, or did not come; with the end of their log.
    """
    wanted = set(ranks)
    # Client.wait_for_engines would fail if an older set ends meanwhile, as it does in a restart.
    wait_until(lambda: wanted <= set(client.ids) or launcher.state == "after", PATIENCE)
    if not wanted <= set(client.ids):
        log = "\n".join(launcher.get_output().splitlines()[-_LOG_LINES:])
        raise WorldError(f"the engines did not start. The end of their log:\n{log}")


def end_engines(cluster: Any, client: Any, ranks: Iterable[int], living: Sequence[Member]) -> None:
    """End single engines of a cluster that was started here, even if they are blocked.

    Args:
        ranks: those that shall be free afterwards.
        living: those of them that live.
    """
    pids, wanted = [member.pid for member in living], set(ranks)
    for number, seconds in ((signal.SIGTERM, supervisor.GRACE), (signal.SIGKILL, 20.0)):
        supervisor.kill_groups(pids, number)
        if wait_until(lambda: not wanted & set(client.ids), seconds):
            break
    else:
        raise WorldError("an engine does not end: `%sfm stop`")
    running = {key: one for key, one in cluster.engines.items() if one.state != "after"}
    cluster.engines = running


def end_cluster(cluster: Any) -> None:
    """End all processes of a cluster that was started here, within about two seconds.

    Its files are removed, too. The engines are told at once; each that is blocked for good is
    killed after ``supervisor.GRACE``.
    """
    cluster.cluster_file = ""  # or its launchers would write it again
    launchers = [*cluster.engines.values(), *([cluster.controller] if cluster.controller else [])]
    launchers = [launcher for launcher in launchers if launcher.state == "running"]
    for number, seconds in ((signal.SIGTERM, supervisor.GRACE + 1), (signal.SIGKILL, 1.0)):
        for launcher in launchers:
            if launcher.process.is_running():
                launcher.signal(number)
        if wait_until(lambda: not any(one.process.is_running() for one in launchers), seconds):
            break
    remove_files(cluster.profile_dir, cluster.cluster_id)


def running_clusters() -> list[Any]:
    """ipyparallel's clusters of this user, whoever started them."""
    log = logging.getLogger("sfm.clusters")
    log.setLevel(logging.CRITICAL)  # it would report every file of a cluster that has ended
    found = ClusterManager(log=log).load_clusters().values()
    return [one for one in found if one.controller and one.controller.state != "after"]


def connection(cluster: Any) -> dict[str, Any]:
    """What the clients' connection file says."""
    with open(cluster.controller.connection_files["client"]) as file:
        content: dict[str, Any] = json.load(file)
    return content


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether ``done()`` became true in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
