"""Late messages of transfers that were interrupted: each call drops those that have arrived.

A process that is interrupted in a transfer cannot wait for the last chunks or acknowledgements of
the other side. No call would receive them, and they would stay in the inbox.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sfm_kernel.errors import PeerLost, WouldBlock

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

Template = dict[str, Any]
"""Matches the late messages of one transfer, up to the message whose ``last`` is true."""

_expected: WeakKeyDictionary[Endpoint, list[Template]] = WeakKeyDictionary()


def drop_later(sfm: Endpoint, template: Template) -> None:
    """Let later calls drop the messages that match."""
    _expected.setdefault(sfm, []).append(template)


def drop_now(sfm: Endpoint, template: Template) -> None:
    """Wait for the messages that match, and drop them. After an interrupt, later calls do it."""
    try:
        with suppress(PeerLost):  # a dead sender's messages have all arrived
            while not sfm.recv(**template).last:
                pass
    except BaseException:
        drop_later(sfm, template)
        raise


def drop_arrived(sfm: Endpoint, template: Template) -> bool:
    """Drop the messages that have arrived; returns whether none will follow."""
    try:
        while not sfm.recv_nb(**template).last:
            pass
    except WouldBlock:
        return False
    except PeerLost:
        pass
    return True


def tidy(sfm: Endpoint) -> None:
    """Drop the late messages of all such transfers that have arrived."""
    for template in list(_expected.get(sfm, ())):
        if drop_arrived(sfm, template):
            with suppress(ValueError):  # another thread has removed it
                _expected[sfm].remove(template)
