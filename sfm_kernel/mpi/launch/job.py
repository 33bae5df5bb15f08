"""Starts, watches and ends the ranks of one launch, and determines the exit status.

It has one thread and one loop. A rank can end as follows:
- It finishes, and waits until all have finished: no rank leaves while another may still send to it.
- It raises, exits with a status, or aborts: it reports this, and the others are ended.
- It dies: the others are ended.
- It raises because it has lost another rank: the launcher waits briefly for that rank's failure.
The first failure is shown, and determines the exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sfm_kernel.directory import remove_world
from sfm_kernel.mpi.launch import reports, spawning, wording
from sfm_kernel.mpi.launch.child import Child, end_all
from sfm_kernel.mpi.launch.lone import Singleton
from sfm_kernel.mpi.launch.native import Native
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.mpi.launch.worlds import MOST, World, claim, environment
from sfm_kernel.spawn.forked import signals
from sfm_kernel.spawn.guardian import guardian
from sfm_kernel.spawn.output import standard_outputs
from sfm_kernel.watching import Watching

if TYPE_CHECKING:
    from sfm_kernel.endpoint.seen import Account
    from sfm_kernel.mpi.launch.keeping import Keeping

GRACE = 5.0
"""Seconds between asking a rank to end and killing it."""

MOST_RANKS = 512
"""Largest number of living processes in a world."""

_DOUBT = 1.0  # s in which a rank that has caused another one's failure may still report its own
_HINT = "The ranks still run. Ctrl-C (Stop) ends them; the option --detect ends such calls."
_STATUS_OF_TIMEOUT = 124


def _hold_nothing() -> None: ...


class Job:
    """The ranks of one program, or of several.

    Args:
        programs: for each program the number of ranks, and its command (for ``program.run``) or
            the compiled program.
        label: whether each line of output begins with its rank.
        timeout: seconds after which all ranks are ended.
        lifeline: a descriptor whose end of file ends all ranks.
        universe: the value of MPI_UNIVERSE_SIZE.
        serve: instead of programs: the descriptor of a socket to a process that asks for ranks, and
            its world.
        on_path: programs that were found on PATH; a failure names their files.
        detect: whether calls that wait for each other for ever end with DeadlockDetected;
            otherwise stderr explains them once.
        keeping: keeps the run when it has ended, if that is wanted.
    Attributes:
        watching: watches the ranks.
    """

    def __init__(
        self,
        programs: Sequence[tuple[int, Sequence[str] | Native]],
        *,
        label: bool = False,
        timeout: float | None = None,
        lifeline: int | None = None,
        detect: bool = False,
        universe: int | None = None,
        on_path: Collection[str] = (),
        serve: tuple[int, str] | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self._pid = os.getpid()
        self._programs, self._label, self._on_path = programs, label, on_path
        self._timeout, self._lifeline, self._universe = timeout, lifeline, universe
        self._serve, self._environment = serve, dict[str, str]()
        self._claim = None  # with ``serve``, the process has the claim
        if serve is None:
            self._claim, self._launch = claim()
            self._world = f"mpi-{os.getpid()}-{os.urandom(4).hex()}-{self._launch}"
        else:
            self._world = serve[1]
            self._launch = int(self._world.rpartition("-")[2])
        self._worlds = [World(0, 0, sum(size for size, _ in programs) or 1)]
        self._selector = selectors.PollSelector()  # epoll knows no files
        self._hold = partial(keeping.hold, self._world) if keeping else _hold_nothing
        self._out, self._err = standard_outputs(self._selector, keeping.output if keeping else None)
        self._children: list[Child] = []
        self._timers: dict[Callable[[], None], float] = {}
        self._failure: tuple[Child, Report] | None = None  # the first failure
        self._returned = 0  # the first exit status that is not 0 after MPI_Finalize
        self._stopped: int | None = None  # the exit status after a signal, timeout or lifeline
        self._accounts: dict[int, Account] = {}
        self._unfinished: list[tuple[Child, str]] = []  # operations that ranks have not ended
        self._mismatched = False  # collective calls have differed, and all have returned
        self._ending = False
        self._note: Callable[[str], None]
        pids = lambda: [child.pid for child in self._running()]  # noqa: E731
        self.watching = Watching(self._world, pids, self._say, end=detect, hint=_HINT)

    def run(self) -> int:
        """Run the program to its end; returns the exit status. No process and no file remains.

        Raises:
            OSError: a process could not be started; none remains.
            Forked: in each rank.
        """
        with signals(self._selector, self._on_signal), guardian(self._world) as self._note:
            try:
                self._start()
                while self._running():
                    self._step()
                self._end_others()  # no rank runs: it only shows the failure
                if self._stopped is None and self._failure is None:
                    self._say("\n".join(wording.unfinished(self._children, self._unfinished)))
                self._write_all()
            finally:
                if os.getpid() == self._pid:
                    end_all(self._children, GRACE)
                    with contextlib.suppress(OSError):
                        remove_world(self._world)
                    self._note("done")
                else:
                    self._close_inherited()
                if self._claim is not None:
                    self._claim.close()
        if self._stopped is not None:
            return self._stopped
        if self._failure is not None:
            return self._failure[1].status
        return self._returned or (1 if self._mismatched else 0)

    # ---- the loop

    def _start(self) -> None:
        self._timers[self._watch] = self.watching.due
        if self._timeout is not None:
            self._timers[self._time_is_up] = time.monotonic() + self._timeout
        if self._lifeline is not None:
            self._selector.register(self._lifeline, selectors.EVENT_READ, self._lifeline_ended)
        self._environment = environment(self._world, self._launch, self._universe)
        if not all(isinstance(program, Native) for _, program in self._programs):
            from sfm_kernel.mpi.launch import rank

            rank.prepare()
        if self._serve is not None:
            fd, world = self._serve[0], self._worlds[0]
            self._add(Singleton(world, fd, self._selector, self._received, self._ended))
        for number, (size, program) in enumerate(self._programs):
            variables = {"SFM_MPI_APPNUM": str(number)} if len(self._programs) > 1 else {}
            if isinstance(program, Native) and program.temporary:
                self._note(program.temporary)
            for _ in range(size):
                self._begin(self._worlds[0], program, variables)

    def _begin(
        self, world: World, program: Sequence[str] | Native, variables: Mapping[str, str]
    ) -> None:
        """Start a world's next rank."""
        complete = {**self._environment, **variables, **world.environment()}
        outputs, selector = (self._out, self._err), self._selector
        child = Child(world, program, complete, outputs, self._label, selector, self._received)
        words = program.words if isinstance(program, Native) else program
        child.command = words[0] if words[0] in self._on_path else ""
        self._add(child)
        self._note(f"+{child.pid}")

    def _add(self, child: Child) -> None:
        self._children.append(child)
        child.world.children.append(child)

    def _spawn(self, asker: Child, request: str) -> None:
        """Start the programs that a rank asks for."""
        room = min(MOST_RANKS - len(self._running()), MOST - len(self._children))
        spawning.spawn(asker, json.loads(request), self._worlds, room, self._begin)

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.status is None]

    def _step(self) -> None:
        streams = [stream for child in self._children for stream in child.streams]
        for stream in streams:
            stream.watch()
        due = [*self._timers.values(), *filter(None, (stream.due() for stream in streams))]
        self._serve_streams(max(0.0, min(due) - time.monotonic()) if due else None)
        now = time.monotonic()
        for stream in streams:
            if (due_time := stream.due()) and due_time <= now:
                stream.show()
        for action in [action for action, due_time in self._timers.items() if due_time <= now]:
            del self._timers[action]
            action()
        if (self._out.broken or self._err.broken) and self._stopped is None:
            self._stop(signal.SIGTERM, 128 + signal.SIGPIPE)  # as `yes | head` ends

    def _write_all(self) -> None:
        """Write the remaining output; after ``_stop`` for at most ``GRACE`` seconds."""
        until = time.monotonic() + GRACE
        while not all([self._out.flush(), self._err.flush()]):
            rest = until - time.monotonic() if self._stopped is not None else None
            if rest is not None and rest <= 0:
                return
            self._serve_streams(rest)

    def _serve_streams(self, limit: float | None) -> None:
        """Take in what ranks have written and reported; wait for it for ``limit`` seconds."""
        for key, _ in self._selector.select(limit):
            key.data()

    def _close_inherited(self) -> None:
        """In a new rank: close the launcher's descriptors."""
        for child in self._children:
            child.close()
        if self._lifeline is not None:
            os.close(self._lifeline)

    # ---- events

    def _received(self, child: Child, report: Report) -> None:
        if report.kind == reports.READY:
            child.ready = True
        elif report.kind == reports.STARTED:
            child.joined = True
            child.world.joined()
            if all(one.joined for one in child.world.children):
                self._hold()  # all run now, and may leave at any time
            self._end_if_absent()
        elif report.kind == reports.PEER_LOST:
            child.has_lost = True
        elif report.kind == reports.LEFT:
            self._unfinished.append((child, report.text))
        elif report.kind == reports.DIFFERED:
            self._mismatched = child.differed = True
            self._say(wording.difference(child, report.text))
        elif report.kind == reports.SPAWN:
            self._spawn(child, report.text)
        elif report.kind == reports.FINISHED:  # perhaps read before the other ranks' STARTED
            child.finished = True
            if report.text:
                self._accounts[child.rank.number] = json.loads(report.text)
            self._end_if_absent()
            self._release_if_done()
        elif child.world.refuse(partial(wording.too_soon, child, report)):
            pass
        elif report.kind == reports.ABORTED and (self._ending or self._stopped is not None):
            child.release()  # all ranks are being ended: it need not wait
        elif self._stopped is not None:
            if report.kind in (reports.INTERRUPTED, reports.CUT_OFF):
                where = wording.interrupted_in(child, report)
                self._err.say(f"sfm: {child.rank} was in {where}\n", child.prefix)
            elif report.kind in (reports.RAISED, reports.EXITED):
                self._err.say(report.text, child.prefix)
        else:
            child.report = report
            self._failed(child, report)

    def _failed(self, child: Child, report: Report) -> None:
        if self._ending:
            return
        self._hold()
        weight = wording.weight(child, report)
        if self._failure is None or wording.weight(*self._failure) < weight:
            self._failure = child, report
        if weight < wording.CERTAIN:
            self._timers.setdefault(self._end_others, time.monotonic() + _DOUBT)
        else:
            self._end_others()

    def _end_others(self) -> None:
        """Show the failure, and end the other ranks. The failed rank ends by itself unless it has
        aborted."""
        if self._ending or self._failure is None:
            return
        self._ending = True
        failed, report = self._failure
        others = [child for child in self._running() if child is not failed]
        is_alone = len(self._children) == 1
        self._err.say(wording.failure(failed, report, is_alone), failed.prefix)
        for child in others if report.kind != reports.ABORTED else self._running():
            child.signal(signal.SIGTERM)
        self._timers[self._kill] = time.monotonic() + GRACE

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            for child in self._children:
                if child.reap():
                    self._ended(child)
        elif number == signal.SIGTSTP:
            self._pause()
        else:
            self._stop(number, 128 + number)

    def _ended(self, child: Child) -> None:
        if not child.has_left_processes():
            self._note(f"-{child.pid}")
        too_soon = partial(wording.too_soon, child)
        if self._stopped is not None or child.report or child.world.refuse(too_soon):
            pass
        elif child.status:
            report = Report(wording.DIED, child.status)
            if child.finished and child.code >= 0:
                self._has_returned(child, report)
            else:
                self._failed(child, report)
        elif child.joined and not child.finished:
            self._failed(child, Report(wording.UNFINISHED, 1))
        self._end_if_absent()
        self._release_if_done()

    def _has_returned(self, child: Child, report: Report) -> None:
        """A rank has ended with a status after MPI_Finalize: the others end by themselves."""
        if not self._returned and not self._ending:
            self._returned = report.status
            subject = str(child.rank) if len(self._children) > 1 else "the program"
            self._err.say(f"sfm: {subject} {wording.deed(child, report)}\n", child.prefix)

    def _end_if_absent(self) -> None:
        """End all ranks if one has ended without MPI_Init, in which others wait for it."""
        for world in self._worlds:
            if self._stopped is None and (absent := world.absent()):
                self._failed(absent, Report(wording.ABSENT, 1))

    def _release_if_done(self) -> None:
        for world in self._worlds:
            world.release_if_done()
        if all(world.is_done() for world in self._worlds):
            self._compare_accounts()

    def _compare_accounts(self) -> None:
        """Report collective calls that have differed, if all have returned."""
        # Programs in C, and programs without groups, send no accounts.
        if any(self._accounts.values()) and not self._failure and not self._mismatched:
            from sfm_kernel.endpoint.seen import disagreement

            accounts = [self._accounts[rank] for rank in sorted(self._accounts)]
            if mismatch := disagreement(accounts):
                self._mismatched = True
                self._err.say(f"sfm: {mismatch}\n")

    def _stop(self, number: int, status: int) -> None:
        """End all ranks with a signal; kill them after ``GRACE`` seconds or at the second call."""
        if self._stopped is not None:
            self._kill()
            return
        self._stopped = status
        self._hold()
        for child in self._running():
            takes_it = child.ready or number != signal.SIGINT
            child.signal(number if takes_it else signal.SIGKILL)
        self._timers[self._kill] = time.monotonic() + GRACE

    def _kill(self) -> None:
        for child in self._running():
            child.signal(signal.SIGKILL)

    def _watch(self) -> None:
        """Check whether the ranks wait for each other for ever."""
        if self._stopped is None and not self._ending:
            self.watching.check()
            self._timers[self._watch] = self.watching.due

    def _say(self, text: str) -> None:
        self._err.say("".join(f"sfm: {line}\n" for line in text.splitlines()))

    def _time_is_up(self) -> None:
        self._err.say(f"sfm: the ranks are ended after {self._timeout:g} s\n")
        self._say(self.watching.why())
        self._serve_streams(0.0)  # a rank that is in MPI_Init there has reported it
        self._say(wording.starting(self._running()))
        self._stop(signal.SIGINT, _STATUS_OF_TIMEOUT)

    def _lifeline_ended(self) -> None:
        assert self._lifeline is not None
        self._selector.unregister(self._lifeline)
        self._stop(signal.SIGTERM, 128 + signal.SIGTERM)

    def _pause(self) -> None:
        """Ctrl-Z: stop the ranks together with this process, and continue them with it."""
        for child in self._running():
            child.signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        for child in self._running():
            child.signal(signal.SIGCONT)
