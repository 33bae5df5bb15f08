"""A process of ``sfm_kernel.run``: joins, calls the function, reports. Run as a module.

It reads from stdin, its lifeline, the work, then ``GO`` when all processes have joined, and ``END``
when all have returned. It writes ``JOINED`` and the ``Result`` to the report pipe, or the lines in
which a signal has killed it.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import cloudpickle

from sfm_kernel.endpoint import ending
from sfm_kernel.endpoint.bystanders import rest
from sfm_kernel.endpoint.seen import account, is_own
from sfm_kernel.spawn import lifeline
from sfm_kernel.spawn.report import END, GO, JOINED, Result
from sfm_kernel.world import join


def main(report: int, dumped: Callable[[Any], bytes] = cloudpickle.dumps) -> None:
    """Read the work from stdin, do it, and write the result to the pipe ``report``.

    ``dumped``: makes bytes of the function's value.
    """
    os.set_inheritable(report, False)
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: reads only the work
        world, rank, n, name, path, work = pickle.load(stdin)
    sys.path[:] = path
    orders = {GO: threading.Event(), END: threading.Event()}
    # Not sys.stdin: its buffer may be locked by a reader that never returns.
    lifeline.follow(partial(os.read, 0, 1), lambda word: orders[word].set(), partial(os._exit, 1))
    try:
        sfm = join(world, name=name, rank=rank, size=n)
    except Exception as error:  # noqa: BLE001 - reported in words
        return _failure(error).send(report)
    with sfm:
        try:
            os.write(report, JOINED)
            faulthandler.enable(report, all_threads=False)
            orders[GO].wait()
            function, args, kwargs = cloudpickle.loads(work)
            value = dumped(function(sfm, *args, **kwargs))
            Result(True, value, account=account()).send(report)
        except Exception as error:  # noqa: BLE001 - whatever the user's function raises
            # Reported before this process leaves: the owner hears of the PeerLost of others later.
            _failure(error).send(report)
        else:
            rest([sfm], orders[END].wait)
        finally:
            ending.begin()


def _failure(error: Exception) -> Result:
    failed_at, text = time.monotonic(), f"{type(error).__name__}: {error}"
    return Result(False, why=text, trace=_traceback(error), failed_at=failed_at)


def _traceback(error: Exception) -> str:
    """The error's traceback as Python prints it, without the frames of this package."""
    whole = traceback.TracebackException.from_exception(error)
    left: list[traceback.TracebackException | None] = [whole]
    while left:
        if (shown := left.pop()) is not None:
            frames = [frame for frame in shown.stack if not is_own(frame.filename)]
            shown.stack = traceback.StackSummary.from_list(frames)
            left += [shown.__cause__, shown.__context__, *(shown.exceptions or ())]
    return "".join(whole.format())


if __name__ == "__main__":
    main(int(sys.argv[1]))
