"""Two members of a group are in different calls: the calls themselves notice, and say it."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    group = Group(sfm)
    if sfm.name == "A":
        group.barrier()
    else:
        group.bcast(None, root=0)


RAISES = "CollectiveMismatch", "'A': barrier(", "'B': bcast("
