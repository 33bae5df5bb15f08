"""A process of ``sfm_kernel.run``: joins, calls the function, reports. Run as a module.

It talks with ``launch`` through two pipes. On stdin come the work, then ``GO`` when all processes
have joined, then ``END`` when all have returned: nobody leaves while another may still send to
it. The end of stdin means that the launching process has died. On the report pipe go ``JOINED``
and then the pickled result.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback

import cloudpickle

from sfm_kernel.endpoint import ending
from sfm_kernel.endpoint.bystanders import rest
from sfm_kernel.endpoint.seen import Account, account
from sfm_kernel.launch import END, GO, JOINED
from sfm_kernel.world import join


def main(report: int) -> None:
    """Take the work from stdin, and write ``(good, value, traceback, account)`` to ``report``."""
    os.set_inheritable(report, False)
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # nothing beyond the work is read
        world, rank, n, name, path, work = pickle.load(stdin)
    sys.path[:] = path
    go, end = threading.Event(), threading.Event()
    threading.Thread(target=_listen, args=(go, end), name="sfm-parent", daemon=True).start()
    try:
        with join(world, name=name, rank=rank, size=n) as sfm:
            try:
                os.write(report, JOINED)
                go.wait()
                function, args, kwargs = cloudpickle.loads(work)
                value = cloudpickle.dumps(function(sfm, *args, **kwargs))
                _tell(report, True, value, "", account())
                rest([sfm], end.wait)
            finally:
                ending.begin()
    except Exception as error:  # noqa: BLE001 - whatever the user's function raises is reported
        _tell(report, False, f"{type(error).__name__}: {error}", traceback.format_exc())


def _tell(
    report: int, good: bool, value: object, trace: str, account: Account | None = None
) -> None:
    with open(report, "wb") as pipe:  # closing it ends the report
        pipe.write(pickle.dumps((good, value, trace, account)))


def _listen(go: threading.Event, end: threading.Event) -> None:
    # Not sys.stdin: its buffer may be locked by a reader that never returns.
    while word := os.read(0, 1):
        {GO: go, END: end}[word].set()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
