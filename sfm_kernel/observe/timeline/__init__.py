"""The timeline: the states of a world's processes in the last run, and their messages.

``history`` turns events into spans and flights, ``runs`` finds the last run, ``late`` finds late
senders and receivers; ``recorder`` keeps up with a world. ``view`` shows the timeline: ``diagram``
(with ``style``, ``svg`` and ``words``) draws it, ``chrome`` writes a trace.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.observe.timeline.recorder import Recorder
from sfm_kernel.observe.timeline.view import Timeline

__all__ = ["Recorder", "Timeline", "timeline"]


def timeline(world: Any) -> Timeline:
    """The last run of a world, as far as it is still known.

    ``world``: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.

    A process keeps its last 4096 events, and they vanish when it leaves. To keep more, create a
    ``Recorder`` before the run, and call its ``timeline()``.
    Raises:
        FileNotFoundError: there is no such folder.
    """
    recorder = Recorder(world)
    recorder.read()
    return recorder.timeline()
