"""The Jupyter server's extension, which feeds the panel, also while all processes are blocked.

It reads the segments in shared memory itself, and asks neither kernels nor engines. The path of a
snapshot to the panel:

    segments     each process publishes its activity there; ``observe.snapshot`` reads them
    sampler      ``World.sample`` takes a snapshot, in a thread, if something may have changed
    remote       adds the directory server's last report of processes on other machines
    stream       the world's ``Feed`` samples it at the rate of its fastest subscriber, and posts
                 the changes; each ``Subscriber`` keeps the newest until it can be sent
    handlers     the websocket ``sfm/stream`` takes the panel's ``Subscription``, and sends

Diagnoses and timelines take the same path; ``observe/schema.json`` says what is sent. The other
duties:

    handlers     also the REST calls
    clusters     which cluster and which notebook a world belongs to; interrupting; programs
    engines      the clusters that were started from the panel, each in a process of its own
    runs         the records of programs' finished runs, which launchers keep
    notebooks    copies the package's notebooks below the folder that the server shows
    classroom    a class's page, behind this server's authentication
    kernels      protects the sockets of this server's kernels
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from sfm_kernel import finished_runs


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """The modules that are extensions; jupyter_server asks for them."""
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Add the handlers to a server that starts."""
    from sfm_kernel.jupyter.server import classroom, handlers, kernels, notebooks, runs

    # Inherited by terminals and kernels, and by the launchers in them.
    os.environ.setdefault(finished_runs.VARIABLE, str(finished_runs.USUAL))
    service = handlers.Service(app)
    atexit.register(service.close)  # the server does not tell an extension without an app its end
    for module in (handlers, notebooks, runs, classroom):
        app.web_app.add_handlers(".*$", module.routes(app.base_url, service))
    kernels.protect(app.kernel_manager)
