"""``%sfm debug A --attach``: JupyterLab's debugger looks at an engine instead of the notebook.

JupyterLab sends the debugger's requests to the notebook's kernel, which hands them to debugpy in
its own process. While an engine is attached they go to debugpy in that engine, and the engine
compiles cells under the names that the notebook's kernel gives them: a breakpoint is a line of a
file, and so it is one of the notebook's cell there, too.

(The requests are those of the Debug Adapter Protocol, see ``ipykernel.debugger``.)
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, NamedTuple

from ipykernel.compiler import get_tmp_directory
from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython

from sfm_kernel.directory import Member
from sfm_kernel.jupyter import lines

_HOST = "127.0.0.1"

_port: int | None = None


class _Debugpy(NamedTuple):
    """Where the notebook's kernel sends the debugger's requests; ``initialized``: whether debugpy
    listens there already."""

    host: str
    port: Any
    initialized: bool


_own: _Debugpy | None = None
"""The notebook's, while an engine is attached."""


def attach(view: Any, member: Member, is_here: bool) -> None:
    """Direct the notebook's debugger to an idle engine.

    Args:
        view: ipyparallel's, of this engine.
        is_here: whether it runs on this machine.
    Raises:
        UsageError: the debugger is on, or debugpy is missing, or cannot be reached.
    """
    global _own
    debugger = _debugger()
    if not is_here:
        raise UsageError(
            f"%sfm debug --attach: {member.name} runs on another machine, which the debugger does "
            f"not reach: `%sfm debug {member.name}` after an error looks at its values"
        )
    port = view.apply_sync(listen)
    if port is None:
        raise UsageError(
            f"%sfm debug --attach: debugpy is not installed where {member.name} runs: `pip install "
            "debugpy`, then `%sfm restart`"
        )
    client = debugger.debugpy_client
    _own = _own or _Debugpy(client.debugpy_host, client.debugpy_port, debugger.debugpy_initialized)
    _direct(debugger, _Debugpy(_HOST, port, True))
    os.makedirs(get_tmp_directory(), mode=0o700, exist_ok=True)  # for the texts of cells
    debugger.start = partial(_start, debugger, member.pid)


def detach() -> None:
    """Direct the notebook's debugger to the notebook again. Raises UsageError: it is on."""
    debugger = _debugger()
    if _own is None:
        raise UsageError("%sfm debug --detach: no engine is attached")
    _give_back(debugger)


def listen() -> int | None:
    """On an engine: have debugpy wait for the debugger; its port, None without debugpy."""
    global _port
    if _port is None:
        try:
            import debugpy  # noqa: T100 - the user has asked for it
        except ImportError:
            return None
        _, _port = debugpy.listen((_HOST, 0))  # noqa: T100
    lines.named_as_in_notebook = True
    return _port


def _debugger() -> Any:
    """The debugger of this notebook's kernel, which is off."""
    debugger: Any = getattr(getattr(get_ipython(), "kernel", None), "debugger", None)
    if debugger is None:
        raise UsageError(
            "%sfm debug: this kernel has no debugger: `pip install debugpy`, and restart it"
        )
    if debugger.is_started:
        raise UsageError(
            "%sfm debug: turn the debugger off first (the bug above the notebook), then run this"
        )
    return debugger


def _direct(debugger: Any, to: _Debugpy) -> None:
    client = debugger.debugpy_client
    client.debugpy_host, client.debugpy_port, debugger.debugpy_initialized = to


def _give_back(debugger: Any) -> None:
    global _own
    assert _own is not None
    _direct(debugger, _own)
    _own = None
    del debugger.start


def _start(debugger: Any, pid: int) -> bool:
    """Start the debugger: the notebook's, if the engine has ended, since it would never answer."""
    if not os.path.exists(f"/proc/{pid}"):
        _give_back(debugger)
    is_started: bool = type(debugger).start(debugger)
    return is_started
