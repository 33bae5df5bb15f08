"""What one Jupyter server needs for its panel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sfm_kernel.jupyter.server.elsewhere import Doors
from sfm_kernel.jupyter.server.hub import Hub
from sfm_kernel.jupyter.server.keepers import Keepers
from sfm_kernel.jupyter.server.listing import Listing
from sfm_kernel.jupyter.server.worlds import Worlds

if TYPE_CHECKING:
    from sfm_kernel.classroom.board import Board

_THREADS = 4
"""Some worlds may make their reader wait: those with processes that are stopped."""


class Service:
    """The parts, connected. To be closed when the server ends."""

    def __init__(self, app: Any) -> None:
        self.executor = ThreadPoolExecutor(_THREADS, "sfm-read")  # no thread before it is needed
        self.doors = Doors(app.log)
        self.worlds = Worlds(self.doors)
        self.keepers = Keepers(app.log)
        self.listing = Listing(app, self.worlds, self.keepers.clusters, self.executor)
        self.board: Board | None = None  # of the class that is open here
        self.hub = Hub(self.worlds, self.listing.entries, self.executor, app.log)

    def close(self) -> None:
        """Let go of directory servers. The rest ends with the process."""
        self.doors.close()
