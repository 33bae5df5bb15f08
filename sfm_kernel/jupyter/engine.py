"""The IPython extension of an engine: it joins the cluster's world and gives cells their queue.

``etc/ipython/ipengine_config.py`` loads the extension in every engine of the environment, whichever
launcher started the engine. The extension gives cells the names
``sfm send recv recv_nb peek regcb rank size``.

The extension runs on the main thread while the engine registers, so it waits for no other engine.
IPython only logs that an extension has failed; the notebook asks with ``report``.
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
from sfm_kernel.jupyter import limits, tracebacks, unattended
from sfm_kernel.jupyter.cluster_files import (
    DIRECTORY,
    engine_site,
    forget_keys,
    world_key,
    world_name,
)
from sfm_kernel.jupyter.lines import Lines
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
    except BaseException:  # otherwise ``report``, which tries again, would find its name in use
        endpoint.close()
        raise
    _endpoint = endpoint


def _begin(app: Any, shell: Any, endpoint: Any) -> None:
    """Give cells their queue, and publish this engine's state to observers."""
    if url := app.connection_info.get(DIRECTORY):  # observers may be on other machines
        relay.start(endpoint.world, url, world_key(app.connection_info), endpoint.folder)
    atexit.register(endpoint.close)
    names = _Names(shell, endpoint)
    shell.events.register("pre_run_cell", names.refresh)
    offer(names.defined_by_cells)
    engines.use(endpoint)
    lines = Lines(shell)
    lines.publish()
    # Engines may have been restarted since the last cell, or the last cell was stopped.
    refresh = engines.refresh

    def refresh_members(info: object) -> None:
        refresh(int(lines.task_label().get("failed") or 0))

    shell.events.register("pre_run_cell", refresh_members)
    shell.events.register("pre_run_cell", lines.begin_engine_cell)
    endpoint.describe(kind="engine")
    # Publishes whether a cell runs; blocked calls publish their state themselves.
    global _rest
    _rest = rest = Rest(endpoint)
    tracebacks.install(shell, endpoint.name, rest.fail)
    unattended.install(shell, endpoint.name)
    shell.events.register("pre_execute", rest.begin)
    shell.events.register("post_execute", rest.end)
    _show_functions(shell.kernel, rest)
    endpoint.show_running(False)


def unload_ipython_extension(shell: Any) -> None:
    """Leave the world. Messages that were sent are still delivered."""
    global _endpoint
    if _endpoint is not None:
        _endpoint.close()
        _endpoint = None


def is_engine() -> bool:
    """Whether this process is an engine in a world."""
    return _endpoint is not None


def serve() -> None:
    """Serve between cells from now on; the notebook calls this on engines."""
    serving.between_cells(_endpoint, _rest.begin, _rest.end)


def report() -> tuple[int, int]:
    """This engine's id and its rank in the world; the notebook calls this on every engine.

    Raises: the extension's error, if it has failed.
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
            f"{EXTENSION} is for ipyparallel's engines. In a notebook use %load_ext sfm_kernel"
        )
    return IPEngine.instance()


def _join(app: Any) -> Any:
    requested = app.config.IPEngine.get("id")
    if requested is None and app.use_mpi:
        requested = app.id  # which is also MPI's rank
    options: dict[str, Any] = {
        "world": world_name(app.connection_info),
        "key": world_key(app.connection_info),
        "directory": app.connection_info.get(DIRECTORY),
        "names": tuple(filter(None, os.environ.get("SFM_NAMES", "").split(","))),
        "info": {"engine_id": app.id},
        "site": engine_site(app.connection_info),
    }
    try:
        return join(rank=None if requested is None else int(requested), **options)
    except NameInUse:
        if requested is None:
            raise
        return join(**options)


class _Names:
    """Keeps the engine's names in the cells' namespace, unless the user has redefined them."""

    def __init__(self, shell: Any, endpoint: Any) -> None:
        self._shell, self._endpoint = shell, endpoint
        self._given: dict[str, object] = {}
        self.refresh()

    def refresh(self, info: object = None) -> None:
        """Put back the names that ``%reset`` removed, and the current ``size``."""
        endpoint = self._endpoint
        names = {"sfm": endpoint} | {name: getattr(endpoint, name) for name in NAMES}
        names |= {"rank": endpoint.rank, "size": endpoint.size}
        namespace = self._shell.user_ns
        for name, value in names.items():
            if name not in namespace or namespace[name] is self._given.get(name):
                namespace[name] = self._given[name] = value

    def defined_by_cells(self) -> dict[str, Any]:
        """The names that cells have defined: neither IPython's nor those of this class."""
        namespace, hidden = self._shell.user_ns.items(), self._shell.user_ns_hidden
        return {
            name: value
            for name, value in namespace
            if name not in hidden and value is not self._given.get(name, namespace)
        }


def _obey_sigterm(app: Any) -> None:
    """Have SIGTERM end a cell, too: ipyparallel's handler waits for the event loop, which waits."""

    def stop(number: int, frame: object) -> None:
        app._signal_stop(number, frame)
        if signal.getsignal(signal.SIGINT) != app._signal_sigint:  # a cell is running
            signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)


def _run_every_cell(kernel: Any) -> None:
    """Have an error end its cell only.

    For a moment after an error, a kernel drops the cells that arrive, so that "run all" stops. An
    engine would drop the next cell, perhaps another notebook's, and ipyparallel would not say so.
    """
    execute = kernel.shell_handlers["execute_request"]

    async def execute_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        parent["content"].setdefault("stop_on_error", False)
        await execute(stream, ident, parent)

    kernel.shell_handlers["execute_request"] = execute_request


def _show_functions(kernel: Any, rest: Rest) -> None:
    """Publish that the engine runs while it runs a function of ipyparallel's views, too."""
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
    """Answers ``client.send_signal`` in an engine that has no nanny."""

    def signal_request(stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        number = parent["content"]["sig"]
        number = getattr(signal, number) if isinstance(number, str) else number
        content = {"status": "ok"}
        kernel.session.send(stream, "signal_reply", content, parent=parent, ident=ident)
        stream.flush()  # before the signal, which may end this process
        os.kill(os.getpid(), number)

    return signal_request


def _let_cells_await(kernel: Any) -> None:
    """Repair ipykernel 7.1 to 7.4: in an engine, a cell with a top-level await never replies.

    The kernel asks its shell-channel thread for that thread's parent, but an engine has no such
    thread.
    """
    if getattr(kernel, "shell_channel_thread", False) is None:
        type(kernel)._supports_kernel_subshells = property(lambda self: False)
        kernel.shell_channel_thread = _NoThread()


class _NoThread:
    """False, like the None that it replaces, but with the attribute that the kernel reads."""

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False
