"""Collectives: calls that all members of a group make together.

    >>> from sfm_kernel.collectives import Group
    >>> def program(sfm):
    ...     group = Group(sfm)
    ...     return group.allreduce(sfm.rank + 1), group.allgather(sfm.rank * 10)
    >>> sfm_kernel.run(program, n=3)
    [(6, [0, 10, 20]), (6, [0, 10, 20]), (6, [0, 10, 20])]

group        Group: the calls
meeting      how processes become a group
team         what the members of a group share: numbers of calls, failures, liveness
call         one call under way: its messages, and what must be equal everywhere
operations   what a reduction does with two values
choice       which algorithm, where the caller names none

One algorithm a file, each with its source, the messages that it takes and its depth (the longest
chain of messages that wait for each other):

linear       the root talks with everybody in turn
binomial     a tree in which everybody passes on what he has
doubling     in step k everybody talks with who is 2^k away
ring         arrays in parts, each goes round
rabenseifner arrays, halved in each step, then doubled again
sparse       everybody talks with those whom it names
flags        memory that the members share: no messages at all
direct       everybody tells everybody at once: between few sites
two_level    flags inside each machine, messages between one representative of each; so of sites
levels       which members are near each other: machines and sites
"""

from sfm_kernel.collectives.choice import ALGORITHMS
from sfm_kernel.collectives.group import Group

__all__ = ["ALGORITHMS", "Group"]
