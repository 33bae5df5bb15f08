"""Names of transfers: each is used once, and tells which incarnation of a process sends."""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

_counter = itertools.count()
_own: WeakKeyDictionary[Endpoint, str] = WeakKeyDictionary()


def new_transfer(sfm: Endpoint) -> str:
    """A name that no other transfer has, of any process."""
    if sfm not in _own:
        _own[sfm] = getattr(sfm, "uid", None) or secrets.token_hex(16)
    return f"{_own[sfm][:12]}-{next(_counter)}"


def is_orphan(sfm: Endpoint, transfer: str, sender: Name) -> bool:
    """Whether another process has taken the sender's name, and knows nothing of this transfer.

    Never, as far as a context can tell: it does not know who is in the world.
    """
    if not hasattr(sfm, "members"):
        return False
    uids = [one.uid for one in sfm.members() if one.name == sender]
    return not any(uid.startswith(transfer.partition("-")[0]) for uid in uids)
