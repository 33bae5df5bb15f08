"""Ends engines and clusters that this process started, even if they are blocked."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sfm_kernel.directory import Member, signals
from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter import supervisor
from sfm_kernel.jupyter.cluster_files import remove_files


def end_engines(cluster: Any, client: Any, ranks: Iterable[int], listed: Sequence[Member]) -> None:
    """End single engines of a cluster that this process started, even if they are blocked.

    Args:
        ranks: the ranks to free.
        listed: processes that have had these ranks; those that live are ended.
    """
    ending = set(ranks)
    with signals.held((member.segment, member.pid) for member in listed) as processes:
        for number, seconds in ((signal.SIGTERM, supervisor.GRACE), (signal.SIGKILL, 20.0)):
            signals.send(processes, number)  # the supervisor ends what the engines have started
            if wait_until(lambda: not ending & set(client.ids), seconds):
                break
        else:
            raise WorldError("an engine does not end: use `%sfm stop`, which ends all of them")
    launchers = cluster.engines.items()
    cluster.engines = {key: launcher for key, launcher in launchers if launcher.state != "after"}


def end_cluster(cluster: Any) -> None:
    """End all processes of a cluster that this process started, within about two seconds.

    The cluster's files are removed, too. All engines get SIGTERM at once; those that are blocked
    for good are killed after ``supervisor.GRACE``.
    """
    cluster.cluster_file = ""  # otherwise the launchers would write it again
    remove_files(cluster.profile_dir, cluster.cluster_id)  # now, since this process may be killed
    launchers = [*cluster.engines.values(), *([cluster.controller] if cluster.controller else [])]
    running = [launcher for launcher in launchers if launcher.state == "running"]
    for number, seconds in ((signal.SIGTERM, supervisor.GRACE + 1), (signal.SIGKILL, 1.0)):
        for launcher in running:
            if launcher.process.is_running():
                launcher.signal(number)
        if wait_until(lambda: not any(each.process.is_running() for each in running), seconds):
            break
    remove_files(cluster.profile_dir, cluster.cluster_id)  # files that they wrote at their end


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether ``done()`` became true in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
