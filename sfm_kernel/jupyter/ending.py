"""How engines and clusters that were started here end, even if they are blocked."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sfm_kernel.directory import signals
from sfm_kernel.errors import WorldError
from sfm_kernel.jupyter import supervisor
from sfm_kernel.jupyter.places import remove_files
from sfm_kernel.transport.base import Member


def end_engines(cluster: Any, client: Any, ranks: Iterable[int], living: Sequence[Member]) -> None:
    """End single engines of a cluster that was started here, even if they are blocked.

    Args:
        ranks: those that shall be free afterwards.
        living: those of them that live.
    """
    wanted = set(ranks)
    with signals.held((member.segment, member.pid) for member in living) as processes:
        for number, seconds in ((signal.SIGTERM, supervisor.GRACE), (signal.SIGKILL, 20.0)):
            signals.send(processes, number)  # what they have started, the supervisor ends
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
    remove_files(cluster.profile_dir, cluster.cluster_id)  # this process may be killed now
    launchers = [*cluster.engines.values(), *([cluster.controller] if cluster.controller else [])]
    launchers = [launcher for launcher in launchers if launcher.state == "running"]
    for number, seconds in ((signal.SIGTERM, supervisor.GRACE + 1), (signal.SIGKILL, 1.0)):
        for launcher in launchers:
            if launcher.process.is_running():
                launcher.signal(number)
        if wait_until(lambda: not any(one.process.is_running() for one in launchers), seconds):
            break
    remove_files(cluster.profile_dir, cluster.cluster_id)  # what they have written at their end


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether ``done()`` became true in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
