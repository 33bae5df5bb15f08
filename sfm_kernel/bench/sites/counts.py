"""What the kernel has counted of connections between sites: the paper's Tables 4 and 6.

A process looks at its own connections; a gateway tells the directory server of its own.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sfm_kernel.transport.tcp_info import Info, congestion, tcp_info

COUNTED = ("restarts", "rto", "retransmitted", "dups")
"""Idle restarts; timeouts; segments that were sent again, for any reason; and segments that came
twice (D-SACK), which is what Linux tells of duplicate acknowledgements."""

LOOK_EVERY = 0.05
"""Seconds. TCP forgets after a silence of 0.2 s or more, so that none is overlooked."""


def site_of(address: str) -> str:
    """The site of an address of a lab."""
    return address.split(".")[1]


class Watch:
    """What one connection did, by looking at it now and then."""

    def __init__(self, forgets: bool) -> None:
        self.forgets, self.restarts = forgets, 0
        self._before: Info | None = None

    def look(self, info: Info) -> None:
        """Take in what the kernel tells now.

        A window is closed when something is sent after more than a timeout without sending, with
        nothing under way, and the congestion control does not pace by itself, as BBR does.
        Source: tcp_slow_start_after_idle_check in Linux.
        """
        before, self._before = self._before, info
        if before is None or not self.forgets or info["bytes_sent"] == before["bytes_sent"]:
            return
        silent, timeout = _number(before, "last_data_sent_s"), _number(before, "rto_s")
        if silent > timeout and not before["unacked"]:
            self.restarts += 1

    def counts(self) -> Counter[str]:
        """Of ``COUNTED``, and "connections"."""
        info = self._before or {}
        return Counter(
            connections=1,
            restarts=self.restarts,
            rto=int(_number(info, "total_rto")),
            retransmitted=int(_number(info, "total_retrans")),
            dups=int(_number(info, "dsack_dups")),
        )


def _number(info: Info, name: str) -> float:
    return info.get(name) or 0


class Watching:
    """A thread that watches this process's connections to other sites. Those that end stay counted.

    Args:
        own: this host's address.
        but: "address:port" of the directory server, which is no way of messages.
    """

    def __init__(self, own: str, but: str) -> None:
        self._own, self._but = own, but
        self._watched: dict[tuple[int, str], Watch] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="sfm-bench-counts", daemon=True).start()

    def counts(self) -> dict[str, int]:
        """Of all connections so far."""
        with self._lock:
            self._look()
            return dict(total(one.counts() for one in self._watched.values()))

    def _work(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_EVERY):
            with self._lock:
                self._look()

    def _look(self) -> None:
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # it was closed, or is no connection
                if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    self._look_at(int(name))

    def _look_at(self, fd: int) -> None:
        with socket.socket(fileno=os.dup(fd)) as one:
            if one.family != socket.AF_INET or one.type != socket.SOCK_STREAM:
                return
            peer, port = one.getpeername()
            if site_of(peer) == site_of(self._own) or f"{peer}:{port}" == self._but:
                return
            key = (os.fstat(one.fileno()).st_ino, f"{peer}:{port}")
            info = tcp_info(one)
            if key not in self._watched:
                self._watched[key] = Watch(congestion(one) != "bbr")
            watch = self._watched[key]
            # The core chooses when it has seen how long the way is.
            watch.forgets = congestion(one) != "bbr"
            watch.look(info)


def of_reports(reports: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Of all connections between gateways, as these tell (``RemoteDirectory.reports``)."""
    return dict(
        total(
            Counter(
                connections=1,
                restarts=one["idle_restarts"],
                rto=one["tcp"]["total_rto"] or 0,
                retransmitted=one["tcp"]["total_retrans"] or 0,
                dups=one["tcp"]["dsack_dups"] or 0,
            )
            for report in reports
            for gateway in report["gateways"]
            for one in gateway["connections"]
        )
    )


def total(counts: Iterable[Counter[str]]) -> Counter[str]:
    """The sum; each of ``COUNTED`` is there."""
    found = Counter[str](dict.fromkeys(("connections", *COUNTED), 0))
    for one in counts:
        found.update(one)
    return found
