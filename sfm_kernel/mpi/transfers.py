"""Names of transfers: each is used once, and identifies the incarnation of the sending process."""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

_counter = itertools.count()
_prefixes: WeakKeyDictionary[Endpoint, str] = WeakKeyDictionary()


def new_transfer(sfm: Endpoint) -> str:
    """A name that no other transfer of any process has."""
    if sfm not in _prefixes:
        _prefixes[sfm] = getattr(sfm, "uid", None) or secrets.token_hex(16)
    return f"{_prefixes[sfm][:12]}-{next(_counter)}"


def is_orphan(sfm: Endpoint, transfer: str, sender: Name) -> bool:
    """Whether the sender is dead and another process, which does not know this transfer, has its
    name. False for a context, which does not know the members of the world.
    """
    if not hasattr(sfm, "members"):
        return False
    uids = [member.uid for member in sfm.members() if member.name == sender]
    return not any(uid.startswith(transfer.partition("-")[0]) for uid in uids)
