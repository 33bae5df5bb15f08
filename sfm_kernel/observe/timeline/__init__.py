"""The timeline: what the processes of a world did in the last run, and which messages went.

``history`` makes spans and flights of events, ``runs`` finds the last run, ``late`` says who let
whom wait; ``recorder`` keeps up with a world. ``view`` shows it: ``diagram`` (with ``style``,
``svg`` and ``words``) draws it, ``chrome`` writes a trace.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.observe.timeline.recorder import Recorder
from sfm_kernel.observe.timeline.view import Timeline

__all__ = ["Recorder", "Timeline", "timeline"]


def timeline(world: Any) -> Timeline:
    """The last run of a world, as far as it is still known.

    ``world``: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.

    A process keeps its last 4096 events, and takes them along when it leaves. Who wants more has a
    ``Recorder`` from the beginning on, and asks for its ``timeline()``.
    Raises:
        FileNotFoundError: there is no such folder.
    """
    recorder = Recorder(world)
    recorder.read()
    return recorder.timeline()
