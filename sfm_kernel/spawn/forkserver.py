"""A process that forks others on request: they have what it has imported, and nothing of who asks.

A fork of the process that asks would have all its memory and its open files. This server knows
nothing: what a fork is to do comes to it through a pipe, which the server hands on unread. Its
forks become children of the process that asks, which waits for them as for its own.

(``multiprocessing`` has a fork server, too. In each fork it imports the main module of who asks.)
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sfm_kernel.spawn import lifeline, process
from sfm_kernel.spawn.forked import Child, quiet_fork

_MOST = 1 << 16
"""Bytes of a request."""


class ForkServer:
    """A server, for the process that makes this object; it ends with that process, or by ``close``.

    Args:
        modules: what the server imports while this process goes on.
    """

    def __init__(self, *modules: str) -> None:
        lifeline.adopt_orphans()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fd = theirs.fileno()
            words = process.python(__name__, str(os.getpid()), str(fd), *modules)
            self._process = process.start(words, stdin=subprocess.DEVNULL, pass_fds=[fd])

    def fork(
        self, function: str, fds: Sequence[int], modules: Sequence[str] = (), **arguments: Any
    ) -> Child:
        """Start a process that calls ``function(*fds, **arguments)``, and then ends.

        Args:
            function: "module:name".
            fds: descriptors of this process, of which the fork gets copies.
            modules: imported by the server before, for all forks.
            arguments: values that JSON can hold. The server sees them.
        Raises:
            OSError: the server has ended.
        """
        request = json.dumps([function, modules, arguments]).encode()
        socket.send_fds(self._socket, [request], fds)
        answer = self._socket.recv(_MOST)
        if not answer:
            raise ConnectionResetError("the fork server has ended")
        return Child(int(answer))

    def close(self) -> None:
        """End the server; its forks go on."""
        self._socket.close()
        process.end([self._process], 1.0)


def _serve(asked: socket.socket) -> None:
    while True:
        request, fds, _, _ = socket.recv_fds(asked, _MOST, 8)
        if not request:
            return
        function, modules, arguments = json.loads(request)
        for module in modules:
            importlib.import_module(module)
        module, _, name = function.partition(":")
        body = getattr(importlib.import_module(module), name)
        pid = _fork(asked, partial(body, *fds, **arguments))
        for fd in fds:
            os.close(fd)
        asked.send(str(pid).encode())


def _fork(asked: socket.socket, body: Callable[[], object]) -> int:
    """Start a process as a child of nobody, which the process that asks then adopts; its id."""
    read, write = os.pipe()
    between = quiet_fork()
    if between:
        os.close(write)
        with open(read, "rb") as pipe:
            pid = int(pipe.read())
        os.waitpid(between, 0)  # from now on the fork is adopted
        return pid
    status = 1
    try:
        if pid := quiet_fork():
            os.write(write, str(pid).encode())
        else:
            os.close(read)
            os.close(write)
            asked.close()
            body()
        status = 0
    finally:
        os._exit(status)


def main(asker: int, fd: int, modules: Sequence[str]) -> None:
    """Fork on request, until the process that asks has closed the socket ``fd`` or has ended."""
    lifeline.die_with(asker)
    os.set_inheritable(fd, False)
    for module in modules:
        importlib.import_module(module)
    with socket.socket(fileno=fd) as asked:
        _serve(asked)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
