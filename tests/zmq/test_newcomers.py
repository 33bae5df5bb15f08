"""Processes that join, and members that have not heard of them yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import next_line
from tests.zmq.machines import Machines, two_machines

pytestmark = [pytest.mark.zmq, pytest.mark.fault]


@pytest.fixture
def machines(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("SFM_DIR", str(sfm_dir))  # put back at the end
    with two_machines(world, sfm_dir) as running:
        yield running


def test_who_hears_late_of_a_newcomer_is_waited_for(machines: Machines) -> None:
    """A's directory client needs the GIL to hear of B's key; meanwhile it lets B wait, B tries
    again, and takes it for no death."""
    code = "ctypes.PyDLL(None).sleep(6)\nprint(sfm.recv(src='B').n, flush=True)\nsys.stdin.read()"
    a = machines.process("A", "there", code, relay=False)
    machines.process("B", "here", "sfm.send(dest='A', n=7)\nsys.stdin.read()")
    assert next_line(a) == "7"
