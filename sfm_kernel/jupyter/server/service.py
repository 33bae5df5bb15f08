"""What one Jupyter server needs for its panel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from traitlets import Bool, Float
from traitlets.config import Configurable

from sfm_kernel.jupyter.idle import notes
from sfm_kernel.jupyter.server.elsewhere import Doors
from sfm_kernel.jupyter.server.hub import Hub
from sfm_kernel.jupyter.server.keepers import Keepers
from sfm_kernel.jupyter.server.listing import Listing
from sfm_kernel.jupyter.server.worlds import Worlds
from sfm_kernel.jupyter.settings import Settings

if TYPE_CHECKING:
    from sfm_kernel.classroom.board import Board

_THREADS = 4
"""Some worlds may make their reader wait: those with processes that are stopped."""


class SFMPanel(Configurable):
    """What the panel in JupyterLab may do; limits of the engines that it starts are SFM's."""

    starts = Bool(True, help="Whether engines can be started in the panel.").tag(config=True)
    rate = Float(20.0, min=1.0, help="Updates a second that a browser gets at most.").tag(
        config=True
    )


class Service:
    """The parts, connected. To be closed when the server ends.

    Attributes:
        panel: what the server's configuration says of the panel.
    """

    def __init__(self, app: Any) -> None:
        self.panel = SFMPanel(parent=app)
        self.executor = ThreadPoolExecutor(_THREADS, "sfm-read")  # no thread before it is needed
        self.doors = Doors(app.log)
        self.worlds = Worlds(self.doors)
        self.keepers = Keepers(app.log, lambda: Settings(app.config).environment())
        self.listing = Listing(app, self.worlds, self.keepers.clusters, self.executor)
        self.board: Board | None = None  # of the class that is open here
        self.hub = Hub(self.worlds, self.listing.entries, self.executor, app.log, notes)

    def close(self) -> None:
        """Let go of directory servers. The rest ends with the process."""
        self.doors.close()
        self.keepers.close()
