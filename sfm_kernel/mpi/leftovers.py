"""What still comes of transfers that are over here: each call drops what has come meanwhile.

Who is interrupted in a transfer cannot wait for the other side, whose last chunks or
acknowledgements are on their way. Nobody would receive them, and they would stay in the inbox.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sfm_kernel.errors import PeerLost, WouldBlock

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

Template = dict[str, Any]
"""Matches all that still comes of one transfer, up to a message whose ``last`` is true."""

_expected: WeakKeyDictionary[Endpoint, list[Template]] = WeakKeyDictionary()


def drop_later(sfm: Endpoint, template: Template) -> None:
    """Let later calls drop what comes."""
    _expected.setdefault(sfm, []).append(template)


def drop_now(sfm: Endpoint, template: Template) -> None:
    """Wait until all has come, and drop it. If the wait is interrupted, later calls do it."""
    try:
        with suppress(PeerLost):  # then all that will ever come has come
            while not sfm.recv(**template).last:
                pass
    except BaseException:
        drop_later(sfm, template)
        raise


def drop_what_came(sfm: Endpoint, template: Template) -> bool:
    """Drop what has come; whether that is all that will come."""
    try:
        while not sfm.recv_nb(**template).last:
            pass
    except WouldBlock:
        return False
    except PeerLost:
        pass
    return True


def tidy(sfm: Endpoint) -> None:
    """Drop what has come of all those transfers."""
    for template in list(_expected.get(sfm, ())):
        if drop_what_came(sfm, template):
            with suppress(ValueError):  # another thread was faster
                _expected[sfm].remove(template)
