"""ipyparallel: a client pushes values into an engine's namespace, and pulls them from it.

Run as ``python -m sfm_kernel.lessons.pingpong.ipyparallel SOCKET``; see ``measure.launched``. This
process is the client, and starts a controller and one engine.
"""

from __future__ import annotations

import logging
import sys
import time
from functools import partial
from operator import itemgetter
from typing import Any

import ipyparallel

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.launched import Answer, serve
from sfm_kernel.lessons.pingpong.messages import attributes_of, same


def pingpong(view: Any, mechanism: str, message: str, count: int, warm_up: int) -> Answer:
    """Push a message's attributes and pull them back, ``count`` times."""
    attributes = attributes_of(message)
    names, opened = list(attributes), itemgetter(*range(len(attributes)))
    seconds = []
    for number in range(-warm_up, count):
        started = time.perf_counter()
        view.push(attributes)
        returned = opened(view.pull(names))
        if number >= 0:
            seconds.append(time.perf_counter() - started)
        elif not same(returned, message, writable=False):  # its arrays are read-only
            raise SFMError(f"{mechanism} returned other values than it was sent")
    return {"seconds": seconds, "route": "tcp"}


if __name__ == "__main__":
    quiet = {"log_level": logging.ERROR}
    with ipyparallel.Cluster(n=1, controller_ip="127.0.0.1", **quiet) as client:
        client.wait_for_engines(1, interactive=False, timeout=60)
        engine = client[0]
        engine.block = True
        serve(sys.argv[1], 0, {"pingpong": partial(pingpong, engine)})
