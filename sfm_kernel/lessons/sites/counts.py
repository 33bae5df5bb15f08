"""The kernel's counts of connections between sites: the paper's Tables 1, 4 and 6.

A process reports its direct connections to other sites (``Exchange.connections``), a gateway
reports its connections to the directory server. For both the native core counts idle restarts
(``tcp_history.rs``): a window that fell for no other reason than a silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

COUNTED = ("restarts", "rto", "retransmitted", "dup_acks")
"""Idle restarts; timeouts; segments that were sent again, for any reason; and segments that came
out of order, each answered by a duplicate acknowledgement: Linux counts the acknowledgements that
it sends, and not those that it gets. The counts are sums over both ends of every connection."""

REPORTED_AFTER = 1.2
"""Seconds after which all gateways have reported the present events to the directory server."""


def of_links(links: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The counts of a process's direct links to other sites (from ``Exchange.connections``)."""
    return total(_counts(link) for link in links if link["gateway"] is None)


def of_reports(reports: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The counts of all connections between gateways (from ``RemoteDirectory.reports``)."""
    return total(
        _counts(connection)
        for report in reports
        for gateway in report["gateways"]
        for connection in gateway["connections"]
    )


def _counts(connection: Mapping[str, Any]) -> Counter[str]:
    tcp = connection["tcp"] or {}  # None: it has just ended
    return Counter(
        connections=1,
        restarts=connection["idle_restarts"],
        rto=tcp.get("total_rto") or 0,
        retransmitted=tcp.get("total_retrans") or 0,
        dup_acks=tcp.get("rcv_ooopack") or 0,
    )


def total(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum of counts; it has all names of ``COUNTED``."""
    found = Counter[str](dict.fromkeys(("connections", *COUNTED), 0))
    for count in counts:
        found.update(count)
    return found
