"""Holds the namespaces of a lab, and carries the packets between them, until its owner is gone.

    python -m sfm_kernel.lessons.sites.hold SOCKET

``lab`` starts it with a socket, over which it gets a line of JSON for each thing to do, and gives
one back; with the first go the namespaces' descriptors. When the socket closes, however that comes
about, it ends every process that is in one of the namespaces, and itself: then the kernel removes
namespaces and devices, since nobody holds them.
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
"""Seconds that processes get to be gone after SIGKILL."""


def main(arguments: list[str]) -> int:
    """Serve one lab; returns when its owner has closed the socket, or died."""
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C is for the owner, who closes the socket
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(arguments[0])) as owner, owner.makefile("r") as lines:
        # As if the owner had closed it: an exception could strike in the middle of `end`.
        def hang_up(*_: object) -> None:
            with contextlib.suppress(OSError):  # it has
                owner.shutdown(socket.SHUT_RDWR)

        signal.signal(signal.SIGTERM, hang_up)
        wanted = json.loads(lines.readline() or "null")
        if wanted is None:
            return 0
        try:
            user = enter_root()
            # After enter_root, since new rights would undo it. The socket says the same, unless a
            # fork of the owner has inherited it.
            die_with(parent, signal.SIGTERM)
            held = _Held(wanted)
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
    def __init__(self, wanted: dict[str, Any]) -> None:
        self.namespaces = Namespaces(wanted["sites"], wanted["algorithm"], wanted["sysctls"])
        self.links = {}
        for number, (pair, devices) in enumerate(self.namespaces.devices.items()):
            self.links[pair] = LabLink(*devices, wanted["seed"] + number)
            for device in devices:
                os.close(device)  # the link has its own
        self._dropped = 0

    def do(self, what: str, **details: Any) -> Any:
        """What a line asks for; what is given back. An error is told, and changes nothing else."""
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
                # `back` is meant in the order that the owner gave.
                turned = pair is not None and tuple(pair) != key
                for one in (False, True) if back is None else (back != turned,):
                    link.set(one, **settings)

    def forget(self) -> None:
        """All connections are reset when they next send something."""
        for link in self.links.values():
            link.forget()

    def report(self) -> list[Any]:
        """Each pair with its link's report, and packets that got lost before a link saw them."""
        reports = [[pair, link.report()] for pair, link in self.links.items()]
        return [reports, self.namespaces.dropped() - self._dropped]

    def clear(self) -> None:
        """Count from 0 again."""
        self._dropped = self.namespaces.dropped()
        for link in self.links.values():
            link.clear()

    def end(self) -> None:
        """Nobody is left in the namespaces."""
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
    """Living processes that are in one of these network namespaces, but for this one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if os.stat(f"/proc/{entry}/ns/net").st_ino in namespaces:
                    found.append(int(entry))
            except OSError:  # it has ended, or is somebody else's
                continue
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
