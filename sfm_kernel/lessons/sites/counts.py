"""What the kernel has counted of connections between sites: the paper's Tables 1, 4 and 6.

A process tells of its own lines to other sites (``Exchange.connections``), a gateway tells the
directory server of its connections. The native core counts the same for both (``tcp_history.rs``):
a window that fell with no other reason than a silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

COUNTED = ("restarts", "rto", "retransmitted", "dup_acks")
"""Idle restarts; timeouts; segments that were sent again, for any reason; and segments that came
out of order, each of which was answered by a duplicate acknowledgement: Linux counts those that it
sends, and not those that it gets. All are of both ends of every connection."""

TOLD_AFTER = 1.2
"""Seconds after which all gateways have told the directory server of what happens now."""


def of_lines(lines: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Of a process's direct lines to other sites, as ``Exchange.connections`` tells them."""
    return total(_of_one(one) for one in lines if one["gateway"] is None)


def of_reports(reports: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Of all connections between gateways, as these tell (``RemoteDirectory.reports``)."""
    return total(
        _of_one(one)
        for report in reports
        for gateway in report["gateways"]
        for one in gateway["connections"]
    )


def _of_one(connection: Mapping[str, Any]) -> Counter[str]:
    tcp = connection["tcp"] or {}  # None: it has just ended
    return Counter(
        connections=1,
        restarts=connection["idle_restarts"],
        rto=tcp.get("total_rto") or 0,
        retransmitted=tcp.get("total_retrans") or 0,
        dup_acks=tcp.get("rcv_ooopack") or 0,
    )


def total(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum; each of ``COUNTED`` is there."""
    found = Counter[str](dict.fromkeys(("connections", *COUNTED), 0))
    for one in counts:
        found.update(one)
    return found
