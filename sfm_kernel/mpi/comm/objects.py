"""Collectives of objects: ``bcast``, ``gather``, ``allreduce`` …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.base.pickles import pickle
from sfm_kernel.mpi.comm import plans, quick
from sfm_kernel.mpi.comm.driver import PyOp, blocking, members_at_once, tell
from sfm_kernel.mpi.ops.op import Op
from sfm_kernel.mpi.ops.predefined import SUM


class ObjectCollectives:
    """What all members of a communicator call together, with objects; for ``Comm``.

    Objects are anything that can be pickled. What is returned is a copy, and the caller's own.
    """

    __slots__ = ()

    barrier = quick.barrier

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object, on all members."""
        return blocking(self, plans.bcast_object, obj, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """The objects of all members, by rank, at the root; None elsewhere."""
        objects: list[Any] | None = blocking(self, plans.gather_objects, sendobj, root)
        return objects

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """The own one of the root's objects, of which it gives one for each rank.

        Raises:
            ValueError: at the root: there are more or fewer.
        """
        return blocking(self, plans.scatter_objects, sendobj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """The objects of all members, by rank."""
        objects: list[Any] = blocking(self, plans.allgather_objects, sendobj)
        return objects

    def alltoall(self, sendobj: Sequence[Any] | None) -> list[Any]:
        """Of each member the object that it gave for this rank; each gives one for each rank.

        None stands for as many None.

        Raises:
            ValueError: there are more or fewer.
        """
        objects: list[Any] = blocking(self, plans.alltoall_objects, sendobj)
        return objects

    def reduce(self, sendobj: Any, op: Op | PyOp = SUM, root: int = 0) -> Any | None:
        """The objects of all members combined, in the order of their ranks; None elsewhere."""
        return blocking(self, plans.reduce_objects, sendobj, op, root)

    def allreduce(self, sendobj: Any, op: Op | PyOp = SUM) -> Any:
        """The objects of all members combined, in the order of their ranks."""
        if (sendobj.__class__ is float or sendobj.__class__ is int) and pickle.is_default:
            try:
                members = members_at_once(self)
                if members is not None:
                    return members.allreduce(sendobj, plans.on_objects(op))
            except SFMError as error:
                tell(self, error)
        return blocking(self, plans.allreduce_objects, sendobj, op)
