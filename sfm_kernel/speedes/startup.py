"""Starts a group of nodes.

Source: the paper of ``sfm_kernel.speedes``, section 2.1.
"""

from __future__ import annotations

import operator
import os
import tomllib
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.collectives import Group
from sfm_kernel.speedes.comm import SpeedesComm

if TYPE_CHECKING:
    from sfm_kernel.directory import Member, Name
    from sfm_kernel.endpoint import Endpoint

START_SECONDS = 60.0

_started: weakref.WeakKeyDictionary[Endpoint, dict[int, _Start]]
_started = weakref.WeakKeyDictionary()
"""Endpoint -> group id -> the last start of the group."""


class _Start(NamedTuple):
    session: int
    """The number of times that the group was started."""
    comm: weakref.ref[SpeedesComm]


def start_up(
    sfm: Endpoint,
    local_nodes: int = 0,
    total_nodes: int = 0,
    group_id: int = 0,
    infile: str | os.PathLike[str] | None = None,
    *,
    nodes: Sequence[Name] | None = None,
    timeout: float = START_SECONDS,
) -> SpeedesComm:
    """Make this process a node of a group. Every node of the group calls it, with the same values.

    A value that is 0 is read from the input file, if there is one. If the file does not have it
    either, the default applies: all processes of the world that have a rank, those of them on this
    machine, and group 0. The file is TOML:

        local_nodes = 4     # nodes on this machine
        total_nodes = 8     # nodes on all machines
        group_id = 7

    Groups with different ids are independent. Starting a group again drops the messages of the
    earlier start. (The paper's call forks the processes of the nodes; this one uses processes of
    the world, each with its endpoint.)

    Blocks: until all nodes have called it.
    Args:
        sfm: this process's endpoint.
        local_nodes: number of nodes on this machine, which is checked. Nodes that share memory are
            on one machine.
        total_nodes: number of nodes on all machines.
        group_id: the id of the group, 0 or more.
        infile: path of the input file.
        nodes: names or ranks of the processes, by node. None: all that have a rank, by rank.
        timeout: seconds to wait for processes to join.
    Raises:
        ValueError, TypeError: a value is wrong, or contradicts another value or the world; or the
            input file is not valid.
        FileNotFoundError: there is no such input file.
        RecvTimeout: processes have not joined within ``timeout`` seconds.
        PeerLost: a process has died.
    Source: ``void SpComm_StartUp(int localNodes, int totalNodes, int groupID, char *infile)``,
        section 2.1.
    Example:
        >>> with sfm_kernel.join("speedes-doc") as sfm, start_up(sfm) as comm:
        ...     comm.get_node_id(), comm.get_num_nodes(), comm.global_sum(2.5)
        (0, 1, 2.5)
    """
    given = {"local_nodes": local_nodes, "total_nodes": total_nodes, "group_id": group_id}
    values = {name: _count(name, value) for name, value in given.items()}
    if infile is not None:
        read = _read(infile)
        values = {name: value or read[name] for name, value in values.items()}
    group_id = values["group_id"]
    members = _members(sfm, values["total_nodes"], nodes, timeout)
    node = next((n for n, member in enumerate(members) if member.name == sfm.name), None)
    if node is None:
        names = [member.name for member in members]
        raise ValueError(f"process {sfm.name!r} is none of the group's nodes, which are {names}")
    local = [n for n, member in enumerate(members) if n == node or sfm.shares_memory_with(member)]
    _check_local(values["local_nodes"], len(local), len(members))

    started = _started.setdefault(sfm, {})
    session = 0
    if group_id in started:
        session = started[group_id].session
        if (earlier := started[group_id].comm()) is not None:
            earlier.close()
    group = Group(sfm, [member.name for member in members], name=f"speedes {group_id}")
    # A node may have started it more times, after an interrupt or alone.
    agreed = group.allgather((session + 1, local[0]))
    session = max(number for number, _ in agreed)
    comm = SpeedesComm(sfm, group, group_id, session, members, [first for _, first in agreed])
    started[group_id] = _Start(session, weakref.ref(comm))
    return comm


def _members(
    sfm: Endpoint, total: int, nodes: Sequence[Name] | None, timeout: float
) -> list[Member]:
    """Wait until the processes of the nodes have joined, and return them."""
    names = range(total or sfm.size) if nodes is None else list(nodes)
    if total and nodes is not None and len(names) != total:
        raise ValueError(f"total_nodes is {total}, and there are {len(names)} names in {nodes!r}")
    if not names:
        raise ValueError("a group has at least one node")
    sfm.wait_for(*names, timeout=timeout)
    present = sfm.members()
    known: dict[Name, Member] = {
        member.rank: member for member in present if member.rank is not None
    }
    known |= {member.name: member for member in present}
    ranked = [member for member in present if member.rank is not None and sfm.alive(member)]
    if nodes is None and len(ranked) > len(names):
        raise ValueError(
            f"the world has {len(ranked)} ranked processes, and the group is to have {total} "
            f"nodes: say which, nodes=[0, 1, …]"
        )
    members = [known[name] for name in names]
    if len({member.uid for member in members}) < len(members):
        raise ValueError(f"a process is named twice in {nodes!r}")
    return members


def _check_local(given: int, local: int, total: int) -> None:
    if given > total:
        raise ValueError(f"local_nodes is {given}, more than the {total} nodes in all")
    if given and given != local:
        raise ValueError(
            f"local_nodes is {given}, and {local} of the {total} nodes are on this machine: give "
            f"that number, or 0"
        )


def _count(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{name} is 0 or more, not {number}")
    return number


def _read(infile: str | os.PathLike[str]) -> dict[str, int]:
    """The values of an input file; 0 for those that it does not have."""
    path = os.fspath(infile)
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no input file {path!r} (looked in {os.getcwd()}): write one with "
            f"local_nodes, total_nodes and group_id, or give these to start_up"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"the input file {path!r} is no TOML: {error}. Write lines such as total_nodes = 4"
        ) from None
    values = dict.fromkeys(("local_nodes", "total_nodes", "group_id"), 0)
    if unknown := sorted(set(found) - set(values)):
        raise ValueError(
            f"the input file {path!r} has {unknown[0]!r}, which is none of {', '.join(values)}"
        )
    try:
        return values | {name: _count(name, value) for name, value in found.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"the input file {path!r}: {error}") from None
