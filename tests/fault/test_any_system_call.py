"""A process dies before or after each system call of joining, leaving and the first message.

Files change only in system calls, which make, lock, rename, replace and remove them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.directory import clean
from tests import leaks
from tests.fault import tracer
from tests.fault.victims import Nursery

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not tracer.POSSIBLE, reason="the tracer knows x86-64 only"),
]

JOIN = "sfm = sfm_kernel.join(world, 'V')\n"
SEND = "for n in range(3): sfm.send(dest='home', n=n)\n"

ACTS = {
    "joining": ("", JOIN, 0),
    "the first message": (JOIN + "sfm.wait_for('home')\n", SEND, 0),
    "leaving": (JOIN + "sfm.wait_for('home')\n" + SEND, "sfm.close()", 3),
}


@pytest.mark.parametrize("name", ACTS)
def test_killed_at_a_system_call(
    name: str, survivor: Endpoint, check_the_others: Callable[[], None], effort: int
) -> None:
    prepare, act, sent = ACTS[name]
    nursery = Nursery(survivor.world, prepare, act, "")
    try:
        with nursery.victim() as victim:
            total = victim.pass_syscalls(100_000)
        drain(survivor, sent)
        assert total > 20, "the act was not seen"
        step = max(1, total // 12) if effort == 1 else 1
        for count in range(1, total, step):
            with nursery.victim() as victim:
                victim.pass_syscalls(count)
            drain(survivor, sent)
            check_the_others()
            succeed(survivor)
    finally:
        nursery.close()
    abandon_the_unfinished(survivor.folder)
    clean()
    living = {member.uid for member in survivor.members() if survivor.alive(member)}

    def left_behind() -> list[str]:
        # A ring belongs to its sender, too: the reader removes what the dead have not announced.
        files = set(os.listdir(survivor.folder)) - set(leaks.OF_THE_WORLD)
        return [file for file in files if not living.issuperset(file.partition(".")[0].split("-"))]

    patience = time.monotonic() + 10
    while left_behind() and time.monotonic() < patience:
        time.sleep(0.05)
    assert not left_behind()


def abandon_the_unfinished(folder: str) -> None:
    """Segments are locked a moment after they are made: only old ones are known to be dead."""
    for file in os.listdir(folder):
        if file.endswith(".new"):
            os.utime(os.path.join(folder, file), (0, 0))


def drain(survivor: Endpoint, least: int) -> None:
    """The victim's messages came in order, and at least ``least`` of them."""
    numbers = []
    try:
        while survivor.peek(src="V") or any(member.name == "V" for member in survivor.members()):
            numbers.append(survivor.recv(20, src="V").n)
    except PeerLost:
        pass
    assert numbers == list(range(len(numbers))), "lost or out of order"
    assert len(numbers) >= least


def succeed(survivor: Endpoint) -> None:
    """A new process gets the name of the dead one, and exchanges messages with the survivor."""
    with sfm_kernel.join(survivor.world, "V") as heir:
        heir.send(dest="steady", nothing=True)
        survivor.send(dest="V", n=1)
        assert heir.recv(20, src="home").n == 1
