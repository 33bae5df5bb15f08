"""Shared memory of a container: 64 MB for eight engines and a notebook, or no room at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)

Mount = Callable[[str], str]


@pytest.fixture
def mount(tmp_path: Path, over_shm: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mount]:
    """``mount(size)`` makes a file system of that size the place of all worlds; returns it."""
    folder = str(tmp_path)

    def mount(size: str) -> str:
        if os.geteuid() != 0:
            pytest.skip("mounting a small tmpfs needs root")
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
        if subprocess.run(command).returncode:
            pytest.skip("mounting is not allowed here")
        monkeypatch.setenv("SFM_DIR", folder + "/sfm")
        return folder

    yield mount
    if os.path.ismount(folder):
        wait_until(lambda: subprocess.run(["umount", folder]).returncode == 0)


def test_no_room(mount: Mount, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that is full: a clear error, no SIGBUS, and nothing left behind."""
    mount("1500k")
    monkeypatch.setenv("SFM_RING_BYTES", str(1 << 18))  # which is not chosen there
    code = (
        "import sfm_kernel, os\n"
        f"a, b = [sfm_kernel.join('{world}', n) for n in 'AB']\n"
        "try:\n    a.send(dest='B', n=1)\nexcept sfm_kernel.SegmentFull as error:\n"
        "    print(error)\n"
        "    assert error.needed > error.free and error.limit == 1500 * 1024\n"
        "a.close(); b.close()\nprint(sorted(os.listdir(os.environ['SFM_DIR'])))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "are needed" in done.stdout
    assert "shm-size" in done.stdout


def everybody(sfm: Endpoint, rounds: int) -> int:
    """Each sends to each: small messages, and arrays up to the size of a picture."""
    others = [rank for rank in range(sfm.size) if rank != sfm.rank]
    sizes = [10, 10_000, 300_000, 4_000_000]
    total = 0
    for n in range(rounds):
        for other in others:
            size = sizes[(n + sfm.rank + other) % len(sizes)]
            sfm.send(dest=other, n=n, x=np.full(size, sfm.rank, np.uint8))
        for other in others:
            m = sfm.recv(120, src=other)
            assert m.n == n
            assert len(m.x) == sizes[(n + sfm.rank + other) % len(sizes)]
            assert (m.x == other).all()
            total += len(m.x)
            m.x[:] = 0  # its own, and writable
    return total


def test_eight_engines_and_a_notebook(mount: Mount, effort: int) -> None:
    mount("64m")
    assert all(sfm_kernel.run(everybody, 9, 8 * effort, timeout=500))


def each_to_each(sfm: Endpoint) -> int:
    others = [rank for rank in range(sfm.size) if rank != sfm.rank]
    for other in others:
        sfm.send(dest=other, n=sfm.rank)
    return sum(sfm.recv(120, src=other).n for other in others)


def test_sixteen_processes_beside_engines(mount: Mount) -> None:
    """A benchmark starts these while the notebook's engines have their part of the 64 MB."""
    folder = mount("64m")
    Path(folder, "others").write_bytes(bytes(20 << 20))
    assert sfm_kernel.run(each_to_each, 16) == [120 - rank for rank in range(16)]


def keep(sfm: Endpoint, count: int, size: int) -> int:
    """Rank 0 keeps every array that it gets; they stay what they were after the sender's end."""
    if sfm.rank:
        for n in range(count):
            sfm.send(dest=0, n=n, x=np.full(size, n % 256, np.uint8))
        return 0
    kept = []
    for n in range(count):
        m = sfm.recv(120, src=1)
        assert m.n == n
        kept.append(m.x)
    for n, x in enumerate(kept):
        assert (x == n % 256).all()
        x += 1
    return len({x.ctypes.data for x in kept})


def test_kept_arrays_do_not_stop_their_sender(mount: Mount, effort: int) -> None:
    mount("64m")
    count = 200 * min(effort, 5)
    assert sfm_kernel.run(keep, 2, count, 1 << 20, timeout=500)[0] == count


def test_kept_arrays_with_room(kind: str) -> None:
    assert sfm_kernel.run(keep, 2, 200, 1 << 20, timeout=500)[0] == 200
    assert sfm_kernel.run(keep, 2, 500, 100_000, timeout=500)[0] == 500


def test_an_array_larger_than_shared_memory(mount: Mount) -> None:
    mount("16m")

    def work(sfm: Endpoint) -> float:
        if sfm.rank == 0:
            sfm.send(dest=1, x=np.arange(8_000_000.0))
            return 0.0
        return float(sfm.recv(120).x.sum())

    assert sfm_kernel.run(work, 2, timeout=300)[1] == 8_000_000.0 * 7_999_999.0 / 2


def too_large(sfm: Endpoint) -> str:
    """Rank 1 may not have much more memory than it has now; rank 0 sends more than that."""
    if sfm.rank == 1:
        sfm.send(dest=0, ready=True)
        assert sfm.recv(60, n=0).n == 0
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
        sfm.send(dest=0, ready=True)
        order = [sfm.recv(60).n for _ in range(5)]
        assert order == [1, 2, 3, 4, 5]
        sfm.send(dest=0, done=True)
        return ""
    sfm.recv(60, ready=True)
    sfm.send(dest=1, n=0)
    sfm.recv(60, ready=True)
    for n in 1, 3:
        sfm.send(dest=1, n=n)
        with pytest.raises(sfm_kernel.MessageTooLarge) as refusal:
            sfm.send(dest=1, n=-1, x=np.zeros(3 << 30, np.uint8))
        assert refusal.value.peer == 1
        assert refusal.value.nbytes > 3 << 30
        sfm.send(dest=1, n=n + 1, x=np.zeros(5 << 20, np.uint8))
    sfm.send(dest=1, n=5)
    assert sfm.recv(60, src=1).done
    return str(refusal.value)


def test_a_message_that_its_receiver_has_no_memory_for(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender gets an error; the messages before and after it arrive."""
    monkeypatch.setenv("SFM_ARENA_BYTES", "0")  # the receiver needs no memory for what lies there
    said = sfm_kernel.run(too_large, 2, timeout=120)[0]
    assert "process 1 has no memory for a message of 3,221,22" in said
    assert "smaller pieces" in said
