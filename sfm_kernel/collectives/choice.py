"""Which algorithm a call uses, where its caller names none.

By what is known everywhere alike: whether all members share memory, at how many sites they are,
how many they are, and, for reductions (whose arrays are equal in shape), bytes. A member that chose
otherwise would wait for messages that nobody sends.
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
"""Algorithms that reduce arrays in parts: with ufuncs only."""

LARGE = 1 << 16
"""Bytes from which on the time of an allreduce is that of its bytes, and arrays are cut."""


MANY = 1 << 20
"""Bytes of all members from which on they take longer than to cross the way between sites again."""


def choose(call: str, local: bool, sites: int, size: int, nbytes: int | None, op: Op | None) -> str:
    """The algorithm for a call.

    Args:
        local: all members share memory.
        sites: where the members are, and size: how many they are.
        nbytes: of the arrays that all members give alike; None for other values.
    """
    if local and call in ("barrier", "allreduce", "allgather"):
        return "flags"
    # The way between sites is crossed once; but a scan carries what all members have.
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
    """The algorithm that the caller has named, if it can do this. Raises ValueError."""
    known = ALGORITHMS[call]
    if algorithm not in known:
        raise ValueError(f"{call} has no algorithm {algorithm!r}; there are {', '.join(known)}")
    if algorithm == "flags" and not local:
        raise ValueError("flags are memory that all members share, and these do not: two-level")
    if call == "allreduce" and algorithm in CUTTING and not cuttable:
        raise ValueError(
            f"{algorithm} cuts arrays into parts: give NumPy arrays and a ufunc such as numpy.add"
        )
    return algorithm
