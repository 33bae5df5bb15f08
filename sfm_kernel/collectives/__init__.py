"""Collectives: calls that all members of a group make together.

    >>> from sfm_kernel.collectives import Group
    >>> def program(sfm):
    ...     group = Group(sfm)
    ...     return group.allreduce(sfm.rank + 1), group.allgather(sfm.rank * 10)
    >>> sfm_kernel.run(program, n=3)
    [(6, [0, 10, 20]), (6, [0, 10, 20]), (6, [0, 10, 20])]

group        Group: the calls
meeting      makes a group of processes
made         a call in words
team         numbers of calls, failures and liveness of a group's members
call         one call under way: its messages and rounds, and checks that all members make the same
operations   the operations of reductions
choice       chooses an algorithm if the caller names none

Each algorithm has a file with its source, its number of messages and its depth (the longest chain
of messages that wait for each other):

linear       the root sends to every other member in turn
binomial     a tree in which each member passes on what it has received
doubling     in step k each member talks with the member 2^k ranks away
ring         each chunk of an array travels round the members
rabenseifner arrays are halved in each step, then collected by doubling
sparse       each member talks only with the members that it names
flags        memory that the members share, no messages
direct       each member sends to all others at once: between few sites
two_level    flags within each machine, messages between machines, and between sites
levels       which members share a machine or a site
"""

from sfm_kernel.collectives.choice import ALGORITHMS
from sfm_kernel.collectives.group import Group

__all__ = ["ALGORITHMS", "Group"]
