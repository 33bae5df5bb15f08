"""Groups: sets of processes in an order, without communication."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_GROUP,
    ERR_RANK,
    IDENT,
    PROC_NULL,
    SIMILAR,
    UNDEFINED,
    UNEQUAL,
)
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.comm.groups import GROUP_EMPTY, GROUP_NULL, Group

ABCD = Group._of_names("abcd")


def names(group: Group) -> str:
    return "".join(str(name) for name in group._names)


def error_of(call: Any, *given: Any) -> int:
    with pytest.raises(MPIError) as caught:
        call(*given)
    return caught.value.Get_error_class()


def test_some_of_a_group() -> None:
    assert names(ABCD.Incl([3, 0])) == "da"
    assert names(ABCD.Excl([3, 0])) == "bc"
    assert names(ABCD.Range_incl([(3, 1, -2), (0, 0, 5)])) == "dba"
    assert names(ABCD.Range_incl([(0, 3, 2)])) == "ac"
    assert names(ABCD.Range_incl([(3, 2, -5), (1, 9, 20)])) == "db"
    assert names(ABCD.Range_excl([(0, 3, 2)])) == "bd"
    assert ABCD.Incl([]) == ABCD.Excl(range(4)) == GROUP_EMPTY
    assert names(ABCD.Excl([])) == "abcd"


def test_two_groups() -> None:
    other = Group._of_names("dbxy")
    assert names(Group.Union(ABCD, other)) == "abcdxy"
    assert names(Group.Intersection(ABCD, other)) == names(Group.Intersect(ABCD, other)) == "bd"
    assert names(Group.Intersection(other, ABCD)) == "db"
    assert names(Group.Difference(ABCD, other)) == "ac"
    assert Group.Difference(ABCD, ABCD) == GROUP_EMPTY


def test_comparing() -> None:
    assert ABCD.Compare(ABCD) == ABCD.Compare(ABCD.Dup()) == IDENT
    assert ABCD.Compare(ABCD.Incl([3, 2, 1, 0])) == SIMILAR
    assert ABCD.Compare(ABCD.Excl([0])) == UNEQUAL
    assert GROUP_EMPTY.Compare(ABCD.Incl([])) == IDENT
    assert ABCD.Dup() != ABCD


def test_ranks_in_another_group() -> None:
    other = Group._of_names("dbxy")
    assert ABCD.Translate_ranks([0, 1, 3, 3, PROC_NULL], other) == [
        UNDEFINED,
        1,
        0,
        0,
        PROC_NULL,
    ]
    assert ABCD.Translate_ranks(group=other) == [UNDEFINED, 1, UNDEFINED, 0]
    assert error_of(ABCD.Translate_ranks, [4], other) == ERR_RANK


@pytest.mark.parametrize(
    ("call", "given", "code"),
    [
        ("Incl", [4], ERR_RANK),
        ("Incl", [-1], ERR_RANK),
        ("Incl", [1, 1], ERR_RANK),
        ("Excl", [1, 1], ERR_RANK),
        ("Range_incl", [(0, 4, 1)], ERR_ARG),
        ("Range_incl", [(0, 3, 0)], ERR_ARG),
        ("Range_incl", [(3, 0, 1)], ERR_ARG),
        ("Range_incl", [(0, 3, -1)], ERR_ARG),
        ("Range_excl", [(0, 1, 1), (1, 2, 1)], ERR_ARG),
    ],
)
def test_wrong_ranks(call: str, given: Any, code: int) -> None:
    assert error_of(getattr(ABCD, call), given) == code


def test_what_is_no_rank_or_group() -> None:
    with pytest.raises(TypeError):
        ABCD.Incl(["a"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        ABCD.Compare("abcd")  # type: ignore[arg-type]


def test_null_and_empty() -> None:
    group = ABCD.Dup()
    group.Free()
    assert group == GROUP_NULL == Group()
    assert not group
    assert GROUP_EMPTY
    assert GROUP_EMPTY.size == 0
    for call in (group.Get_size, group.Get_rank, group.Dup, group.Free):
        assert error_of(call) == ERR_GROUP
    assert error_of(ABCD.Compare, group) == ERR_GROUP
    GROUP_EMPTY.Free()
    assert GROUP_EMPTY
    copy = Group(GROUP_EMPTY)
    copy.Free()
    assert not copy


def test_only_constants_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Group(GROUP_EMPTY))) == GROUP_EMPTY
    with pytest.raises(ValueError, match="cannot be pickled"):
        pickle.dumps(ABCD)


def test_groups_of_communicators() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        world = comm.Get_group()
        assert (world.size, world.rank) == (comm.size, comm.rank) == (3, sfm.rank)
        back = world.Incl([2, 1])
        assert back.rank == {0: MPI.UNDEFINED, 1: 1, 2: 0}[comm.rank]
        assert back.Translate_ranks() == [2, 1]
        assert back.Translate_ranks([0], MPI.COMM_SELF.group) == [
            0 if comm.rank == 2 else MPI.UNDEFINED
        ]
        session = MPI.Session.Init()
        assert world.Compare(session.Create_group("mpi://WORLD")) == MPI.IDENT
        own = MPI.Group.Create_from_session_pset(session, "mpi://self")
        assert own.Compare(MPI.COMM_SELF.group) == MPI.IDENT
        assert error_of(session.Create_group, "mpi://nobody") == MPI.ERR_ARG
        session.Finalize()

    sfm_kernel.run(program, 3)
