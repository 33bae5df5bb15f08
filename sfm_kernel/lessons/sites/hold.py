"""Holds the namespaces of a lab, and carries the packets between them, until its owner has ended.

    python -m sfm_kernel.lessons.sites.hold SOCKET

``lab`` starts it with a socket. Each request is a line of JSON, and so is each answer; the first
answer carries the namespaces' descriptors. When the socket closes, for any reason, this process
ends every process in the namespaces, and itself: then the kernel removes namespaces and devices,
since no process holds them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import sys
import time
from typing import Any

from sfm_kernel._native import LabLink
from sfm_kernel.lessons.sites.namespaces import Namespaces, Refused, enter_root
from sfm_kernel.spawn.lifeline import die_with

_PATIENCE = 5.0
"""Seconds to wait for processes to end after SIGKILL."""


def main(arguments: list[str]) -> int:
    """Serve one lab; returns when its owner has closed the socket, or died."""
    parent = os.getppid()
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
    ):  # Ctrl-C is for the owner, which closes the socket
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(arguments[0])) as owner, owner.makefile("r") as lines:
        # Not an exception, which could interrupt `end`: it looks as if the owner closed the socket.
        def hang_up(*_: object) -> None:
            with contextlib.suppress(OSError):  # the owner has closed it
                owner.shutdown(socket.SHUT_RDWR)

        signal.signal(signal.SIGTERM, hang_up)
        settings = json.loads(lines.readline() or "null")
        if settings is None:
            return 0
        try:
            user = enter_root()
            # After enter_root, since new rights would undo it. The socket says the same, unless a
            # fork of the owner has inherited it.
            die_with(parent, signal.SIGTERM)
            held = _Held(settings)
        except (Refused, OSError) as error:
            owner.sendall(json.dumps({"refused": str(error)}).encode())
            return 0
        try:
            fds = [fd for fd in (user, *held.namespaces.hosts.values()) if fd is not None]
            hello = {"root": user is None, "algorithms": held.namespaces.algorithms()}
            held.clear()
            socket.send_fds(owner, [json.dumps(hello).encode() + b"\n"], fds)
            for line in lines:
                owner.sendall(json.dumps(held.do(**json.loads(line))).encode() + b"\n")
        except ConnectionError:
            pass  # the owner has died
        finally:
            held.end()
    return 0


class _Held:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.namespaces = Namespaces(settings["sites"], settings["algorithm"], settings["sysctls"])
        self.links = {}
        for number, (pair, devices) in enumerate(self.namespaces.devices.items()):
            self.links[pair] = LabLink(*devices, settings["seed"] + number)
            for device in devices:
                os.close(device)  # the link has duplicates
        self._dropped = 0

    def do(self, what: str, **details: Any) -> Any:
        """Do the request of a line, and return its answer: after an error, a description of it."""
        try:
            return getattr(self, what)(**details)
        except (ValueError, TypeError) as error:
            return {"error": str(error)}

    def set(self, pair: list[str] | None, back: bool | None, settings: dict[str, Any]) -> None:
        """Change the links of a pair of sites, or all; in one direction, or both."""
        if settings.get("rate_bits_per_s") == "inf":
            settings["rate_bits_per_s"] = math.inf
        for key, link in self.links.items():
            if pair is None or set(pair) == set(key):
                # `back` refers to the order in which the owner named the pair.
                turned = pair is not None and tuple(pair) != key
                for reverse in (False, True) if back is None else (back != turned,):
                    link.set(reverse, **settings)

    def forget(self) -> None:
        """Reset all connections when they next send a packet."""
        for link in self.links.values():
            link.forget()

    def report(self) -> list[Any]:
        """Each pair with its link's report, and the number of packets lost before a link."""
        reports = [[pair, link.report()] for pair, link in self.links.items()]
        return [reports, self.namespaces.dropped() - self._dropped]

    def clear(self) -> None:
        """Count from 0 again."""
        self._dropped = self.namespaces.dropped()
        for link in self.links.values():
            link.clear()

    def end(self) -> None:
        """Kill all processes in the namespaces, and close the links."""
        fds = (*self.namespaces.hosts.values(), *self.namespaces.routers.values())
        inside = {os.fstat(fd).st_ino for fd in fds}
        deadline = time.monotonic() + _PATIENCE
        while (found := _processes(inside)) and time.monotonic() < deadline:
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.005)
        for link in self.links.values():
            link.close()


def _processes(namespaces: set[int]) -> list[int]:
    """The living processes in these network namespaces, except this one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if os.stat(f"/proc/{entry}/ns/net").st_ino in namespaces:
                    found.append(int(entry))
            except OSError:  # it has ended, or belongs to another user
                continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
