"""Processes that share memory meet at a tree for barriers and small reductions, and send no
messages; programs see no difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, mpi
from sfm_kernel.observe import snapshot
from tests.mpi.launching import PATIENCE, mpi_worlds, run

MET = """
from mpi4py import MPI
import numpy as np, os, signal, sys, threading, time
comm, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
for _ in range(5): comm.Barrier()
"""
"""The start of a program; after it the processes have a tree."""

ROOM = 2016
"""Bytes that one process can bring to the tree; more go by messages."""


def sent(sfm: Endpoint) -> list[int]:
    """The numbers of messages that this process has sent after 0, 5 and 105 calls."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm, counts, total = MPI.COMM_WORLD, [], np.zeros(1)
    for calls in (0, 5, 100):
        for _ in range(calls):
            comm.Barrier()
            comm.Allreduce(np.ones(1), total)
        entry = next(process for process in snapshot(sfm)["processes"] if process["uid"] == sfm.uid)
        counts.append(sum(peer["sent"] for peer in entry["peers"]))
    return counts


def test_processes_that_meet_send_nothing() -> None:
    for none, few, same in sfm_kernel.run(sent, 3, timeout=PATIENCE):
        assert none < few == same


def rings(sfm: Endpoint) -> int:
    """The number of rings that a process has mapped after some barriers; each takes memory."""
    mpi.use(sfm)
    from mpi4py import MPI

    for _ in range(20):
        MPI.COMM_WORLD.Barrier()
    with open("/proc/self/maps") as maps:
        return len({line.split()[5] for line in maps if ".ring" in line})


def test_a_tree_needs_no_rings_from_each_to_each() -> None:
    assert max(sfm_kernel.run(rings, 8, timeout=PATIENCE)) < 2 * 7


def reduced(sfm: Endpoint) -> list[str]:
    """Texts about wrong results of reductions."""
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    ops: list[tuple[Any, Any]] = [
        (MPI.SUM, np.sum), (MPI.PROD, np.prod), (MPI.MIN, np.min), (MPI.MAX, np.max),
        (MPI.BXOR, np.bitwise_xor.reduce), (MPI.LAND, np.all),
    ]  # fmt: skip
    wrong = []
    for dtype in ("i1", "u2", "i4", "i8", "f4", "f8", "c16"):
        for count in (1, 3, ROOM // np.dtype(dtype).itemsize, ROOM // np.dtype(dtype).itemsize + 1):
            every = [
                ((np.arange(count) * 7 + rank) % 5 + 1).astype(dtype) for rank in range(comm.size)
            ]
            for op, combined in ops:
                if np.dtype(dtype).kind in ("f", "c") and op not in (MPI.SUM, MPI.PROD):
                    continue
                right = combined(np.array(every), axis=0).astype(dtype)
                result = np.zeros(count, dtype)
                comm.Allreduce(every[comm.rank], result, op=op)
                in_place = every[comm.rank].copy()
                comm.Allreduce(MPI.IN_PLACE, in_place, op=op)
                if not (np.allclose(result, right) and np.array_equal(in_place, result)):
                    wrong.append(f"{combined.__name__} of {count} {dtype}")
    pairs = np.array([comm.rank % 2, comm.rank], "i"), np.zeros(2, "i")
    comm.Allreduce(*([pair, 1, MPI.TWOINT] for pair in pairs), op=MPI.MAXLOC)
    return wrong if list(pairs[1]) == [1, 1] else [*wrong, f"MAXLOC {pairs[1]}"]


@pytest.mark.parametrize("processes", [2, 3, 5, 6])
def test_results_are_those_of_messages(processes: int) -> None:
    assert sfm_kernel.run(reduced, processes, timeout=PATIENCE) == [[]] * processes


@pytest.mark.parametrize(("processes", "seed"), [(2, 1), (5, 2), (6, 3)])
def test_calls_in_any_order(processes: int, seed: int, effort: int) -> None:
    for nth in range(effort):
        words = ["-m", "tests.mpi.random_program", str(seed + 10 * nth), "200"]
        done = run("-n", str(processes), "--detect", *words, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, "")


BCAST, ROOTED, WIDE = (
    f"comm.Bcast(np.zeros({n}), root={root})" for n, root in [(1, 0), (1, 1), (999, 0)]
)
REDUCE = "comm.Reduce(np.zeros(1), np.zeros(1))"
OWN = f"own = MPI.Op.Create(lambda a, b, of: None, True); {REDUCE[:-1]}, own)"
SMALL, LARGE = (f"comm.Allreduce(np.zeros({n}), np.zeros({n}))" for n in (1, 1000))


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (BCAST, "comm.Barrier()", "where this one calls comm.B"),
        ("comm.Barrier()", BCAST, "where this one calls comm.B"),
        (SMALL, "comm.Barrier()", "where this one calls comm."),
        (SMALL, SMALL.replace("1", "2"), " bytes in prog.py, line "),
        (LARGE, SMALL, " expected here: do all processes call the same collective"),
        (SMALL, LARGE, " expected here: do all processes call the same collective"),
        (f"{BCAST}; comm.Barrier()", "comm.Barrier(); comm.Barrier()", "MPI_B"),
        (f"{SMALL}; comm.Barrier()", "comm.Barrier()", "where this one calls comm."),
        (BCAST, ROOTED, "where this one calls comm.Bcast"),
        (BCAST, WIDE, "are expected here"),
        (WIDE, BCAST, "are expected here"),
        ("comm.Barrier()", REDUCE, "where this one calls comm.Barrier"),
        (REDUCE, OWN, "with the same root and operation"),
        (OWN, REDUCE, "with the same root and operation"),
        (
            f"two = comm.Dup(); {BCAST.replace('comm', 'two')}",
            "comm.Dup()",
            "has called MPI_Bcast(root=0)",
        ),
    ],
    ids=[
        "message here",
        "message there",
        "calls",
        "sizes",
        "large",
        "small",
        "ahead",
        "end",
        "roots",
        "small post",
        "large message",
        "post here",
        "own operation here",
        "own operation there",
        "never read",
    ],
)
def test_calls_that_differ_are_reported(tmp_path: Path, first: str, second: str, says: str) -> None:
    program = tmp_path / "prog.py"
    program.write_text(f"{MET}if rank: {second}\nelse: {first}\n")
    done = run("-n", "2", str(program), timeout=PATIENCE)
    assert done.returncode != 0 and says in done.stderr, done.stderr


def test_a_process_that_waits_goes_on_with_its_messages() -> None:
    """A process that waits at the tree is still needed for what it has sent."""
    program = """
if rank == 0:
    large = np.arange(10**6)
    requests = [comm.isend(bytes(50_000), dest=1) for _ in range(40)]
    requests += [comm.Isend(large, dest=1), comm.Issend(np.ones(1), dest=1)]
    comm.Barrier()
    MPI.Request.Waitall(requests)
else:
    time.sleep(0.3)
    assert all(comm.recv(source=0) == bytes(50_000) for _ in range(40))
    into, one = np.zeros(10**6, int), np.zeros(1)
    comm.Recv(into, source=0)
    comm.Recv(one, source=0)
    assert into[-1] == 10**6 - 1 and one == 1
    comm.Barrier()
"""
    done = run("-n", "2", "-c", MET + program, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["comm.Barrier()", LARGE], ids=["at the tree", "by messages"])
def test_all_learn_that_a_call_was_interrupted_and_the_next_one_works(call: str) -> None:
    """Ranks that wait in the call learn it, and so do those that come later."""
    program = f"""
def stop(): time.sleep(0.5); os.kill(os.getpid(), signal.SIGINT)
if rank == 1: threading.Thread(target=stop).start()
if rank == 0: comm.recv(source=1)
try: {call}
except KeyboardInterrupt: comm.send("stopped", dest=0)
except MPI.Exception as failure: print(rank, failure, flush=True)
for _ in range(10): comm.Barrier()
if rank == 0: print("sum", comm.allreduce(1))
else: comm.allreduce(1)
"""
    done = run("-n", "3", "-c", MET + program, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    interrupted = [
        line for line in sorted(done.stdout.splitlines()) if "was interrupted in this call" in line
    ]
    assert [line[0] for line in interrupted] == ["0", "2"]
    assert "sum 3" in done.stdout


@pytest.mark.parametrize("can_open", [True, False])
def test_all_agree_on_the_tree_if_the_agreement_is_interrupted(can_open: bool) -> None:
    """Rank 0 leaves the call before rank 1 has looked for the tree."""
    program = f"""
import resource
def stop(): time.sleep(0.5); os.kill(os.getpid(), signal.SIGINT)
files = resource.getrlimit(resource.RLIMIT_NOFILE)
if rank == 0:
    threading.Thread(target=stop).start()
else:
    time.sleep(1)
    if not {can_open}: resource.setrlimit(resource.RLIMIT_NOFILE, (1, files[1]))
try: comm.Barrier()
except KeyboardInterrupt: pass
except MPI.Exception as failure: assert "was interrupted" in str(failure), failure
resource.setrlimit(resource.RLIMIT_NOFILE, files)
for n in range(20):
    mine = np.full(1, -1.0 if rank else n, float)
    comm.Bcast(mine)
    assert mine == n
    comm.Barrier()
print(sum(".tree" in line or ".new" in line for line in open("/proc/self/maps")))
"""
    met = MET.replace("range(5)", "range(3)")  # the fourth call is the agreement
    done = run("-n", "2", "-c", met + program, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("1\n" * 2, "")


def test_a_call_that_is_refused_does_not_count() -> None:
    program = """
def other():
    time.sleep(0.2)
    try: comm.Barrier()
    except MPI.Exception as failure: refused.append(str(failure))
refused, thread = [], threading.Thread(target=other)
if rank == 0: thread.start()
else: time.sleep(0.6)
comm.Barrier()
if rank == 0: thread.join()
for n in range(9): comm.Bcast(np.ones(1)); comm.Barrier()
assert rank or "allows one at a time" in refused[0]
"""
    done = run("-n", "2", "--timeout", "20", "-c", MET + program, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_diagnosis_names_the_missing_rank() -> None:
    program = "if rank < 2: comm.Barrier()\nelse: comm.recv(source=0)\n"
    done = run("-n", "3", "--detect", "-c", MET + program, timeout=PATIENCE)
    assert "0 and 1 are in comm.Barrier() and wait for 2" in done.stderr


def test_many_communicators_leave_no_file() -> None:
    program = """
for _ in range(40):
    other = comm.Dup()
    for _ in range(6): other.Barrier()
    other.Free()
world = os.path.join(os.environ["SFM_DIR"], os.environ["SFM_MPI_WORLD"])
maps = sum(".tree" in line or ".new" in line for line in open("/proc/self/maps"))
print([one for one in os.listdir(world) if "tree" in one or "new" in one], maps)
"""
    done = run("-n", "2", "-c", MET + program, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("[] 1\n" * 2, "")


def test_a_rank_that_is_killed_while_a_tree_is_agreed_leaves_no_world() -> None:
    program = """
two, first = comm.Dup(), comm.bcast(os.getpid())
for _ in range(3 + (rank == 0)): two.Barrier()
world = os.path.join(os.environ["SFM_DIR"], os.environ["SFM_MPI_WORLD"])
while not any(one.endswith(".tree") for one in os.listdir(world)): time.sleep(0.001)
os.kill(first, signal.SIGKILL)
comm.recv(source=0)
"""
    done = run("-n", "2", "-c", MET + program, timeout=PATIENCE)
    assert "rank 0" in done.stderr and not mpi_worlds()


def test_all_send_messages_if_one_cannot_open_the_tree() -> None:
    program = (
        MET.replace("range(5)", "range(2)")
        + """
import resource
if rank == 1:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
total = np.zeros(1)
for _ in range(5): comm.Barrier(); comm.Allreduce(np.ones(1), total)
assert total == 3
"""
    )
    done = run("-n", "3", "-c", program, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
