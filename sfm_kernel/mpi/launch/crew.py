"""The ranks of one launch: started, watched, ended; and the exit status they make.

One thread and one loop. A rank ends in one of these ways:
- it finishes, and waits until all have: nobody leaves while another may still send to it;
- it raises, exits with a status, or aborts: it says so, and the others are ended;
- it dies: the others are ended;
- it raises since it lost another rank: that one's failure is looked for first, for a moment.
What failed first is shown, and gives the exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sfm_kernel.directory import remove_world
from sfm_kernel.endpoint.seen import Account, disagreement
from sfm_kernel.mpi.launch import guardian, rank, reports
from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.relay import Output
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.watching import Watching

GRACE = 5.0
"""Seconds between asking a rank to end and killing it."""

_DOUBT = 1.0
"""Seconds in which the reason for a lost rank may come to light."""

_HINT = "The ranks go on waiting. Ctrl-C (Stop) ends them; so does the option --detect by itself."

_STATUS_OF_TIMEOUT = 124
_DIED = "died"
"""A kind of report that no rank can make."""

_OF_OTHERS = ("SFM_DIRECTORY", "SFM_KEY", "SFM_MPI_APPNUM")
"""In the environment: of a world between machines, and of a launcher that started this one."""


class Crew:
    """The ranks of one program, or of several.

    Args:
        programs: for each, how many ranks, and its words, as ``program.run`` takes them.
        label: whether each line of output says which rank it is from.
        timeout: seconds after which all are ended.
        lifeline: a descriptor whose end of file ends all.
        detect: whether calls that wait for each other for ever end with DeadlockDetected; else it
            is told, once.
    """

    def __init__(
        self,
        programs: Sequence[tuple[int, Sequence[str]]],
        *,
        label: bool = False,
        timeout: float | None = None,
        lifeline: int | None = None,
        detect: bool = False,
    ) -> None:
        self._pid = os.getpid()
        self._programs, self._label = programs, label
        self._timeout, self._lifeline = timeout, lifeline
        self._size = sum(size for size, _ in programs)
        self._world = f"mpi-{os.getpid()}-{secrets.token_hex(4)}"
        self._selector = selectors.PollSelector()  # epoll knows no files
        self._out = Output(1, self._selector)
        self._err = self._out if _same_file(1, 2) else Output(2, self._selector)
        self._children: list[Child] = []
        self._timers: dict[Callable[[], None], float] = {}
        self._failure: tuple[Child, Report] | None = None  # what failed first
        self._stopped: int | None = None  # the status, once all are ended from outside
        self._accounts: dict[int, Account] = {}
        self._mismatched = False  # calls that do not fit together have all returned
        self._ending = False
        self._note: Callable[[str], None]
        self._watching = Watching(self._world, self._pids, self._tell, end=detect, hint=_HINT)

    def run(self) -> int:
        """Run the program to its end; the exit status. No process and no file is left.

        Raises:
            OSError: a process could not be started; none is left.
            Forked: in each rank.
        """
        with _signals(self._selector, self._on_signal), _guardian(self._world) as self._note:
            try:
                self._start()
                while self._running():
                    self._step()
                self._end_others()  # there are none: it shows what failed
                self._write_all()
            finally:
                if os.getpid() == self._pid:
                    self._bury()
                    with contextlib.suppress(OSError):
                        remove_world(self._world)
                    self._note("done")
                else:
                    self._let_go()
        if self._stopped is not None:
            return self._stopped
        if self._failure is not None:
            return self._failure[1].status
        return 1 if self._mismatched else 0

    # ---- the loop

    def _start(self) -> None:
        self._timers[self._watch] = self._watching.due
        if self._timeout is not None:
            self._timers[self._time_is_up] = time.monotonic() + self._timeout
        if self._lifeline is not None:
            self._selector.register(self._lifeline, selectors.EVENT_READ, self._lifeline_ended)
        environment = {name: os.environ[name] for name in os.environ if name not in _OF_OTHERS}
        environment |= {"SFM_MPI_WORLD": self._world, "SFM_MPI_SIZE": str(self._size)}
        outputs, selector = (self._out, self._err), self._selector
        rank.prepare()
        for number, (size, words) in enumerate(self._programs):
            if len(self._programs) > 1:
                environment["SFM_MPI_APPNUM"] = str(number)
            for _ in range(size):
                nth = len(self._children)
                own = environment | {"SFM_MPI_RANK": str(nth)}
                child = Child(nth, words, own, outputs, self._label, selector, self._heard)
                self._children.append(child)
                self._note(f"+{child.pid}")

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.status is None]

    def _step(self) -> None:
        for child in self._children:
            child.watch()
        due = [*self._timers.values(), *filter(None, (one.due() for one in self._children))]
        rest = max(0.0, min(due) - time.monotonic()) if due else None
        for key, _ in self._selector.select(rest):
            key.data()
        now = time.monotonic()
        for child in self._children:
            child.show(now)
        for action in [action for action, at in self._timers.items() if at <= now]:
            del self._timers[action]
            action()
        if (self._out.broken or self._err.broken) and self._stopped is None:
            self._stop(signal.SIGTERM, 128 + signal.SIGPIPE)  # as `yes | head` ends

    def _write_all(self) -> None:
        """Write what is left, unless somebody ends this process meanwhile."""
        while self._stopped is None and not (self._out.flush() and self._err.flush()):
            for key, _ in self._selector.select():
                key.data()

    def _bury(self) -> None:
        """End what is left of the ranks, and of what they had started."""
        for child in self._running():
            child.signal(signal.SIGKILL)
        deadline = time.monotonic() + GRACE
        while any(child.status is None and not child.reap() for child in self._children):
            time.sleep(0.01)
        while left := [child for child in self._children if child.has_left_processes()]:
            if time.monotonic() > deadline:
                for child in left:
                    child.signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        for child in self._children:
            child.close()

    def _let_go(self) -> None:
        """In a new rank: what the launcher holds is none of its business."""
        for child in self._children:
            child.close()
        if self._lifeline is not None:
            os.close(self._lifeline)

    # ---- what happens

    def _heard(self, child: Child, report: Report) -> None:
        if report.kind == reports.STARTED:
            child.started = True
        elif report.kind == reports.FINISHED:
            child.finished = True
            self._accounts[child.rank] = json.loads(report.text or "{}")
            self._release_if_done()
        elif report.kind == reports.ABORTED and (self._ending or self._stopped is not None):
            child.release()  # all are being ended anyway: it need not wait for that
        elif self._stopped is not None:
            if report.kind == reports.INTERRUPTED:
                self._err.say(f"sfm: rank {child.rank} was in {report.text}\n", child.prefix)
            elif report.kind in (reports.RAISED, reports.EXITED):
                self._err.say(report.text, child.prefix)
        else:
            child.report = report
            self._failed(child, report)

    def _failed(self, child: Child, report: Report) -> None:
        if self._ending:
            return
        if self._failure is None or self._failure[1].kind == reports.LOST != report.kind:
            self._failure = child, report
        if report.kind == reports.LOST:
            self._timers.setdefault(self._end_others, time.monotonic() + _DOUBT)
        else:
            self._end_others()

    def _end_others(self) -> None:
        """Show what failed, and end the other ranks; it ends by itself unless it aborted."""
        if self._ending or self._failure is None:
            return
        self._ending = True
        failed, report = self._failure
        others = [one for one in self._running() if one is not failed]
        text = "" if report.kind == reports.INTERRUPTED else report.text
        if self._size > 1:
            text += f"sfm: rank {failed.rank} {_deed(failed, report)}; the other ranks were ended\n"
        elif report.kind not in (reports.RAISED, reports.EXITED):
            text += f"sfm: the program {_deed(failed, report)}\n"
        self._err.say(text, failed.prefix)
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
        if child.status and not child.report and not self._ending and self._stopped is None:
            self._failed(child, Report(_DIED, child.status))
        self._release_if_done()

    def _release_if_done(self) -> None:
        done = all(child.finished or child.status is not None for child in self._children)
        if done and len(self._children) == self._size:
            for child in self._children:
                child.release()
            accounts = [self._accounts[rank] for rank in sorted(self._accounts)]
            mismatch = None if self._failure or self._mismatched else disagreement(accounts)
            if mismatch is not None:
                self._mismatched = True
                self._err.say(f"sfm: {mismatch}\n")

    def _stop(self, number: int, status: int) -> None:
        """End all with a signal, and kill what is left a moment later, or at the second call."""
        if self._stopped is not None:
            self._kill()
            return
        self._stopped = status
        for child in self._running():
            ready = child.started or number != signal.SIGINT
            child.signal(number if ready else signal.SIGKILL)
        self._timers[self._kill] = time.monotonic() + GRACE

    def _kill(self) -> None:
        for child in self._running():
            child.signal(signal.SIGKILL)

    def _watch(self) -> None:
        """Look whether the ranks wait for each other for ever."""
        if self._stopped is None and not self._ending:
            self._watching.look()
            self._timers[self._watch] = self._watching.due

    def _pids(self) -> list[int]:
        return [child.pid for child in self._running()]

    def _tell(self, text: str) -> None:
        self._err.say("".join(f"sfm: {line}\n" for line in text.splitlines()))

    def _time_is_up(self) -> None:
        self._err.say(f"sfm: the ranks are ended after {self._timeout:g} s\n")
        self._stop(signal.SIGINT, _STATUS_OF_TIMEOUT)

    def _lifeline_ended(self) -> None:
        assert self._lifeline is not None
        self._selector.unregister(self._lifeline)
        self._stop(signal.SIGTERM, 128 + signal.SIGTERM)

    def _pause(self) -> None:
        """Ctrl-Z: the ranks stop and go on with this process."""
        for child in self._running():
            child.signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        for child in self._running():
            child.signal(signal.SIGCONT)


def _deed(child: Child, report: Report) -> str:
    if report.kind == reports.ABORTED:
        return f"called Abort({report.status})"
    if report.kind == reports.INTERRUPTED:
        return f"was interrupted in {report.text}"
    if report.kind == _DIED and child.killed_by:
        return f"was killed by {child.killed_by}"
    if report.kind in (_DIED, reports.EXITED):
        return f"ended with exit status {report.status}"
    return "raised this"


def _same_file(one: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:
        return False


@contextmanager
def _signals(selector: selectors.BaseSelector, taken: Callable[[int], None]) -> Iterator[None]:
    """Have ``taken(number)`` called by the selector's loop for each signal that comes."""

    def take() -> None:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(read, 512):
                taken(number)

    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    selector.register(read, selectors.EVENT_READ, take)
    former = {number: signal.signal(number, lambda *_: None) for number in rank.SIGNALS}
    former_fd = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(former_fd)
        for number, handler in former.items():
            signal.signal(number, handler)
        selector.unregister(read)
        os.close(read)
        os.close(write)


@contextmanager
def _guardian(world: str) -> Iterator[Callable[[str], None]]:
    """A process that ends the ranks if this one is killed; yields how to tell it who lives."""
    with subprocess.Popen(
        [sys.executable, "-P", "-S", guardian.__file__, world],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # not killed together with this process's group
    ) as process:
        assert process.stdin is not None

        def note(line: str) -> None:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()

        yield note
