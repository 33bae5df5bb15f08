"""Sites on a machine that allows no lab: the gateways emulate the long path between them.

Routes, forwarding, schedulers, delay and rate are real. TCP does not see the path, since it only
crosses this machine's loopback: there are no idle restarts, losses and congestion, and direct
messages take almost no time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel.lessons.sites.enter import COMMAND
from sfm_kernel.lessons.sites.lab import LATE_SECONDS, Disturbed, Lab, refusal
from sfm_kernel.spawn import process
from sfm_kernel.transport.closing import Closing

CANNOT_SHOW = (
    "This machine allows no network namespaces. The gateways emulate the path between the sites: "
    "delay, rate and schedulers are real, but TCP does not see them, so that idle restarts, "
    "losses and congestion cannot be shown, nor direct connections."
)


def usual_algorithm() -> str:
    """TCP's congestion control on this machine, which every user may choose."""
    with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
        return file.read().strip()


class Emulated(Closing):
    """Replaces ``Lab`` if there are gateways. Each host is an address of the loopback.

    Args:
        sites, rtt, rate: as in ``Lab``.
    """

    def __init__(
        self, sites: Mapping[str, int] | None = None, *, rtt: float = 0.02, rate: float = 200e6
    ) -> None:
        self.sites = dict(sites or {"A": 1, "B": 1})
        self.rtt, self.rate = rtt, rate
        path = ("--delay", f"{rtt / 2 * 1e6:.0f}us", "--limit", f"{rate:.0f}")
        # Overrides the route's algorithm, which only root may be able to choose; TCP does not see
        # the path in any case.
        self.gateway_options = (*path, "--algorithm", usual_algorithm())
        self._started: list[subprocess.Popen[Any]] = []
        self._late = 0.0

    def address(self, site: str, host: int = 1) -> str:
        """The address of a host; each host has a different one."""
        return f"127.{list(self.sites).index(site) + 1}.0.{host}"

    def run(
        self,
        site: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        host: int = 1,
        **options: Any,
    ) -> subprocess.Popen[Any]:
        """Start a program; it ends with ``close`` at the latest."""
        enter = [*COMMAND, str(os.getpid()), "-", "-"]
        program = process.start([*enter, *command], env={**os.environ, **(env or {})}, **options)
        self._started.append(program)
        return program

    def add_reports(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Add the reports of gateways on the path that they have emulated."""
        for report in reports:
            if report["emulation"]:
                self._late = max(self._late, report["emulation"]["late"]["mean_s"])

    def report(self) -> dict[str, float]:
        """``late_mean_s``: the average delay that the latest gateway has measured."""
        return {"late_mean_s": self._late}

    def check(self) -> None:
        """Raise Disturbed, as ``Lab.check``, if it was later than a millisecond on average."""
        if self._late > LATE_SECONDS:
            raise Disturbed(f"gateways emulated the path {self._late * 1e3:.2f} ms late on average")

    def close(self) -> None:
        """End all programs. Harmless when repeated."""
        process.end(self._started, 0)
        self._started = []


def open_lab(sites: Mapping[str, int] | None = None, **about: Any) -> Lab | Emulated:
    """A lab or, if this machine allows none, an emulated one."""
    return Emulated(sites, **about) if refusal() else Lab(sites, **about)
