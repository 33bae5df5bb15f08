"""The real mpi4py through endpoints that a world's processes have already, as engines do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, mpi
from sfm_kernel.c import LIBMPI_ABI
from sfm_kernel.observe.timeline import Recorder
from tests.mpi.launching import PATIENCE

PROGRAM = """
import sfm_kernel

def work(sfm):
    from sfm_kernel.mpi import engines

    engines.use(sfm)
    import numpy
    from mpi4py import MPI
    from sfm_kernel.endpoint import BUFFERING

    comm, failed = MPI.COMM_WORLD, []
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size

    def check(what, is_right):
        if not is_right:
            failed.append(what)

    for items in (1, 3000, 500_000):
        array, other = numpy.full(items, rank), numpy.empty(items, int)
        comm.Sendrecv(array, dest=right, recvbuf=other, source=left)
        check(f"Sendrecv {items}", (other == left).all())
        comm.Allreduce(array, other)
        check(f"Allreduce {items}", (other == sum(range(size))).all())
    check("order", order(comm, right, left) == list(range(200)))
    check("objects", comm.alltoall([(rank, to) for to in range(size)])
          == [(source, rank) for source in range(size)])
    sfm.send(dest=right, tag="own", value=rank)
    comm.ssend("mpi", dest=right) if rank % 2 else None
    check("own", sfm.recv(tag="own").value == left)
    check("both", comm.recv(source=left) == "mpi" if left % 2 else True)
    comm.send("to oneself", dest=rank)
    check("to oneself", comm.recv(source=rank) == "to oneself")
    for _ in range(3):  # all together more than a send may leave unreceived
        sfm.send(dest=rank, tag="own", value=numpy.zeros(BUFFERING // 16))
        sfm.recv(tag="own")
    half = comm.Split(rank % 2, rank)
    check("Split", half.allgather(rank) == [one for one in range(size) if one % 2 == rank % 2])
    port = comm.bcast(MPI.Open_port() if rank == 0 else None)
    both = half.Connect(port) if rank % 2 else half.Accept(port)
    check("port", both.allgather(rank) == [one for one in range(size) if one % 2 != rank % 2])
    both.Disconnect()
    if rank == 0:
        MPI.Close_port(port)
    window = MPI.Win.Create(numpy.zeros(4, int), disp_unit=8, comm=comm)
    memory = numpy.frombuffer(window.tomemory(), int)
    window.Fence()
    window.Put(numpy.array([rank]), right)
    window.Accumulate(numpy.array([1]), 0, target=1)
    window.Fence()
    check("Put", memory[0] == left)
    check("Accumulate", rank > 0 or memory[1] == size)
    window.Free()
    comm.Barrier()
    return failed

def order(comm, right, left):
    requests = [comm.isend(number, dest=right, tag=1) for number in range(200)]
    came = [comm.recv(source=left, tag=1) for _ in range(200)]
    [request.wait() for request in requests]
    return came

if __name__ == "__main__":
    print(sfm_kernel.run(work, n=4))
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a program from a file of this folder to its end."""
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, str(program)]
    return subprocess.run(command, text=True, capture_output=True, timeout=PATIENCE)


def test_engines_have_mpi_over(kind: str, tmp_path: Path) -> None:
    done = run(tmp_path, PROGRAM)
    assert (done.stdout, done.stderr) == ("[[], [], [], []]\n", "")


def seen(sfm: Endpoint) -> dict[str, Any] | None:
    """0 sends what 1 receives without having to wait for it; 0's record of both."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm, memory = MPI.COMM_WORLD, bytearray(8)
    sfm.send(dest=sfm.name, tag="own")
    sfm.recv(tag="own")
    if comm.rank == 0:
        comm.send("to oneself", dest=0, tag=3)  # left
        comm.recv(source=0, tag=3)  # taken
        comm.send("an object", dest=1, tag=1)  # sent
        comm.Send(memory, dest=1, tag=2)  # filled
        comm.recv(source=1)
        recorder = Recorder(sfm)
        recorder.read()
        comm.send("seen", dest=1)
        return recorder.whole()
    while not comm.iprobe(source=0, tag=2):
        pass
    comm.recv(source=0, tag=1)  # came
    comm.Recv(memory, source=0, tag=2)  # came whole
    comm.send("done", dest=0)
    comm.recv(source=0)
    return None


def test_messages_of_calls_that_have_not_waited_are_shown_in_their_lines() -> None:
    lines = Path(__file__).read_text().splitlines()
    line_of = {
        line.rpartition("# ")[2]: number for number, line in enumerate(lines, 1) if "  # " in line
    }
    timeline = sfm_kernel.run(seen, 2, timeout=PATIENCE)[0]
    known = [(dict(flight["attributes"]), flight) for flight in timeline["flights"]]
    # A message of the library itself, such as one that makes a combining tree, has no tag.
    flights = {attributes["tag"]: flight for attributes, flight in known if "tag" in attributes}
    calls = ("1", "sent", "came"), ("2", "filled", "came whole"), ("3", "left", "taken")
    for tag, sent, received in calls:
        found = [flights[tag][end]["line"] for end in ("sent_at", "received_at")]
        assert found == [line_of[sent], line_of[received]]


IMPORTS = """
import sfm_kernel

def imported(sfm):
    from sfm_kernel import mpi

    mpi.use(sfm)
    from mpi4py import MPI

if __name__ == "__main__":
    sfm_kernel.run(imported, 1)
"""


@pytest.mark.parametrize(
    ("module", "reason"),
    [("damaged", "was built for another MPI"), ("abi", "was built for the ABI of MPI 5.0")],
)
def test_an_mpi4py_for_another_mpi_is_refused(tmp_path: Path, module: str, reason: str) -> None:
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").touch()
    binary = tmp_path / "mpi4py" / "MPI.other.so"
    if module == "abi":
        source = tmp_path / "empty.c"
        source.write_text("")
        abi = ["-Wl,--no-as-needed", LIBMPI_ABI]
        subprocess.run(["cc", "-shared", "-o", binary, source, *abi], check=True)
    else:
        binary.write_bytes(b"\x7fELF, but damaged")
    done = run(tmp_path, IMPORTS)
    assert reason in done.stderr and "pip install" in done.stderr
