"""How objects become bytes: ``MPI.pickle``, whose functions a program may change."""

from __future__ import annotations

import os
import pickle as python
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers.buffer import buffer

PROTOCOL = python.HIGHEST_PROTOCOL
THRESHOLD = 2**18
"""The defaults, unless the environment has others."""

Dumps = Callable[..., bytes]
Loads = Callable[..., Any]


def _ignored() -> None:
    """Nobody has to know of changes."""


class Pickle:
    """Makes bytes of objects, and objects of bytes.

    Args:
        dumps: a function of an object and, unless ``protocol`` is None, the protocol.
        loads: its inverse.
        protocol: None for the default: of ``pickle.dumps``, the highest; of others, none is given.
        threshold: how many bytes a buffer inside an object must have for ``dumps_oob`` to leave it
            out.

    ``is_default`` tells that nothing was changed. Objects then travel as all objects of SFM do,
    without becoming a text of bytes in between.
    """

    _dumps: Dumps = staticmethod(python.dumps)
    _loads: Loads = staticmethod(python.loads)
    _protocol: int | None
    _threshold: int
    is_default = True
    changed: Callable[[], None] = staticmethod(_ignored)
    """Called when ``is_default`` may have changed."""

    def __init__(
        self,
        dumps: Dumps | None = None,
        loads: Loads | None = None,
        protocol: int | None = None,
        threshold: int | None = None,
    ) -> None:
        self._dumps = python.dumps if dumps is None else dumps
        self._loads = python.loads if loads is None else loads
        self.THRESHOLD = threshold
        self.PROTOCOL = protocol

    def dumps(self, obj: Any) -> bytes:
        """The object as bytes."""
        if self._protocol is None:
            return self._dumps(obj)
        return self._dumps(obj, self._protocol)

    def loads(self, data: Any) -> Any:
        """The object that the bytes stand for."""
        return self._loads(data)

    def dumps_oob(self, obj: Any) -> tuple[bytes, list[buffer]]:
        """The object as bytes, and the large buffers in it, which are not copied."""
        from sfm_kernel.mpi.buffers.buffer import buffer  # it imports datatypes, which are pickled

        buffers: list[buffer] = []

        def leave_in(found: python.PickleBuffer) -> bool:
            one = buffer.frombuffer(found, readonly=found.raw().readonly)
            if one.nbytes < self._threshold:
                return True
            buffers.append(one)
            return False

        protocol = max(PROTOCOL if self._protocol is None else self._protocol, 5)
        return self._dumps(obj, protocol, buffer_callback=leave_in), buffers

    def loads_oob(self, data: Any, buffers: Iterable[Any]) -> Any:
        """The object that bytes and buffers of ``dumps_oob`` stand for; it uses the buffers."""
        return self._loads(data, buffers=buffers)

    @property
    def PROTOCOL(self) -> int | None:
        """The protocol; None: the function is given none. Set None for the default."""
        return self._protocol

    @PROTOCOL.setter
    def PROTOCOL(self, protocol: int | None) -> None:
        if protocol is None and self._dumps is python.dumps:
            protocol = PROTOCOL
        self._protocol = protocol
        self.is_default = (self._dumps, self._loads, protocol) == (
            python.dumps,
            python.loads,
            PROTOCOL,
        )
        self.changed()

    @property
    def THRESHOLD(self) -> int:
        """Buffers of fewer bytes stay in the object. Set None for the default."""
        return self._threshold

    @THRESHOLD.setter
    def THRESHOLD(self, threshold: int | None) -> None:
        self._threshold = THRESHOLD if threshold is None else threshold


pickle = Pickle()


def read_environment() -> None:
    """Take the defaults from the environment, as it is when MPI is imported."""
    global PROTOCOL, THRESHOLD
    PROTOCOL = int(os.environ.get("MPI4PY_PICKLE_PROTOCOL") or PROTOCOL)
    THRESHOLD = int(os.environ.get("MPI4PY_PICKLE_THRESHOLD") or THRESHOLD)
    pickle.PROTOCOL = None
    pickle.THRESHOLD = None
