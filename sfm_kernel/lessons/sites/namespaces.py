"""Network namespaces with their devices: the sites of a lab. Used by ``hold`` alone.

A site has a router, and hosts on a switch:

    host 1  eth0 10.S.0.1 ──┐
    host 2  eth0 10.S.0.2 ──┴─ lan 10.S.0.254, the router ── TUN device to each other site

``enter_root`` makes them possible without root: in a user namespace every user is root.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from sfm_kernel._native import open_tun, setns, unshare
from sfm_kernel.lessons.sites.netlink import Netlink
from sfm_kernel.transport.tcp_info import choosable, congestion

_NEWUSER, _NEWNET = 0x10000000, 0x40000000
_QUEUE = 4000
"""Packets that may wait in a TUN device while the link's thread does not run: 48 ms at 1 Gbit/s."""
_SYSCTL = Path("/proc/sys/net/ipv4")


class Refused(Exception):
    """This machine does not allow a step: the text names it, and says what to do."""


def enter_root() -> int | None:
    """Let this process make network namespaces; return the user namespace's descriptor, if any."""
    try:
        unshare(_NEWNET)
        return None
    except PermissionError:
        pass
    user, group = os.geteuid(), os.getegid()
    try:
        unshare(_NEWUSER)
        # Root in the namespace may choose any congestion control in its network namespaces.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        unshare(_NEWNET)
    except OSError as error:
        raise Refused(
            f"this machine refuses user and network namespaces ({error.strerror}): run as root, "
            f"set sysctl user.max_user_namespaces above 0 and "
            f"kernel.apparmor_restrict_unprivileged_userns to 0, or start the container with "
            f"--privileged"
        ) from error
    return os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)


class Namespaces:
    """The namespaces of all sites. This process makes them, and is in one of them afterwards.

    Args:
        sites: the number of hosts of each site, by its name; the first site has number 1.
        algorithm: congestion control of connections between sites; None: the system's default.
        sysctls: settings of net.ipv4, for each host.
    """

    def __init__(
        self, sites: Mapping[str, int], algorithm: str | None, sysctls: Mapping[str, str | int]
    ) -> None:
        self._numbers = {site: number for number, site in enumerate(sites, start=1)}
        self.routers: dict[str, int] = {}
        self.hosts: dict[tuple[str, int], int] = {}
        self.devices: dict[tuple[str, str], tuple[int, int]] = {}
        for site, count in sites.items():
            self._make_site(site, count)
        self._connect(algorithm)
        for host in self.hosts.values():
            setns(host)
            for name, value in {"tcp_no_metrics_save": 1, **sysctls}.items():
                _sysctl(name, value)

    def _make_site(self, site: str, count: int) -> None:
        net = f"10.{self._numbers[site]}.0"
        router = self.routers[site] = _new()
        with Netlink() as netlink:
            netlink.add_bridge("lan")
            netlink.add_address("lan", f"{net}.254", 24)
            netlink.up("lan")
        _sysctl("ip_forward", 1)
        for number in range(1, count + 1):
            host = self.hosts[site, number] = _new()
            setns(router)
            with Netlink() as netlink:
                netlink.add_veth(f"host{number}", "lan", "eth0", host)
                netlink.up(f"host{number}")
            setns(host)
            with Netlink() as netlink:
                netlink.add_address("eth0", f"{net}.{number}", 24)
                netlink.up("eth0")

    def _connect(self, algorithm: str | None) -> None:
        for pair in combinations(self.routers, 2):
            self.devices[pair] = self._tun(*pair), self._tun(*reversed(pair))
        for (site, _), host in self.hosts.items():
            setns(host)
            with Netlink() as netlink:
                gateway = f"10.{self._numbers[site]}.0.254"
                try:
                    netlink.add_route("10.0.0.0", 8, gateway=gateway, algorithm=algorithm)
                except OSError as error:
                    if algorithm is None:
                        raise
                    raise Refused(
                        f"the kernel takes no route with congestion control {algorithm!r} "
                        f"({error.strerror}): modprobe tcp_{algorithm}, or take one of: "
                        f"{', '.join(choosable())}"
                    ) from error

    def _tun(self, site: str, other: str) -> int:
        setns(self.routers[site])
        name = f"to{self._numbers[other]}"
        try:
            device = open_tun(name)
        except OSError as error:
            raise Refused(
                f"/dev/net/tun cannot be used ({error.strerror}): as root, modprobe tun and chmod "
                f"666 /dev/net/tun; for a container, --device /dev/net/tun"
            ) from error
        with Netlink() as netlink:
            netlink.up(name, _QUEUE)
            netlink.add_route(f"10.{self._numbers[other]}.0.0", 24, device=name)
        return device

    def algorithms(self) -> dict[str, str]:
        """The congestion control of each site, read from a connection of its first host."""
        found = {}
        for site in self.routers:
            setns(self.hosts[site, 1])
            other = next(name for name in self._numbers if name != site)
            with socket.socket() as probe:
                probe.setblocking(False)
                # The route's choice is made with the first packet; no answer is needed.
                probe.connect_ex((f"10.{self._numbers[other]}.0.1", 9))
                found[site] = congestion(probe)
        time.sleep(0.01)  # until those packets are gone
        return found

    def dropped(self) -> int:
        """The number of packets that TUN devices dropped, since the link was too slow."""
        total = 0
        for router in self.routers.values():
            setns(router)
            for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
                name, _, numbers = line.partition(":")
                if name.strip().startswith("to") and numbers:
                    total += int(numbers.split()[11])
        return total


def _new() -> int:
    """Enter a new network namespace; return its descriptor."""
    unshare(_NEWNET)
    with contextlib.suppress(OSError):  # a kernel without IPv6
        # It would announce itself on each new device: packets that nobody has sent.
        for devices in ("all", "default"):
            Path(f"/proc/sys/net/ipv6/conf/{devices}/disable_ipv6").write_text("1")
    with Netlink() as netlink:
        netlink.up("lo")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _sysctl(name: str, value: str | int) -> None:
    try:
        (_SYSCTL / name).write_text(str(value))
    except OSError as error:
        raise Refused(
            f"net.ipv4.{name} cannot be set to {value!r} in a new network namespace "
            f"({error.strerror}): is /proc/sys read-only? Run outside of the container, or "
            f"start it with --privileged"
        ) from error
