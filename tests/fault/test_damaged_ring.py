"""Shared memory that a stranger has written to."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, MessagesLost, PacketError, PeerLost

pytestmark = pytest.mark.usefixtures("over_shm")

DATA = 8192  # native/src/ring_file.rs
FRAME = 16  # native/src/ring/


def damage(receiver: Endpoint, place: int) -> None:
    """Overwrite a part of the ring that its receiver has not opened yet."""
    (ring,) = Path(receiver.folder).glob("*.ring")
    with open(ring, "r+b") as file:
        os.pwrite(file.fileno(), b"\xff\xff", place)


@pytest.mark.parametrize("place", [DATA, DATA + 4, DATA + 8, DATA + FRAME])
def test_both_ends_notice_the_damage(place: int, world: str) -> None:
    with sfm_kernel.join(world, "B") as b:
        with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "C") as c:
            a.send(dest="B", n=1)
            damage(b, place)
            c.send(dest="B", n=2)
            with pytest.raises(PacketError, match="What it had sent is lost"):
                b.recv(10, src="A")
            with pytest.raises(MessagesLost, match="'B' could not read"):
                a.send(dest="B", n=3)
            a.send(dest="B", n=4)
            a.send(dest="B", x=bytes(100))
            assert b.recv(10).n == 2, "the others are not concerned"
            assert b.recv(10).n == 4
            assert len(b.recv(10, src="A").x) == 100


def test_a_sender_that_waits_notices_the_damage(world: str) -> None:
    with sfm_kernel.join(world, "B") as b, sfm_kernel.join(world, "A") as a:
        a.send(dest="B", n=1)
        damage(b, DATA)
        a.buffering = 0
        raised = []

        def send() -> None:
            try:
                a.send(dest="B", n=2)
            except PeerLost as error:
                raised.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        with pytest.raises(PacketError):
            b.recv(10)
        thread.join(10)
        assert [type(error) for error in raised] == [MessagesLost]
