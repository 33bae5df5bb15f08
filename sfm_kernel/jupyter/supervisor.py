"""Starts this machine's engines as forks of one process, and ends them.

    python -m sfm_kernel.jupyter.supervisor PARENT CONNECTION_FILE RANK... [-- engine's arguments]

``cluster`` starts the supervisor through an ipyparallel launcher. The supervisor imports once what
every engine needs, while the controller is starting, and forks when the connection file exists.
Measured with 4 engines on two cores: 1.2 s until all are registered, against 2.7 s with an
interpreter for each, and 22 MB for an engine (numpy loaded), against 40 MB and a nanny of 30 MB.

Then the supervisor waits, and
- ends the engines when its parent has died, however that happened, or on SIGTERM. It kills an
  engine that ignores SIGTERM, or holds the GIL, after ``GRACE``, and the processes that the engine
  had started.
- reports the end of an engine to the controller, so that a client that waits for the engine's reply
  gets an error at once. ipyparallel's nannies do this, and forward signals.
- removes the world and the files after the death of its parent, since no other process will.

If the supervisor is killed, the system kills the engines (PR_SET_PDEATHSIG). It never runs a user's
code and has one thread, so nothing that a cell does can stop it.

It uses only the lifeline of ``sfm_kernel.spawn``: ipyparallel's launchers start and signal the
supervisor, and it reports the end of an engine to the controller. A job's owner listens to pipes;
the supervisor waits for signals alone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from sfm_kernel.directory import root
from sfm_kernel.jupyter import death
from sfm_kernel.jupyter.cluster_files import remove_files, world_name
from sfm_kernel.jupyter.sites import settle
from sfm_kernel.spawn.forked import quiet_fork
from sfm_kernel.spawn.lifeline import die_with

GRACE = 1.0
"""Seconds between an engine's SIGTERM and its SIGKILL."""

POLL = 0.25
"""Seconds between two checks whether the parent lives."""

_PATIENCE = 20
"""Seconds that the controller has to receive the report of an engine's end."""

SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}

_PRELOADED = (
    "ipyparallel.engine.app",
    "tornado.platform.asyncio",
    "sqlite3",
    "IPython.core.completerlib",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "stack_data",  # from here on: tracebacks
    "pygments.formatters.terminal256",
    "pygments.lexers.python",
    "pygments.styles.default",
    "numpy",
    "sfm_kernel.jupyter.engine",
)


def main(arguments: list[str]) -> None:
    """Run the supervisor; in an engine, a fork, it returns when that ends."""
    parent, path = int(arguments[0]), arguments[1]
    split = arguments.index("--")
    ranks, engine_arguments = [int(rank) for rank in arguments[2:split]], arguments[split + 1 :]
    users_umask = os.umask(0o077)
    _preload()
    connection = wait_for_connection(path, parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    gc.collect()
    gc.freeze()  # the collector would otherwise copy the pages that engines share
    supervisor = _Supervisor(connection)
    for rank in ranks:
        if not supervisor.fork(rank):
            os.umask(users_umask)  # for the files that cells write
            _become_engine(rank, connection, engine_arguments)
            return
    supervisor.watch(parent)
    if os.getppid() != parent:
        _remove_leftovers(connection)


class _End(NamedTuple):
    rank: int
    pid: int
    code: int


class _Supervisor:
    def __init__(self, connection: dict[str, Any]) -> None:
        self._connection = connection
        self._engines: dict[int, int] = {}  # pid -> rank
        self._files: dict[int, int] = {}  # pid -> the file that it shares
        self._messengers: set[int] = set()  # processes that report to the controller
        # Engines that have ended -> when to kill the processes that they had started. Until such an
        # engine is reaped, no other group gets the number of its group.
        self._ended: dict[int, float] = {}

    def fork(self, rank: int) -> bool:
        """Fork an engine; returns True in the supervisor and False in the engine."""
        supervisor, file = os.getpid(), death.shared_file()
        pid = quiet_fork()
        if not pid:
            die_with(supervisor)
            os.setpgid(0, 0)
            death.watch(file)
            return False
        try:
            os.setpgid(pid, pid)  # in both processes, so that neither has to wait for the other
        except ProcessLookupError:  # it has ended already
            pass
        self._engines[pid], self._files[pid] = rank, file
        return True

    def watch(self, parent: int) -> None:
        """Return when all engines, and the processes that they had started, have ended."""
        while self._engines or self._messengers or self._ended:
            # The signals are blocked and received here: there is no handler, and none is missed.
            got = signal.sigtimedwait(SIGNALS, POLL)
            number = got.si_signo if got else None
            if number == signal.SIGTERM or os.getppid() != parent:
                self._stop()
                return
            if number == signal.SIGINT:
                for pid in self._engines:
                    os.kill(pid, signal.SIGINT)
            for end in self._reap():
                self._unregister(*end)
                os.close(self._files.pop(end.pid))
            for pid in [pid for pid, due in self._ended.items() if time.monotonic() > due]:
                _kill_groups([pid], signal.SIGKILL)
                os.waitpid(pid, 0)
                del self._ended[pid]

    def _stop(self) -> None:
        _kill_groups([*self._engines, *self._messengers, *self._ended], signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self._engines and (rest := deadline - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, rest)
            self._reap()
        # Also the groups whose engine has ended: a cell may have started processes.
        _kill_groups([*self._engines, *self._messengers, *self._ended], signal.SIGKILL)
        while self._engines or self._messengers:
            signal.sigtimedwait({signal.SIGCHLD}, POLL)
            self._reap()

    def _reap(self) -> list[_End]:
        """The engines that have ended since the last call."""
        self._messengers = {pid for pid in self._messengers if not os.waitpid(pid, os.WNOHANG)[0]}
        ended: list[_End] = []
        for pid in list(self._engines):
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                continue
            _kill_groups([pid], signal.SIGTERM)  # what its cells had started, in its own time
            self._ended[pid] = time.monotonic() + GRACE
            rank = self._engines.pop(pid)
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            ended.append(_End(rank, pid, code))
            print(f"sfm: engine {rank} (pid {pid}) ended: {code}", file=sys.stderr, flush=True)
        return ended

    def _unregister(self, rank: int, pid: int, code: int) -> None:
        """Report an engine's end, from a fork: to observers, then to the controller.

        The supervisor has no ZeroMQ, and must not fail.
        """
        supervisor = os.getpid()
        if messenger := quiet_fork():
            self._messengers.add(messenger)
            return
        try:
            die_with(supervisor)
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            signal.alarm(_PATIENCE)
            with contextlib.suppress(Exception):  # the world's folder may have been removed
                folder = os.path.join(root(), world_name(self._connection))
                death.leave_word(folder, pid, death.cause(code, self._files[pid]))
            _report_end(self._connection, rank)
        finally:
            os._exit(0)


def _preload() -> None:
    # ipykernel would load debugpy, which an engine needs only if a debugger attaches to it.
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    importlib.import_module("ipykernel.debugger")
    del sys.modules["debugpy"]
    for name in _PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"sfm: {name} is not preloaded: {error}", file=sys.stderr, flush=True)


def wait_for_connection(path: str, parent: int) -> dict[str, Any]:
    """The content of a cluster's connection file; waits until it exists."""
    while os.getppid() == parent:
        try:
            with open(path) as file:
                connection: dict[str, Any] = json.load(file)
                return connection
        except (FileNotFoundError, ValueError):  # it does not exist, or is half-written
            time.sleep(0.01)
    raise SystemExit("sfm: the notebook ended before the controller had started")


def _become_engine(rank: int, connection: dict[str, Any], arguments: list[str]) -> None:
    from ipyparallel.engine.app import IPEngine

    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    if "numpy.random" in sys.modules:  # without it, with old numpy, all engines draw the same
        sys.modules["numpy.random"].seed()
    settle(rank, world_name(connection))
    sys.path.insert(0, os.getcwd())  # for cells, as in any engine; the supervisor runs with -P
    # The id is the rank, so that a restarted engine keeps both. No nanny, and no port for the
    # controller's heartbeat: the supervisor does their work.
    options = [f"--IPEngine.id={rank}", "--IPEngine.enable_nanny=False", "--log-level=WARN"]
    options.append("--IPEngine.max_heartbeat_misses=0")
    # Not through IPP_CONNECTION_INFO: it holds the cluster's keys, and cells see the environment.
    IPEngine.launch_instance([*options, *arguments], connection_info_env=json.dumps(connection))


def _kill_groups(groups: Iterable[int], number: int) -> None:
    """Send a signal to engines, each the leader of a group, and to the processes they started."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)


def _report_end(connection: dict[str, Any], rank: int) -> None:
    # Sends what an ipyparallel nanny sends at an engine's end.
    from ipyparallel.engine import nanny
    from traitlets.config import Config

    session = {
        "key": connection["key"].encode(),
        "signature_scheme": connection["signature_scheme"],
        "packer": connection["pack"],
        "unpacker": connection["unpack"],
    }
    server = (connection.get("curve_serverkey") or "").encode()
    public, secret = nanny.zmq.curve_keypair() if server else (b"", b"")
    sender = nanny.KernelNanny(
        pid=os.getpid(),
        engine_id=rank,
        control_url="",
        registration_url=f"{connection['interface']}:{connection['registration']}",
        identity=b"",
        curve_serverkey=server,
        curve_publickey=public,
        curve_secretkey=secret,
        config=Config({"Session": session}),
        pipe=None,
    )
    sender.context = nanny.zmq.Context()
    sender.notify_exit()
    sender.context.term()  # waits until the report is sent


def _remove_leftovers(connection: dict[str, Any]) -> None:
    from sfm_kernel.directory import remove_world

    remove_files(os.environ["IPP_PROFILE_DIR"], os.environ["IPP_CLUSTER_ID"])
    remove_world(world_name(connection))


if __name__ == "__main__":
    main(sys.argv[1:])
