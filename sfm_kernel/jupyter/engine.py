"""The IPython extension of an engine: it joins the cluster's world and gives cells their queue.

``etc/ipython/ipengine_config.py`` loads it in every engine of the environment, whichever launcher
started it. Names it puts into the engine: ``sfm send recv recv_nb peek regcb rank size``.

It runs on the main thread while the engine registers: nothing here waits for another engine.
IPython only logs that an extension failed; the notebook asks with ``report``.
"""

from __future__ import annotations

import atexit
import inspect
import os
import signal
import threading
from typing import Any

from sfm_kernel import relay, serving
from sfm_kernel.errors import NameInUse, WorldError
from sfm_kernel.jupyter import limits, tracebacks
from sfm_kernel.jupyter.lines import Lines
from sfm_kernel.jupyter.places import DIRECTORY, engine_site, forget_keys, world_key, world_name
from sfm_kernel.jupyter.rest import Rest
from sfm_kernel.mpi import engines
from sfm_kernel.serving.offers import offer
from sfm_kernel.world import join

EXTENSION = __name__
NAMES = ("send", "recv", "recv_nb", "peek", "regcb")
"""The methods of an endpoint that cells call by name, in engines and notebooks."""

_endpoint: Any = None
_rest: Any = None


def load_ipython_extension(shell: Any) -> None:
    """Join the cluster's world with this engine.

    Raises:
        WorldError: the process is no engine, or the world cannot be joined.
    """
    global _endpoint
    if _endpoint is not None:
        return
    app = _engine_app()
    forget_keys()
    limits.limit_memory()
    kernel = shell.kernel
    _let_cells_await(kernel)
    _run_every_cell(kernel)
    _obey_sigterm(app)
    if not app.enable_nanny:
        kernel.control_handlers["signal_request"] = _signal_handler(kernel)
    endpoint = _join(app)
    limits.limit_buffering(endpoint)
    try:
        _begin(app, shell, endpoint)
    except BaseException:  # or it would be there twice, when it is asked why it has not joined
        endpoint.close()
        raise
    _endpoint = endpoint


def _begin(app: Any, shell: Any, endpoint: Any) -> None:
    """Give cells their queue, and observers something to see."""
    if url := app.connection_info.get(DIRECTORY):  # observers may be on other machines
        relay.start(endpoint.world, url, world_key(app.connection_info), endpoint.folder)
    atexit.register(endpoint.close)
    names = _Names(shell, endpoint)
    shell.events.register("pre_run_cell", names.refresh)
    offer(names.of_cells)
    engines.use(endpoint)
    tracebacks.install(shell, endpoint.name)
    lines = Lines(shell)
    lines.publish()
    # Engines may have been restarted since the last cell, or that one was stopped.
    refresh = engines.refresh
    shell.events.register("pre_run_cell", lambda _: refresh(int(lines.told().get("failed") or 0)))
    shell.events.register("pre_run_cell", lines.of_engine)
    endpoint.describe(kind="engine")
    # What observers see between and during cells; blocked calls say so by themselves.
    global _rest
    _rest = rest = Rest(endpoint)
    shell.events.register("pre_execute", rest.begin)
    shell.events.register("post_execute", rest.end)
    _show_functions(shell.kernel, rest)
    endpoint.show_running(False)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the world. What was sent is still delivered."""
    global _endpoint
    if _endpoint is not None:
        _endpoint.close()
        _endpoint = None


def is_engine() -> bool:
    """Whether this process is an engine in a world."""
    return _endpoint is not None


def serve() -> None:
    """Serve from now on between cells; the notebook calls it on engines to which it attaches."""
    serving.between_cells(_endpoint, _rest.begin, _rest.end)


def report() -> tuple[int, int]:
    """This engine's id and its rank in the world; the notebook calls it on every engine.

    Raises: what the extension raised, should it have failed.
    """
    from IPython import get_ipython

    shell = get_ipython()
    if EXTENSION not in shell.extension_manager.loaded:
        shell.extension_manager.load_extension(EXTENSION)
    return shell.kernel.engine_id, _endpoint.rank


def _engine_app() -> Any:
    from ipyparallel.engine.app import IPEngine

    if not IPEngine.initialized():
        raise WorldError(
            f"{EXTENSION} is for ipyparallel's engines. In a notebook: %load_ext sfm_kernel"
        )
    return IPEngine.instance()


def _join(app: Any) -> Any:
    wish = app.config.IPEngine.get("id")
    if wish is None and app.use_mpi:
        wish = app.id  # so that it is MPI's rank too
    options: dict[str, Any] = {
        "world": world_name(app.connection_info),
        "key": world_key(app.connection_info),
        "directory": app.connection_info.get(DIRECTORY),
        "names": tuple(filter(None, os.environ.get("SFM_NAMES", "").split(","))),
        "info": {"engine_id": app.id},
        "site": engine_site(app.connection_info),
    }
    try:
        return join(rank=None if wish is None else int(wish), **options)
    except NameInUse:
        if wish is None:
            raise
        return join(**options)


class _Names:
    """Keeps the engine's names in the cells' namespace, unless the user took them."""

    def __init__(self, shell: Any, endpoint: Any) -> None:
        self._shell, self._endpoint = shell, endpoint
        self._given: dict[str, object] = {}
        self.refresh()

    def refresh(self, info: object = None) -> None:
        """Put back what ``%reset`` took, and ``size`` as it is now."""
        endpoint = self._endpoint
        names = {"sfm": endpoint} | {name: getattr(endpoint, name) for name in NAMES}
        names |= {"rank": endpoint.rank, "size": endpoint.size}
        there = self._shell.user_ns
        for name, value in names.items():
            if name not in there or there[name] is self._given.get(name):
                there[name] = self._given[name] = value

    def of_cells(self) -> dict[str, Any]:
        """What cells have made: neither IPython's names nor those that are given here."""
        there, hidden = self._shell.user_ns.items(), self._shell.user_ns_hidden
        return {
            name: value
            for name, value in there
            if name not in hidden and value is not self._given.get(name, there)
        }


def _obey_sigterm(app: Any) -> None:
    """Make SIGTERM end a cell too: ipyparallel's handler waits for the event loop, which waits."""

    def stop(number: int, frame: object) -> None:
        app._signal_stop(number, frame)
        if signal.getsignal(signal.SIGINT) != app._signal_sigint:  # a cell is running
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)


def _run_every_cell(kernel: Any) -> None:
    """Make an error end its own cell only.

    For a moment after an error, a kernel drops the cells that come in: "run all" stops there. Here
    that would be the next cell, perhaps another notebook's, and ipyparallel would not say so.
    """
    execute = kernel.shell_handlers["execute_request"]

    async def execute_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        parent["content"].setdefault("stop_on_error", False)
        await execute(stream, ident, parent)

    kernel.shell_handlers["execute_request"] = execute_request


def _show_functions(kernel: Any, rest: Rest) -> None:
    """Have observers see an engine run what is no cell: functions of ipyparallel's views, too."""
    apply = kernel.shell_handlers["apply_request"]

    async def apply_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        rest.begin()
        try:
            if inspect.isawaitable(answer := apply(stream, ident, parent)):
                await answer
        finally:
            rest.end()

    kernel.shell_handlers["apply_request"] = apply_request


def _signal_handler(kernel: Any) -> Any:
    """What ``client.send_signal`` needs in an engine that has no nanny."""

    def signal_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        number = parent["content"]["sig"]
        number = getattr(signal, number) if isinstance(number, str) else number
        content = {"status": "ok"}
        kernel.session.send(stream, "signal_reply", content, parent=parent, ident=ident)
        stream.flush()  # first the reply: the signal may end this process
        os.kill(os.getpid(), number)

    return signal_request


def _let_cells_await(kernel: Any) -> None:
    """Cure of ipykernel 7.1 to 7.4: in an engine, a cell with a top-level await never replies.

    The kernel asks its shell-channel thread which thread is its parent; an engine has none.
    """
    if getattr(kernel, "shell_channel_thread", False) is None:
        type(kernel)._supports_kernel_subshells = property(lambda self: False)
        kernel.shell_channel_thread = _NoThread()


class _NoThread:
    """False like the None it replaces, but with the attribute that is asked for."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False
