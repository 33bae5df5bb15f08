"""Observes a world again and again, whatever becomes of its segments: ``onlooker.py FOLDER``.

For each line of its standard input it observes once more, in every way that there is, and answers
with the states that it has seen, as JSON, by uid. All snapshots are valid by the schema. Between
the lines it observes as fast as it can.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from sfm_kernel._native import judge
from sfm_kernel.observe import Observer, explain, snapshot
from sfm_kernel.observe.deadlocks import DeadlockMonitor
from sfm_kernel.observe.snapshot import calls, pulse, segments, states
from sfm_kernel.observe.timeline import Recorder
from sfm_kernel.relay.wire import pack, unpack
from tests.observe.pictures import check


class Onlooker:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._observer = Observer()
        self._recorder = Recorder(folder)
        self._watch = DeadlockMonitor(folder, proof=1e9)

    def check(self) -> dict[str, Any]:
        folder = self._folder
        for observer in (self._observer, None):
            pulse(folder, observer)
            calls(folder, (), observer)
            unpack(pack(states(folder, observer)))
            picture = snapshot(folder, observer=observer)
            check("snapshot", picture)
            check("diagnosis", explain(folder, observer=observer))
            check("timeline", self._recorder.update(observer=observer))
        self._watch.check()
        for path in segments(folder).values():
            judge(path, "prepare", 1 << 60, "{}")
        return {process["uid"]: process["state"] for process in picture["processes"]}


def main(folder: str) -> None:
    over = threading.Event()

    def go_on() -> None:
        quick = Observer()
        while not over.is_set():
            pulse(folder, quick)
            snapshot(folder, observer=quick)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        onlooker = Onlooker(folder)
        for _ in sys.stdin:
            print(json.dumps(onlooker.check()), flush=True)
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
