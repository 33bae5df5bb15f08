"""The Jupyter server's extension: it shows this user's worlds while their processes are blocked.

It reads the segments in shared memory itself and asks neither kernels nor engines, so that the
picture stays live whatever they do. Of processes on other machines their relays tell, through the
world's directory server, while somebody watches that world. Authenticated REST calls and a
websocket, ``sfm/stream``, lead here; ``observe/schema.json`` says what the websocket's texts look
like.

    handlers    the REST calls
    stream      the websocket
    service     puts together what follows
    hub         who watches what; one reader for each world that is watched
    reader      reads one world for all who watch it
    client      what one websocket still has to send
    worlds      the worlds of this user, each with its newest picture
    listing     the list of worlds: whose they are, and how many run
    origin      which cluster or kernel a world belongs to
    elsewhere   processes on other machines, which directory servers tell of
    line        the connection to one of those
    programs    the line that runs a program of the file browser
    classroom   a class's page, behind this server's authentication
    signals     interrupts processes, and never a stranger
    kernels     how this server's kernels are reached
    keepers     the clusters that were started from here
    keeper      the process that holds one of them
"""

from __future__ import annotations

import atexit
from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """What jupyter_server asks a package for."""
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the handlers to a server that starts."""
    from sfm_kernel.jupyter.server import classroom, handlers, kernels, service, stream

    one = service.Service(app)
    atexit.register(one.close)  # an extension without an app is not told that the server ends
    routes = [*handlers.routes(app.base_url, one), *classroom.routes(app.base_url, one)]
    app.web_app.add_handlers(".*$", [*routes, stream.route(app.base_url, one)])
    kernels.protect(app.kernel_manager)
