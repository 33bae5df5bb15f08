"""A wide area network on one machine: sites with real TCP, and long paths between them.

    with Lab({"A": 2, "B": 1}, rtt=0.1, rate=100e6, loss=1e-4) as lab:
        server = lab.run("A", [sys.executable, "server.py", lab.address("A")])
        client = lab.run("B", [sys.executable, "client.py", lab.address("A")])
        client.wait()
        lab.check()  # raises if the measurement does not count

Each host is a network namespace with the kernel's TCP; hosts of a site are on one switch. The
path between two sites delays, limits, queues, loses and cuts (``native/src/lab``). The lab and the
programs take processor time from each other: ``check`` raises if the lab was late. On two
processors it carries 500 Mbit/s, and 1 Gbit/s for a short time.

Needs Linux with user namespaces, or root, and /dev/net/tun: ``LabRefused`` says what is missing.
All sites share the file system, the clock and shared memory: give the programs of each host a
different ``SFM_DIR``.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.sites.enter import COMMAND
from sfm_kernel.spawn import process
from sfm_kernel.transport.closing import Closing

MTU = 1500
LATE_SECONDS = 1e-3
"""Seconds: a link that is later than this on average has disturbed the measurement."""

_END_SECONDS = 10.0
Pair = tuple[str, str]


class LabRefused(SFMError):
    """This machine does not allow a lab: the text says what to do. Nothing of the lab remains."""


class Disturbed(SFMError):
    """The lab did not keep up: the measurement depends on this machine's load."""


@cache
def refusal() -> str:
    """Why this machine allows no lab, and what to do; empty if it does. Found out only once."""
    try:
        Lab(rtt=0).close()
    except LabRefused as refused:
        return str(refused)
    return ""


class Lab(Closing):
    """Sites with hosts, and a path between any two of them. Ends with ``close``, or its process.

    Args:
        sites: the number of hosts of each site, by name.
        rtt: seconds from one site to another and back, with empty queues.
        rate: bits a second in each direction, of whole IP packets; ``math.inf``: no limit.
        loss: the share of packets that get lost, in each direction.
        queue: bytes that may wait in front of a path, in each direction; further packets are
            dropped. None: the bytes that the path carries in one ``rtt``, and at least 64 packets.
        cross: bits a second of foreign packets, in each direction, at random times.
        algorithm: congestion control of connections between sites; None: the system's default.
            The lab sets it for routes, and reads it back from a connection.
        sysctls: settings of net.ipv4 in each host, such as ``{"tcp_slow_start_after_idle": 0}``.
        seed: the seed of losses and foreign packets.
    Raises:
        LabRefused: see above.
        SFMError: the kernel does not give connections that ``algorithm``.
    """

    gateway_options: tuple[str, ...] = ()
    """Options of gateways in it: none, since they emulate nothing here; see ``Emulated``."""

    def __init__(
        self,
        sites: Mapping[str, int] | None = None,
        *,
        rtt: float = 0.02,
        rate: float = 200e6,
        loss: float = 0.0,
        queue: int | None = None,
        cross: float = 0.0,
        algorithm: str | None = None,
        sysctls: Mapping[str, str | int] | None = None,
        seed: int = 0,
    ) -> None:
        self.sites = dict(sites or {"A": 1, "B": 1})
        if not 2 <= len(self.sites) <= 99 or not all(0 < n < 250 for n in self.sites.values()):
            raise ValueError(f"2 to 99 sites, each with 1 to 249 hosts, not {self.sites}")
        self.rtt, self.rate = rtt, rate
        self._started: list[subprocess.Popen[Any]] = []
        self._fds: list[int] = []
        ours, holders = socket.socketpair()
        with holders:
            self._holder = subprocess.Popen(
                [sys.executable, "-m", "sfm_kernel.lessons.sites.hold", str(holders.fileno())],
                pass_fds=[holders.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket, self._lines = ours, ours.makefile("r", encoding="utf-8")
        request = {"sites": self.sites, "algorithm": algorithm, "sysctls": dict(sysctls or {})}
        try:
            ours.sendall(json.dumps({**request, "seed": seed}).encode() + b"\n")
            hello = self._hello()
            self.algorithms: dict[str, str] = hello["algorithms"]
            if algorithm not in (None, *self.algorithms.values()):
                raise SFMError(
                    f"connections of the lab use {self.algorithms}, although its routes ask for "
                    f"{algorithm!r}: modprobe tcp_{algorithm}"
                )
            self.settings(rtt=rtt, rate=rate, loss=loss, queue=queue, cross=cross)
        except BaseException:
            self.close()
            raise

    def _hello(self) -> dict[str, Any]:
        room = sum(self.sites.values()) + 1
        try:
            text, fds, *_ = socket.recv_fds(self._socket, 65536, room)
        except ConnectionError:
            text, fds = b"", []
        for fd in fds:
            os.set_inheritable(fd, False)
        self._fds = fds
        if not text:
            raise LabRefused(f"the lab's helper has ended: status {self._holder.wait()}")
        hello: dict[str, Any] = json.loads(text)
        if "refused" in hello:
            raise LabRefused(hello["refused"])
        names = [(site, n) for site, count in self.sites.items() for n in range(1, count + 1)]
        self._user = None if hello["root"] else fds[0]
        self._hosts = dict(zip(names, fds if hello["root"] else fds[1:], strict=True))
        return hello

    # Programs in the hosts

    def address(self, site: str, host: int = 1) -> str:
        """The IPv4 address of a host."""
        self._host(site, host)
        return f"10.{list(self.sites).index(site) + 1}.0.{host}"

    def run(
        self,
        site: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        host: int = 1,
        **options: Any,
    ) -> subprocess.Popen[Any]:
        """Start a program in a host; it and its children end with the lab at the latest.

        Args:
            command: the program and its arguments.
            env: changes to this process's environment.
            options: options of ``subprocess.Popen``.
        Cost: about 50 ms until the program begins.
        """
        network = self._host(site, host)
        user = "-" if self._user is None else str(self._user)
        inherited = [network] + ([] if self._user is None else [self._user])
        enter = [*COMMAND, str(os.getpid())]
        program = process.start(
            [*enter, user, str(network), *command],
            env={**os.environ, **(env or {})},
            pass_fds=[*inherited, *options.pop("pass_fds", ())],
            **options,
        )
        self._started.append(program)
        return program

    def _host(self, site: str, host: int) -> int:
        if (site, host) not in self._hosts:
            known = ", ".join(f"{site} (1 to {count})" for site, count in self.sites.items())
            raise SFMError(f"the lab has no host {host} of site {site!r}. There are: {known}")
        return self._hosts[site, host]

    # The paths between sites

    def settings(
        self,
        *,
        rtt: float | None = None,
        rate: float | None = None,
        loss: float | None = None,
        queue: int | None = None,
        cross: float | None = None,
        down: bool | None = None,
        between: Pair | None = None,
        one_way: bool = False,
    ) -> None:
        """Change paths while they are used, for packets from now on; None: unchanged.

        Args:
            rtt, rate, loss, queue, cross: as in ``Lab``. A rate or rtt without a queue also sets
                the queue.
            down: all packets disappear silently, also those that are on their way.
            between: only between these two sites.
            one_way: only from the first of them to the second, which then takes all of ``rtt / 2``.
        Raises:
            ValueError: one of them is out of range; it and the settings after it are unchanged.
        """
        if one_way and between is None:
            raise ValueError("one_way needs between=(from, to)")
        if rtt is not None or rate is not None:
            self.rtt, self.rate = rtt or self.rtt, rate or self.rate
            if queue is None and self.rate < math.inf:
                queue = max(int(self.rate / 8 * self.rtt), 64 * MTU)
        settings = {
            "delay_s": None if rtt is None else rtt / 2,
            "rate_bits_per_s": "inf" if rate == math.inf else rate,
            "queue_bytes": queue,
            "loss": loss,
            "cross_bits_per_s": cross,
            "down": down,
        }
        back = False if one_way else None
        self._ask("set", pair=between and list(between), back=back, settings=settings)

    def cut(self, seconds: float, between: Pair | None = None) -> None:
        """Let nothing pass for ``seconds``; return when packets pass again."""
        self.settings(down=True, between=between)
        try:
            time.sleep(seconds)
        finally:
            self.settings(down=False, between=between)

    def reset_connections(self) -> None:
        """Reset connections between sites when one of their ends next sends a packet.

        A firewall that was restarted does the same. New connections are not affected.
        """
        self._ask("forget")

    # Reports

    def clear(self) -> None:
        """Let ``report`` count from 0 again."""
        self._ask("clear")

    def report(self) -> dict[str, Any]:
        """The counts and delays since the start, or ``clear``; see ``LabLink.report``.

        ``ways`` maps "A-B" to the report of that link, in which ``there`` is from A to B;
        ``late_mean_s``, ``late_p99_s``, ``late_max_s`` are the worst of all links; ``missed`` are
        packets that were dropped in front of a link, since it was too slow.
        """
        links, missed = self._ask("report")
        reports = {"-".join(pair): report for pair, report in links}
        late = ("late_mean_s", "late_p99_s", "late_max_s")
        worst = {name: max(report[name] for report in reports.values()) for name in late}
        return {**worst, "missed": missed, "ways": reports}

    def check(self) -> dict[str, Any]:
        """The report, if the lab has kept up since the start, or ``clear``.

        Raises:
            Disturbed: a link was later than a millisecond on average, missed packets, or has
                ended.
        """
        report = self.report()
        failures = [link["failure"] for link in report["ways"].values() if link["failure"]]
        if failures:
            raise Disturbed(f"a link of the lab has ended ({failures[0]}): measure again")
        if report["late_mean_s"] > LATE_SECONDS or report["missed"]:
            raise Disturbed(
                f"the lab delivered {report['late_mean_s'] * 1e3:.2f} ms late on average, and "
                f"missed {report['missed']} packets: measure again with a lower rate or fewer "
                f"processes, on a machine that does nothing else"
            )
        return report

    def _ask(self, what: str, **details: Any) -> Any:
        try:
            self._socket.sendall(json.dumps({"what": what, **details}).encode() + b"\n")
            line = self._lines.readline()
        except OSError as error:
            raise Disturbed(f"the lab's helper has ended ({error}): make a new lab") from error
        if not line:
            raise Disturbed("the lab's helper has ended: make a new lab")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def close(self) -> None:
        """End all programs, and remove the lab. Harmless when repeated."""
        process.send(self._started, signal.SIGKILL)
        self._lines.close()
        self._socket.close()  # the helper ends the remaining processes
        process.wait([*self._started, self._holder], _END_SECONDS)
        process.end([*self._started, self._holder], 0)
        for fd in self._fds:
            os.close(fd)
        self._started, self._fds = [], []
