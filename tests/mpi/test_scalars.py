"""Ranks, tags, roots and colors that programs work out, and forget to make whole."""

from __future__ import annotations

from typing import Any

import pytest

from sfm_kernel.mpi.base.scalars import scalar
from tests.mpi.test_pointtopoint import run


def test_they_are_cut() -> None:
    """As C cuts them: ``dest=size / 2`` is right in programs for mpi4py."""

    def program(comm: Any, MPI: Any) -> Any:
        import numpy as np

        last, got = comm.size / 2 - 0.5, np.zeros(2)  # 0.5
        assert comm.bcast(comm.rank, root=comm.size / 2) == 1
        assert comm.reduce(1, root=last) == (2 if comm.rank == 0 else None)
        comm.Bcast(got, root=last)
        assert comm.Split(comm.rank / 2, np.float64(-comm.rank)).size == 2
        group = comm.Get_group()
        assert group.Range_incl([(0.0, comm.size / 2, 1.0)]).size == 2
        if comm.rank == 0:
            comm.send("object", dest=comm.size / 2, tag=3.9)
            comm.isend("another", comm.size / 2, np.float32(4)).wait()
            comm.Send(np.ones(2), comm.size / 2)
            return None
        status = MPI.Status()
        assert comm.recv(source=last, tag=3.0, status=status) == "object" and status.tag == 3
        assert comm.irecv(source=last, tag=4.5).wait() == "another"
        comm.Probe(last, 0.0)
        comm.Recv(got, last, 0.0)
        return got.tolist()

    assert run(program)[1] == [1.0, 1.0]


@pytest.mark.parametrize("value", ["1", b"1", None, [1], 1j])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="as an integer"):
        scalar(value)
