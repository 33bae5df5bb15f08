"""Guards steps that must not be left incomplete: Stop (KeyboardInterrupt) can end any call
anywhere."""

from __future__ import annotations

from collections.abc import Callable

from sfm_kernel.errors import PeerLost, SFMError


class Atomic:
    """``with atomic:`` around steps that belong together. If they are interrupted, this node is
    broken.

    A node that has counted a message and not returned it, or has notified only some nodes that it
    entered a barrier, would make all others wait for ever. It therefore takes no further part, and
    notifies them, whatever has ended the steps; except PeerLost, which is raised after the steps.

    Args:
        title: the node in words.
        notify: sends the reason to the others; must not raise.
    Attributes:
        broken: the name of the error that has interrupted the steps; "" if none has.
    """

    def __init__(self, title: str, notify: Callable[[str], None]) -> None:
        self._title, self._notify = title, notify
        self.broken = ""

    def check(self) -> None:
        """Raises SFMError if this node is broken."""
        if self.broken:
            raise SFMError(
                f"{self._title} takes no further part, since {self.broken} has ended a call in the "
                f"middle of its work on messages, and some may be lost: call start_up again on all "
                f"nodes"
            )

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, PeerLost) or self.broken:
            return
        self.broken = kind.__name__
        self._notify(
            f"{kind.__name__} has ended a call of it in the middle, and it takes no further part. "
            f"Call start_up again on all nodes"
        )
