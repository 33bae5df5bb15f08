"""Connections between engines 0 and 1 for the mechanisms of ``pingpong``.

Both engines open a connection when a mechanism first needs it. They unpickle what comes through it,
so only a process that knows a token, which travels through SFM, may connect.
"""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import TYPE_CHECKING

import sfm_kernel
from sfm_kernel.directory import remove_world
from sfm_kernel.lessons.measure.engines import environment_of
from sfm_kernel.lessons.pingpong.mechanisms import (
    Mechanism,
    Packets,
    Pickle,
    Pipe,
    Queue,
    Sockets,
    receive_exactly,
)
from sfm_kernel.lessons.pingpong.pyzmq import paired

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

Opening = Callable[["Endpoint", int], AbstractContextManager[Mechanism]]
"""Opens one end of a mechanism, given this engine's endpoint and the rank of the other engine."""


class Links:
    """This engine's ends of the connections with its peer; a context manager that closes them."""

    def __init__(self, sfm: Endpoint, peer: int) -> None:
        self._sfm, self._peer = sfm, peer
        self._stack = ExitStack()
        self._opened: dict[str, Mechanism] = {}

    def __getitem__(self, name: str) -> Mechanism:
        if name not in self._opened:
            opening = OPENINGS[name](self._sfm, self._peer)
            self._opened[name] = self._stack.enter_context(opening)
        return self._opened[name]

    def __enter__(self) -> Links:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


@contextmanager
def folder() -> Iterator[Path]:
    """A short-lived folder that only this user can enter, for Unix sockets."""
    with tempfile.TemporaryDirectory(prefix="sfm-bench-") as path:
        yield Path(path)


@contextmanager
def _socket(sfm: Endpoint, peer: int, family: socket.AddressFamily) -> Iterator[socket.socket]:
    """A connected socket; with TCP, without Nagle's delay."""
    with ExitStack() as stack:
        if sfm.rank == 0:
            token = secrets.token_bytes(16)
            server = stack.enter_context(socket.socket(family))
            if family == socket.AF_UNIX:
                server.bind(str(stack.enter_context(folder()) / "s"))
            else:
                server.bind(("127.0.0.1", 0))
            server.listen(1)
            sfm.send(dest=peer, tag="bench link", address=server.getsockname(), token=token)
            link = stack.enter_context(server.accept()[0])
            if not secrets.compare_digest(receive_exactly(link, len(token)), token):
                raise ConnectionRefusedError("a stranger connected to the benchmark")
        else:
            invitation = sfm.recv(src=peer, tag="bench link")
            link = stack.enter_context(socket.socket(family))
            link.connect(invitation.address)
            link.sendall(invitation.token)
        if family != socket.AF_UNIX:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield link


def _over(kind: Callable[[socket.socket], Mechanism], family: socket.AddressFamily) -> Opening:
    @contextmanager
    def opening(sfm: Endpoint, peer: int) -> Iterator[Mechanism]:
        with _socket(sfm, peer, family) as link:
            yield kind(link)

    return opening


@contextmanager
def _pipe(sfm: Endpoint, peer: int) -> Iterator[Mechanism]:
    """The connection that ``multiprocessing.Pipe`` makes, between unrelated processes."""
    if sfm.rank == 0:
        token = secrets.token_bytes(16)
        with folder() as path, Listener(str(path / "s"), "AF_UNIX", authkey=token) as listener:
            sfm.send(dest=peer, tag="bench link", address=listener.address, token=token)
            link = listener.accept()
    else:
        invitation = sfm.recv(src=peer, tag="bench link")
        link = Client(invitation.address, "AF_UNIX", authkey=invitation.token)
    with link:
        yield Pipe(link)


def _queue(**environment: str) -> Opening:
    """SFM in a second world of the same processes, joined with these environment variables."""

    @contextmanager
    def opening(sfm: Endpoint, peer: int) -> Iterator[Mechanism]:
        world = "-".join([sfm.world, *environment.values()])[-64:].lstrip(".-_")
        try:
            with environment_of(environment):
                endpoint = sfm_kernel.join(world, rank=sfm.rank)
            with endpoint:
                endpoint.wait_for(peer)
                yield Queue(endpoint, peer)
        finally:
            remove_world(world)  # as the last process that leaves does

    return opening


@contextmanager
def _same_world(sfm: Endpoint, peer: int) -> Iterator[Mechanism]:
    """SFM in the engines' world."""
    yield Queue(sfm, peer)


@contextmanager
def _pyzmq(sfm: Endpoint, peer: int, address: str, *, curve: bool = False) -> Iterator[Mechanism]:
    with folder() as path, paired(sfm, peer, address.format(folder=path), curve=curve) as pair:
        yield pair


OPENINGS: dict[str, Opening] = {
    "sockets": _over(Sockets, socket.AF_INET),
    "pickle": _over(Pickle, socket.AF_INET),
    "SFM": _over(Packets, socket.AF_INET),
    "SFM w/Q": _same_world,
    "SFM w/Q untraced": _queue(SFM_TRACE="0"),
    "SFM w/Q zmq": _queue(SFM_TRANSPORT="zmq"),
    "pyzmq tcp": partial(_pyzmq, address="tcp://127.0.0.1:*"),
    "pyzmq tcp curve": partial(_pyzmq, address="tcp://127.0.0.1:*", curve=True),
    "pyzmq ipc": partial(_pyzmq, address="ipc://{folder}/s"),
    "unix sockets": _over(Sockets, socket.AF_UNIX),
    "unix pickle": _over(Pickle, socket.AF_UNIX),
    "Pipe": _pipe,
}
"""The mechanisms between two engines. The first four are the rows of the paper's Table 2. "SFM w/Q
zmq" goes over ZeroMQ, encrypted, as between machines."""
