"""Death at a chosen instruction: a small debugger over ptrace(2).

The victim needs no instrumentation and runs the code that ships. One run is stepped through and
says which instructions of the native core a call executes; in later runs a breakpoint register of
the CPU stops the victim in front of one of them, and there it is killed. Victims are forks of one
process, so that addresses are the same in all of them.

All calls for one victim must come from the thread that made its Tracer. x86-64 only: the words
below are offsets into its ``struct user``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import signal

POSSIBLE = platform.machine() == "x86_64"

PEEKDATA, PEEKUSER, POKEUSER, CONT, SINGLESTEP = 2, 3, 6, 7, 9
SYSCALL, SEIZE, INTERRUPT = 24, 0x4206, 0x4207
INSTRUCTION_POINTER, STACK_POINTER = 16 * 8, 19 * 8
BREAKPOINT_ADDRESS, BREAKPOINT_CONTROL = 848, 848 + 7 * 8
ENABLE_FIRST = 1  # length and kind 0: execution

WALL = 0x40000000  # wait for any thread, not only for processes

LOCKED = re.compile(rb"\xf0|[\x40-\x4f]?[\x86\x87]|\x0f\xae\xf0")
"""An atomic read-modify-write (lock or xchg), or mfence: a point where processes synchronize."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    result = int(_libc.ptrace(request, tid, address, data))
    if result == -1 and (number := ctypes.get_errno()):
        raise OSError(number, f"ptrace({request}): {os.strerror(number)}")
    return result


class Tracer:
    """Control over one thread of a process. The thread stands still between the calls here."""

    def __init__(self, pid: int, tid: int) -> None:
        self.pid, self.tid = pid, tid
        self.dead = False
        with open(f"/proc/{pid}/maps") as maps:
            lines = [line.split() for line in maps]
        (native,) = [fields for fields in lines if "x" in fields[1] and "_native" in fields[-1]]
        self._start, self._end = (int(text, 16) for text in native[0].split("-"))
        _ptrace(SEIZE, tid)
        _ptrace(INTERRUPT, tid)
        self._wait()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            self._code = os.pread(memory.fileno(), self._end - self._start, self._start)

    def walk(self, limit: int) -> list[int]:
        """Step until death, or through ``limit`` native instructions; return their addresses.

        Functions outside the native core (memcpy, Python) run at full speed.
        """
        places: list[int] = []
        cores = os.sched_getaffinity(0)
        here = {min(cores)}  # on one core: waking another one for each step takes far longer
        os.sched_setaffinity(self.tid, here)
        os.sched_setaffinity(0, here)
        try:
            signum, was_native = 0, False
            while not self.dead and len(places) < limit:
                signum = self._go(SINGLESTEP, signum)
                if self.dead:
                    break
                place = _ptrace(PEEKUSER, self.tid, INSTRUCTION_POINTER)
                if was_native and not self._is_native(place):
                    back = self._top_of_stack()
                    if self._is_native(back) and self.run_to(back, 1):
                        place = back
                if was_native := self._is_native(place):
                    places.append(place)
        finally:
            os.sched_setaffinity(0, cores)
        return places

    def _is_native(self, place: int) -> bool:
        return self._start <= place < self._end

    def _top_of_stack(self) -> int:
        """Just after a call: the address that it returns to."""
        return _ptrace(PEEKDATA, self.tid, _ptrace(PEEKUSER, self.tid, STACK_POINTER))

    def synchronizing(self, places: list[int]) -> set[int]:
        """Those of ``places`` at which the processes synchronize."""
        return {place for place in set(places) if LOCKED.match(self._code, place - self._start)}

    def run_to(self, place: int, times: int) -> bool:
        """Run until the thread is about to execute ``place`` for the ``times``-th time.

        False if the process died before.
        """
        _ptrace(POKEUSER, self.tid, BREAKPOINT_ADDRESS, place)
        _ptrace(POKEUSER, self.tid, BREAKPOINT_CONTROL, ENABLE_FIRST)
        signum = 0
        while not self.dead and times:
            signum = self._go(CONT, signum)
            if not self.dead and _ptrace(PEEKUSER, self.tid, INSTRUCTION_POINTER) == place:
                times -= 1
        if not self.dead:
            _ptrace(POKEUSER, self.tid, BREAKPOINT_CONTROL, 0)
        return not self.dead

    def pass_syscalls(self, limit: int) -> int:
        """Run until the thread has entered or left ``limit`` system calls; how many it has."""
        passed, signum = 0, 0
        while not self.dead and passed < limit:
            signum = self._go(SYSCALL, signum)
            passed += not self.dead
        return passed

    def kill(self) -> None:
        """SIGKILL to the process; returns when the thread is gone."""
        while not self.dead:
            os.kill(self.pid, signal.SIGKILL)
            self._wait()

    def _go(self, how: int, signum: int) -> int:
        """Go on as ``how`` says, delivering a signal; the one that stopped it, to be delivered."""
        with contextlib.suppress(ProcessLookupError):  # somebody else has killed it just now
            _ptrace(how, self.tid, 0, signum)
        return self._wait()

    def _wait(self) -> int:
        _, status = os.waitpid(self.tid, WALL)
        self.dead = not os.WIFSTOPPED(status)
        if self.dead:
            return 0
        stop = os.WSTOPSIG(status)
        # A status above 16 bits is an event of ptrace's own, as is a trap: nothing to deliver.
        return 0 if stop == signal.SIGTRAP or status >> 16 else stop
