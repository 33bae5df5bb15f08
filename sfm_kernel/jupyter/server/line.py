"""The line to a world's directory server, of which a Jupyter server expects less patience.

A module of its own: it is imported when the first world needs it, since zmq's share of SFM takes
time to import.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.directory.client import Client
from sfm_kernel.relay.view import RemoteView

OPEN_SECONDS = 2.0
"""How long a directory server may take to answer for the first time."""


class Line(Client):
    """A ``Client`` that gives up after ``OPEN_SECONDS`` where no other limit is given.

    Attributes:
        view: what is seen through it.
    """

    def __init__(self, world: str, url: str, key: bytes) -> None:
        super().__init__(world, url, key)
        self.view = RemoteView(self)

    def ask(self, what: str, limit: float | None = None, **details: Any) -> dict[str, Any]:
        """The answer to one request; see ``Client.ask``."""
        return super().ask(what, OPEN_SECONDS if limit is None else limit, **details)
