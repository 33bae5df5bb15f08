"""What may only happen as a whole, though Stop (KeyboardInterrupt) can end any call anywhere."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from sfm_kernel.errors import PeerLost, SFMError


class Whole:
    """``with whole:`` around steps of which none may be missing; else this node is broken.

    A node that has counted a message and not returned it, or told half of the others that it is at
    a barrier, would make all of them wait for ever. So it takes no further part and tells them,
    whatever has ended the steps; but for PeerLost, which is raised when they are done.

    Args:
        who: who is broken then. tell: tells the others why; must not raise.
    """

    def __init__(self, who: str, tell: Callable[[str], None]) -> None:
        self._who, self._tell = who, tell
        self.broken = ""

    def check(self) -> None:
        """Raises SFMError if this node is broken."""
        if self.broken:
            raise SFMError(
                f"{self._who} takes no further part, since {self.broken} has ended a call in the "
                f"middle of its work on messages, and some may be lost: call start_up again on all "
                f"nodes"
            )

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or issubclass(kind, PeerLost) or self.broken:
            return
        self.broken = kind.__name__
        self._tell(
            f"{kind.__name__} has ended a call of it in the middle, and it takes no further part. "
            f"Call start_up again on all nodes"
        )
