"""Threads that sleep until another thread, a callback or a task of the program wakes them.

They wait for a lock: their own, or that of an event, a queue, a future, or another thread's end. A
loop of asyncio sleeps as well, if no task of it waits for time to pass, for a file or a process.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

from sfm_kernel._native import frame_of, sleeps
from sfm_kernel.endpoint.seen import is_own, is_users_file, locate

Frame = tuple[CodeType, int, str]
"""A frame's code, its line, and the name of its module: see ``_native.stacks``."""

_WAITING = frozenset(
    {
        "concurrent.futures._base",
        "concurrent.futures.thread",
        "queue",
        "sfm_kernel.farm",
        "threading",
    }
)
"""Modules whose functions wait for locks of Python that the program's threads release."""

_CALLS = frozenset({"acquire", "get", "put", "join", "result", "wait"})
"""Methods in native code that wait for locks of Python. Elsewhere native code may wait, too: it has
other locks, and other threads."""

_LOOP = "asyncio.base_events"
"""The module in whose functions a loop of asyncio waits."""


def is_users(frame: Frame) -> bool:
    return is_users_file(frame[0].co_filename)


def waits_for_lock(ident: int, stack: list[Frame]) -> bool:
    """Whether a thread with this stack waits for a lock of Python, if it waits for any."""
    inner = inner_frames(stack)
    if any(module == _LOOP for _, _, module in inner):
        loop = _loop_of(ident)
        return loop is not None and _sleeps(loop)
    if not inner:
        return bool(stack) and _may_wait(*stack[0][:2])
    return all(module in _WAITING for _, _, module in inner)


def is_asleep(thread: threading.Thread | None, stack: list[Frame]) -> bool:
    """Whether a thread waits for a lock, and has no limit of time."""
    if thread is None or thread.ident is None:
        return False
    # After a fork, `native_id` may be that of the parent's thread.
    native = os.getpid() if thread is threading.main_thread() else thread.native_id
    return native is not None and sleeps(native) and waits_for_lock(thread.ident, stack)


def inner_frames(stack: list[Frame]) -> list[Frame]:
    """The frames of libraries that the program's innermost line has called, innermost first."""
    return list(itertools.takewhile(lambda frame: not is_users(frame), stack))


def line_of(ident: int, stack: list[Frame]) -> tuple[str, int] | None:
    """The program's line that a thread is in, for observers: its code, and the line.

    With the function that it has called there, if that waits for a lock or is this package's; and
    of an event loop the line that a task of the program is in.
    """
    inner = inner_frames(stack)
    if any(module == _LOOP for _, _, module in inner) and (awaiting := _awaiting(ident)):
        stack, inner = awaiting, inner_frames(awaiting)
    if len(inner) == len(stack):
        return None
    code, line, _ = stack[len(inner)]
    name, called = code.co_name, inner[-1] if inner else None
    if called and (title := _title(called)):
        name = f"{'' if name.startswith('<') else name}, in {title}".removeprefix(", ")
    located = locate(code.co_filename, name)
    return (located, line) if located else None


def _title(called: Frame) -> str:
    """The function of a library that waits, as the program calls it; "" if it is any other."""
    code, _, module = called
    if is_own(code.co_filename):
        return code.co_name
    return code.co_qualname if module in _WAITING or module.startswith("asyncio.") else ""


@functools.lru_cache(256)
def _may_wait(code: CodeType, line: int) -> bool:
    """Whether this line takes a lock, or calls something that does."""
    now = 0
    for found in dis.get_instructions(code):
        positions = found.positions
        now = positions.lineno if positions and positions.lineno else now
        takes = found.opname in ("BEFORE_WITH", "LOAD_SPECIAL") or found.argval in _CALLS
        if now == line and takes:
            return True
    return False


# ---- loops of asyncio ----


def _loop_of(ident: int) -> Any:
    """The event loop that a thread runs; None if it runs none, or nobody can tell."""
    tasks = getattr(sys.modules.get("asyncio"), "tasks", None)
    for name in ("_scheduled_tasks", "_all_tasks"):  # since Python 3.12, and before
        try:
            for task in list(getattr(tasks, name, ())):
                loop = task.get_loop()
                if getattr(loop, "_thread_id", None) == ident:
                    return loop
        except RuntimeError:  # another thread has made a task meanwhile
            return None
    return None


def _sleeps(loop: Any) -> bool:
    """Whether only other threads could wake an event loop: it has no timers, files or processes."""
    timers = [timer for timer in list(getattr(loop, "_scheduled", ())) if not timer.cancelled()]
    selector = getattr(loop, "_selector", None)
    if timers or selector is None or getattr(loop, "_ready", True):
        return False
    keys = list((selector.get_map() or {}).values())
    return all(_is_of_loop(handle) for key in keys for handle in key.data if handle is not None)


def _is_of_loop(handle: Any) -> bool:
    """Whether a loop reads a file for itself: to be woken, or for a Jupyter kernel's front end."""
    callback = getattr(handle, "_callback", None)
    module = getattr(callback, "__module__", None)
    wakes = getattr(callback, "__name__", "") == "_read_from_self"
    return wakes or module == "tornado.platform.asyncio"


def _awaiting(ident: int) -> list[Frame] | None:
    """The frames of a task of the program, innermost first; of one that waits for no other task."""
    import asyncio

    loop = _loop_of(ident)
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()) if loop else ()
    stacks = [list(_frames(task.get_coro())) for task in tasks if not _awaits_task(task)]
    return next((stack[::-1] for stack in stacks if any(map(is_users, stack))), None)


def _awaits_task(task: Any) -> bool:
    """Whether a task waits for another one, or for several by ``gather``."""
    names = {kind.__name__ for kind in type(getattr(task, "_fut_waiter", None)).__mro__}
    return not names.isdisjoint({"Task", "_GatheringFuture"})


def _frames(coroutine: Any) -> Iterator[Frame]:
    """The frames of a coroutine and of those that it awaits, outermost first."""
    while coroutine is not None and (frame := frame_of(coroutine)):
        if not is_own(frame[0].co_filename):
            yield frame
        coroutine = getattr(coroutine, "cr_await", None)
