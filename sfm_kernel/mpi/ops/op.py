"""Op: what a reduction does with two values.

An operation is used in two ways: on objects, by ``python``, and on the elements of buffers, by what
``on_arrays(datatype)`` returns. Both are functions ``f(a, b)`` of two values that give a third one;
where the operation does not commute, ``a`` comes from the lower rank.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakSet

import numpy as np

from sfm_kernel.mpi.base.constants import ERR_BUFFER, ERR_OP
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfm_kernel.mpi.datatypes.datatype import Datatype

    OnArrays = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

MOST = 32
"""How many operations a program may have made at a time; mpi4py's limit, which programs rely on."""

UserFunction = Callable[[Any, Any, Any], Any]


class Operation(ABC):
    """What the handles of one operation share.

    Attributes:
        name: how it is called in texts.
        commute: whether ``f(a, b)`` is ``f(b, a)``.
        python: the operation on two objects.
    """

    name: str
    commute: bool
    python: Callable[[Any, Any], Any]

    @abstractmethod
    def on_arrays(self, datatype: Datatype) -> OnArrays:
        """The operation on the elements of two arrays, which are packed: what ``Elements.array``
        gives, or bytes.

        Raises:
            Exception: ERR_OP: it is not defined for elements of this type.
        """


class UserOperation(Operation):
    """An operation of the program.

    Args:
        function: called with two buffers and their datatype; it puts ``a op b`` into the second.
            With objects, None is given as the datatype, and what it returns is the result.
    """

    def __init__(self, function: UserFunction, commute: bool) -> None:
        self.function, self.commute = function, commute
        self.name = str(getattr(function, "__name__", None) or type(function).__name__)

    def python(self, a: Any, b: Any) -> Any:
        return self.function(a, b, None)

    def on_arrays(self, datatype: Datatype) -> OnArrays:
        """The function sees elements as they lie in memory; gaps between them have no meaning."""
        from sfm_kernel.mpi.buffers import Elements  # they import datatypes
        from sfm_kernel.mpi.buffers.buffer import buffer

        state, function = datatype._live, self.function

        def of_contiguous(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
            result = b.copy()
            if result.nbytes:
                function(buffer(a), buffer(result), datatype)
            return result

        def of_spread(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
            count = b.nbytes // state.size if state.size else 0
            if count == 0:
                return b
            low = min(0, state.true_lb)
            high = max(state.extent, state.true_lb + state.true_extent)
            spread = []
            for array in (a, b):
                memory = np.zeros((count - 1) * state.extent + high - low, np.uint8)
                elements = Elements(memory, datatype, count, -low)
                elements.put(0, array.view(np.uint8))
                spread.append(elements)
            part = slice(-low, count * state.extent - low)
            left, right = (buffer(one.memory[part]) for one in spread)
            function(left, right, datatype)
            return spread[1].get().view(b.dtype)

        return of_contiguous if state.contiguous else of_spread


_created: WeakSet[UserOperation] = WeakSet()


class Op(Handle[Operation]):
    """Reduction operation."""

    __slots__ = ()
    _null_error = ERR_OP

    @classmethod
    def Create(cls, function: UserFunction, commute: bool = False) -> Self:
        """An operation of the program.

        Args:
            function: called with two buffers (``MPI.buffer``) and their datatype, it puts ``a op
                b`` for each element into the second buffer. It must be associative. Called on
                objects (``allreduce`` …), its datatype is None, and it returns the result.
            commute: whether the order of the values has no meaning.
        Raises:
            RuntimeError: 32 of them exist: free one.
        """
        if not callable(function):
            raise AttributeError(f"an operation is a function of two values, not {function!r}")
        if len(_created) >= MOST:
            raise RuntimeError(
                f"{MOST} operations of the program exist: free those that are not needed (Op.Free)"
            )
        state = UserOperation(function, bool(commute))
        _created.add(state)
        return cls._of(state)

    def Free(self) -> None:
        """Free an operation of the program. Other handles of it go on working.

        Raises:
            Exception: ERR_OP: it is null or predefined.
        """
        state = self._live
        if not isinstance(state, UserOperation):
            fail(ERR_OP, f"MPI.{state.name} belongs to MPI: only what Op.Create made can be freed")
        _created.discard(state)
        self._state = None

    @property
    def python(self) -> Callable[[Any, Any], Any]:
        """The operation on two objects. Not in mpi4py."""
        return self._live.python

    def on_arrays(self, datatype: Datatype) -> OnArrays:
        """The operation on packed elements of two arrays. Not in mpi4py; see ``Operation``."""
        return self._live.on_arrays(datatype)

    def Is_commutative(self) -> bool:
        """Whether the order of the values has no meaning."""
        return self._live.commute

    @property
    def is_commutative(self) -> bool:
        """Whether the order of the values has no meaning."""
        return self.Is_commutative()

    @property
    def is_predefined(self) -> bool:
        """Whether it belongs to MPI; so does the null operation."""
        return not isinstance(self._state, UserOperation)

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:
        """Put ``inbuf op inoutbuf`` into ``inoutbuf``, element by element, in this process.

        Raises:
            Exception: ERR_OP: the operation is not defined for these elements.
        """
        from sfm_kernel.mpi.buffers import calls  # it imports datatypes

        state = self._live
        send, receive = calls.allreduce(inbuf, inoutbuf, _ALONE)
        if send is None or receive is None or send is receive:
            fail(ERR_BUFFER, "Reduce_local needs two buffers: give an inbuf that is not IN_PLACE")
        function = state.on_arrays(receive.datatype)
        if isinstance(state, UserOperation):
            receive.put(0, function(send.get(), receive.get()))
        else:
            receive.put_array(function(send.array(), receive.array()))

    def __call__(self, x: Any, y: Any) -> Any:
        """The operation on two objects."""
        if self._state is None:
            raise ValueError("the null operation has no result: use MPI.SUM, MPI.MAX, …")
        return self._state.python(x, y)

    def toint(self) -> int:
        """The same as ``tohandle``; -1 for an operation of the program, which C cannot call."""
        return -1 if isinstance(self._state, UserOperation) else super().toint()

    def _reduce_created(self) -> tuple[Any, tuple[Any, ...]]:
        state = self._live
        assert isinstance(state, UserOperation)
        return type(self).Create, (state.function, state.commute)


_ALONE = SimpleNamespace(rank=0, size=1, remote=None)


def undefined(op: Operation, datatype: Datatype, why: str) -> NoReturn:
    """Raise what an operation says to elements that it is not defined for."""
    fail(ERR_OP, f"MPI.{op.name} is not defined for elements of {datatype!r}: {why}")
