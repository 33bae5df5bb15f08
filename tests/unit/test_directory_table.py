"""The slot, rank and name that a newcomer gets."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from sfm_kernel._native import MAX_DEPARTED, MAX_MEMBERS
from sfm_kernel.directory import JoinRequest, Member, Table
from sfm_kernel.errors import BadName, NameInUse, WorldError, WorldFull


class Members:
    """A table, and its living members."""

    def __init__(self) -> None:
        self.table, self.dead = Table(), set[str]()

    def join(self, **join_request: Any) -> Member:
        asked = JoinRequest(
            secrets.token_hex(16), 1, "here", "/s", "tcp://127.0.0.1:1", **join_request
        )
        return self.table.admit(asked, lambda member: member.uid not in self.dead)

    def kill(self, *members: Member) -> None:
        self.dead |= {member.uid for member in members}


def test_ranks_count_from_zero_and_are_names() -> None:
    world = Members()
    joined = [world.join() for _ in range(3)]
    assert [(new.rank, new.name, new.slot) for new in joined] == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert world.table.members == joined


def test_names_go_with_ranks() -> None:
    world = Members()
    assert [world.join(names=("A", "B")).name for _ in range(3)] == ["A", "B", 2]


def test_a_name_of_the_list_brings_its_rank() -> None:
    world = Members()
    assert world.join(name="B", names=("A", "B")).rank == 1
    assert world.join(names=("A", "B")).name == "A"


def test_a_rank_whose_name_is_taken_is_passed_over() -> None:
    world = Members()
    assert world.join(name="B").rank == 0
    assert world.join(names=("A", "B", "C")).name == 2 or world.table.members[1].name == "C"


def test_a_number_as_name_is_a_rank() -> None:
    world = Members()
    assert world.join(name=3).rank == 3
    assert world.join(rank=5).name == 5


@pytest.mark.parametrize("join_request", [{"name": "A"}, {"rank": 0}, {"name": 0}])
def test_a_living_process_keeps_its_name_and_rank(join_request: dict[str, Any]) -> None:
    world = Members()
    world.join(name="A", rank=0)
    with pytest.raises(NameInUse, match=r"living process \(pid 1 on here\)"):
        world.join(**join_request)
    assert len(world.table.members) == 1


def test_a_restarted_process_gets_name_and_rank_of_the_dead() -> None:
    world = Members()
    world.join(name="A")
    dead = world.join(name="B")
    world.join(name="C")
    world.kill(dead)
    again = world.join(name="B")
    assert (again.name, again.rank) == ("B", 1)
    assert again.slot == 3  # not the dead one's, whose last messages may not be read yet
    assert dead not in world.table.members


def test_a_restarted_process_without_name_gets_the_hole() -> None:
    world = Members()
    ranks = [world.join() for _ in range(4)]
    world.kill(ranks[1], ranks[2])
    assert [world.join().rank for _ in range(3)] == [1, 2, 4]


def test_the_dead_stay_until_they_are_replaced() -> None:
    world = Members()
    dead = world.join(name="A")
    world.kill(dead)
    world.join(name="B", rank=7)
    assert dead in world.table.members
    world.join()  # takes rank 0
    assert dead not in world.table.members


def test_guests_have_no_rank_and_are_called_home() -> None:
    world = Members()
    home, second = world.join(guest=True), world.join(guest=True)
    assert (home.name, home.rank) == ("home", None) and second.name == "home2"
    assert second.rank is None
    world.kill(home)
    assert world.join(guest=True).name == "home"
    assert world.join(guest=True, name="visitor").rank is None
    assert world.join().rank == 0


def test_a_full_world() -> None:
    world = Members()
    everybody = [world.join() for _ in range(MAX_MEMBERS)]
    assert {member.slot for member in everybody} == set(range(MAX_MEMBERS))
    with pytest.raises(WorldFull, match=str(MAX_MEMBERS)):
        world.join()
    world.kill(everybody[10])
    late = world.join(name="late", rank=1000)  # the dead one makes room
    assert late.slot == 10
    assert len(world.table.members) == MAX_MEMBERS


@pytest.mark.parametrize(
    "join_request",
    [
        {"name": ""},
        {"name": "x" * 65},
        {"name": "a\nb"},
        {"name": 1.5},
        {"name": True},
        {"name": -1},
        {"name": ["A"]},
        {"rank": -1},
        {"rank": "0"},
        {"rank": True},
        {"name": 1, "rank": 2},
        {"guest": True, "rank": 1},
        {"guest": True, "name": 1},
        {"names": ("A", "")},
    ],
)
def test_invalid_names_and_ranks_are_refused(join_request: dict[str, Any]) -> None:
    with pytest.raises(BadName):
        Members().join(**join_request)


def test_info_travels_as_json() -> None:
    world = Members()
    world.join(info={"engine": [1, "x"]})
    assert Table.loads(world.table.dumps()).members[0].info == {"engine": [1, "x"]}
    with pytest.raises(TypeError, match="info"):
        world.join(info={"engine": object()})


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"members": [{}], "next_slot": 0, "departed": []}']
)
def test_a_damaged_table_says_so(text: bytes) -> None:
    with pytest.raises(WorldError, match="clean"):
        Table.loads(text)


def test_departed_processes_are_listed_once_by_name() -> None:
    world = Members()
    for n in range(3 * MAX_DEPARTED):
        world.table.remove(world.join(name=f"p{n % (2 * MAX_DEPARTED)}", info={"n": n}).uid)
        last = world.join(name="again").uid
        world.table.remove(last)
    departed = Table.loads(world.table.dumps()).departed
    assert len({member.name for member in departed}) == len(departed) == MAX_DEPARTED
    assert departed[-1].uid == last
    assert all(member.info == {} for member in departed)
