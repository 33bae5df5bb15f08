"""Chooses the algorithm of a call if its caller names none.

The choice depends only on facts that all members know alike: whether all share memory, the number
of sites, the number of members and, for reductions (whose arrays are equal in shape), the number of
bytes. A member that chose differently would wait for messages that no member sends.
"""

from __future__ import annotations

from sfm_kernel.collectives.operations import Op, is_elementwise

ALGORITHMS: dict[str, tuple[str, ...]] = {
    "barrier": ("flags", "linear", "binomial", "recursive doubling", "two-level"),
    "bcast": ("flags", "linear", "binomial", "ring", "two-level"),
    "reduce": ("flags", "linear", "binomial", "two-level"),
    "allreduce": (
        "flags",
        "linear",
        "binomial",
        "recursive doubling",
        "ring",
        "rabenseifner",
        "two-level",
    ),
    "gather": ("flags", "linear", "binomial", "two-level"),
    "scatter": ("linear", "binomial", "two-level"),
    "allgather": ("flags", "linear", "binomial", "recursive doubling", "ring", "two-level"),
    "alltoall": ("linear", "ring"),
    "scan": ("flags", "linear", "recursive doubling", "two-level"),
}
"""The algorithms of each call, by name."""

CUTTING = ("ring", "rabenseifner")
"""Algorithms that cut arrays into chunks: they need ufuncs."""

LARGE = 1 << 16
"""Bytes of an array from which its size determines the time of an allreduce, and it is cut."""

MANY = 1 << 20
"""Bytes of all members together from which sending them takes longer than a second crossing between
sites."""


def choose(call: str, local: bool, sites: int, size: int, nbytes: int | None, op: Op | None) -> str:
    """The algorithm for a call.

    Args:
        local: whether all members share memory.
        sites: number of sites at which the members are.
        size: number of members.
        nbytes: bytes of the array that each member gives; None for other values.
    """
    if local and call in ("barrier", "allreduce", "allgather"):
        return "flags"
    # "two-level" crosses between sites once; but a scan then carries the values of all members.
    carried = nbytes * size if call == "scan" and nbytes is not None else 0
    if not local and sites > 1 and carried < MANY and "two-level" in ALGORITHMS[call]:
        return "two-level"
    if call == "alltoall":
        return "ring"
    if call in ("bcast", "reduce", "gather", "scatter"):
        return "binomial" if size > 2 else "linear"
    large = call == "allreduce" and nbytes is not None and nbytes >= LARGE
    if large and op is not None and is_elementwise(op):
        return "rabenseifner" if size & (size - 1) == 0 else "ring"
    return "recursive doubling"


def check(call: str, algorithm: str, local: bool, cuttable: bool) -> str:
    """The algorithm that the caller has named. Raises ValueError if it cannot make this call."""
    known = ALGORITHMS[call]
    if algorithm not in known:
        raise ValueError(f"{call} has no algorithm {algorithm!r}; it has {', '.join(known)}")
    if algorithm == "flags" and not local:
        raise ValueError("flags need memory that all members share: use two-level instead")
    if call == "allreduce" and algorithm in CUTTING and not cuttable:
        raise ValueError(
            f"{algorithm} cuts arrays into chunks: give NumPy arrays and a ufunc such as numpy.add"
        )
    return algorithm
