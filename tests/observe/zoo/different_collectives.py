"""Two members of a group are in different calls: the calls themselves notice, and say it."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    group = Group(sfm)
    if sfm.name == "A":
        group.barrier()
    else:
        group.bcast(None, root=0)


FILE = "different_collectives.py"
RAISES = (
    f"CollectiveMismatch: the members of the group that was made in {FILE}, line 9 have to make",
    f"'A': barrier(by flags) in {FILE}, line 11 (program)",
    f"'B': bcast(root=0, by linear) in {FILE}, line 13 (program)",
)
