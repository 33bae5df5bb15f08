"""Collective calls of objects, which mpi4py makes of several: those that differ are refused."""

from __future__ import annotations

import re

import pytest

from tests.mpi.launching import run

MPI = "from mpi4py import MPI; comm = MPI.COMM_WORLD; rank = comm.rank\n"


def test_reductions_of_objects_that_differ_are_refused() -> None:
    """mpi4py makes them of its own messages. What cannot be compared is let through."""
    text = """
def ask(call):
    try:
        print("got", call())
    except MPI.Exception as error:
        print(error)
    comm.Barrier()

op = MPI.MAX if rank == 1 else MPI.SUM
ask(lambda: comm.reduce(1, op=op))
ask(lambda: comm.reduce(1, root=2 if rank == 1 else 0))
ask(lambda: comm.reduce(1) if rank else comm.allreduce(1))
ask(lambda: comm.allreduce(rank, (lambda a, b: a) if rank else max))
roots = [comm.reduce(1, root=root % 3) for root in range(40)]
ask(lambda: roots.count(3))
"""
    done = run("-n", "3", "-c", MPI + text)
    found = re.findall(
        r"process (1) .* calls (.*) in .*, line (\d+) where this one calls (.*): all", done.stdout
    )
    first = text.count("\n", 0, text.index("ask(lambda")) + 2
    reduce, allreduce = "reduce(op=MPI.SUM, root={})", "comm.allreduce(op=MPI.SUM)"
    assert found == [
        ("1", "reduce(op=MPI.MAX, root=0)", f"{first}", f"comm.{reduce.format(0)}"),
        ("1", reduce.format(2), f"{first + 1}", f"comm.{reduce.format(0)}"),
        ("1", reduce.format(0), f"{first + 2}", allreduce),
    ]
    assert sorted(re.findall("got (1.)", done.stdout)) == ["13", "13", "14"]
    assert done.returncode == 0


def test_an_error_is_shown_as_one_sentence_by_any_thread() -> None:
    """That of a reduction of objects beside one of arrays names these two, not the next call."""
    text = """
import concurrent.futures, numpy
data, pool = numpy.zeros(3), concurrent.futures.ThreadPoolExecutor()
def exchange():
    if rank == 0: comm.Recv(data[:1], source=1)
    else: comm.Send(data, dest=0)
for call in (exchange, lambda: pool.submit(exchange).result()):
    try:
        call()
    except MPI.Exception as error:
        print(error)
comm.reduce(1)
if rank == 0: comm.Reduce(data, numpy.zeros(3))
else: comm.reduce(1)
"""
    done = run("-n", "2", "-c", MPI + text)
    sent = (
        "MPI_ERR_TRUNCATE: message longer than the receive buffer. MPI_Recv: rank 1 has sent 24 "
        "bytes with tag 0 in <string>, line 7 (exchange), and the receive buffer has only 8"
    )
    assert [line[: len(sent)] for line in done.stdout.splitlines()] == [sent, sent]
    assert (
        "Exception: process 1 of MPI_COMM_WORLD calls reduce(op=MPI.SUM, root=0) in <string>, "
        "line 15 where this one calls comm.Reduce(op=MPI.SUM, root=0): all processes of a "
        "communicator make the same collective calls in the same order (those of objects and those "
        "of arrays are two)\n"
    ) in done.stderr


@pytest.mark.parametrize("name", ["Bcast", "Gather", "Allgather"])
def test_objects_beside_an_array_are_refused(name: str) -> None:
    """Also an array of as many bytes as the count that mpi4py sends first."""
    text = f"""
import numpy
if rank == 0:
    comm.{name.lower()}(1)
else:
    comm.{name}(numpy.ones(1), *{[] if name == "Bcast" else ["numpy.ones(2)"]})
"""
    done = run("-n", "2", "-c", MPI + text.replace("'", ""))
    array, one = rf"MPI_{name}(\(root=0\))?", rf"{name.lower()}(\(root=0\))?"
    errors = (
        rf"process 1 .* calls {array} in <string>, line 7 where this one calls comm\.{one}: ",
        rf"process 0 .* calls {one} in <string>, line 5 where this one calls comm\.{name}.*: ",
    )
    assert any(re.search(error, done.stderr) for error in errors), done.stderr
    assert "(those of objects and those of arrays are two)" in done.stderr
