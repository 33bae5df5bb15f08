"""Bystanders: the parts of a program that could go on while a thread is blocked, or after its end.

These are other threads, callbacks, signal handlers, functions that a call runs while it waits, and
tasks of an event loop. Observers report no deadlock for a process that has a bystander. A thread is
classified by the function that it runs, not by its object's name or creator. Each blocked call asks
for the bystanders ten times a second, so the search must be cheap: it takes some 30 us.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sfm_kernel._native import OTHERS_BYTES, set_bystanders, set_main_line
from sfm_kernel.endpoint.callbacks import registered
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import OWN, locate

_SERVING = (
    "IPython.core.history:",
    "_pydev",
    "debugpy.",
    "ipykernel.",
    "ipyparallel._async:",
    "ipyparallel.client.client:Client._io_main",
    "ipyparallel.cluster.",
    "ipyparallel.util:_OutputProducingThread.",
    "jupyter_client.threaded:",
    "pydevd",
    "tqdm._monitor:",
    "zmq.",
)
"""The outermost functions of threads that serve the front end, also by ZeroMQ: module and name.
They send none of the program's messages, unless they run one of the user's functions."""

_STARTING = ("threading", "_pydev_bundle.pydev_monkey")
"""Modules whose functions call those of threads; the second is a debugger's."""

_FRONT_END = frozenset("IPython _signal asyncio debugpy ipykernel ipyparallel signal zmq".split())  # noqa: SIM905
"""Packages whose handlers of signals, tasks and timers are of no concern to the program."""

_LIBRARY = os.path.dirname(os.__file__) + os.sep

_NUMBERS = sorted(signal.valid_signals())
"""Read with ``_signal.getsignal``: the one in ``signal`` takes ten times as long."""

_SHOWN = 6
"""Bystanders that observers see one by one; further ones are counted."""

CHECK_EVERY = 0.25
"""Seconds between two checks whether the bystanders that a program has left have ended."""


class Bystander(NamedTuple):
    """See ``observe/schema.json``, "other"; ``key`` identifies it within the process."""

    key: object
    kind: str
    name: str
    code: CodeType | None = None
    line: int = 0


hooks: list[Callable[[], Iterable[Callable[..., Any]]]] = []
"""Added by libraries: each returns the user's functions that a waiting call now runs meanwhile."""

_cell: int | None = None
_leftovers: dict[object, int | None] = {}
"""Bystanders from earlier cells, by key: the number of the latest cell when each appeared."""


def begin_cell(number: int | None) -> None:
    """A cell of this number begins on this thread: all present bystanders are of earlier cells."""
    global _cell, _leftovers
    present = _all_bystanders({threading.get_ident()}, idle=True)
    _leftovers = {bystander.key: _leftovers.get(bystander.key, _cell) for bystander in present}
    _cell = number


def bystanders(thread: int = 0, *, loop: Any = None, over: bool = False) -> str:
    """The bystanders of a blocked thread, as JSON for observers; "" if there are none.

    Args:
        thread: its identity; this one if 0.
        loop: an event loop, whose tasks and timers could go on as well.
        over: the program (or cell) has ended, and left the bystanders behind.
    """
    found = _all_bystanders({thread or threading.get_ident()})
    if loop is not None:
        found += _scheduled(loop)
    return _text(found, over) if found else ""


def rest(endpoints: Iterable[Any], ended: Callable[[float | None], bool]) -> None:
    """Show observers that the program has ended, and the bystanders that it has left.

    Blocks: until ``ended(seconds)`` returns true; its argument is the time that it may wait.
    """
    others: str | None = None
    while True:
        before, others = others, bystanders(over=True)
        if others or before != others:  # repeated: a bystander may have made a call since
            for sfm in endpoints:
                sfm.show_end(others)
        if ended(CHECK_EVERY if others else None):
            return


def _all_bystanders(blocked: set[int], *, idle: bool = False) -> list[Bystander]:
    return [*_threads(blocked, idle), *_callbacks(), *_signals(), *_hooks()]


# ---- threads ----


def _threads(blocked: set[int], idle: bool) -> Iterator[Bystander]:
    """Threads whose functions could act for the program; also those made with ``_thread``.

    ``idle``: include workers of thread pools that have no work.
    """
    known = {thread.ident: thread for thread in threading.enumerate()}  # the oldest first
    frames = sys._current_frames()
    for ident in dict.fromkeys([*known, *frames]):
        if ident in blocked or ident not in frames:
            continue
        thread = known.get(ident)
        stack = _stack(frames[ident])
        if _acts(thread, stack, idle):
            name = "" if thread is None else thread.name
            yield Bystander(ident, "thread", name, *_location(thread, stack))


def _location(
    thread: threading.Thread | None, stack: list[FrameType]
) -> tuple[CodeType | None, int]:
    """The user's line that a thread is in; without one, the function that it runs or will run."""
    if shown := next(filter(_is_users, stack), None) or _outermost(stack):
        return shown.f_code, shown.f_lineno
    code = _code(getattr(thread, "function", None) or getattr(thread, "_target", None))
    return code, code.co_firstlineno if code else 0


def _stack(frame: FrameType | None) -> list[FrameType]:
    """The frame and its callers, innermost first."""
    stack = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    return stack


def _outermost(stack: list[FrameType]) -> FrameType | None:
    """The frame of a thread's function; None if that is native, or has not begun."""
    for frame in reversed(stack):
        if frame.f_globals.get("__name__") not in _STARTING:
            return frame
    return None


def _acts(thread: threading.Thread | None, stack: list[FrameType], idle: bool) -> bool:
    name = "" if thread is None else thread.name
    outermost = _outermost(stack)
    if thread is None and outermost is not None and outermost.f_code is main_line.__code__:
        return False  # it reads the main thread's line for an observer
    if outermost is None:
        return not (name.startswith("sfm-network-") and _is_native(thread))
    function = f"{outermost.f_globals.get('__name__')}:{outermost.f_code.co_qualname}"
    if function == "concurrent.futures.thread:_worker":
        return idle or not _is_idle(stack)
    if name.startswith("sfm-") and outermost.f_code.co_filename.startswith(OWN):
        serves = not name.startswith(("sfm-mpi", "sfm-futures"))  # those send for the program
    else:
        serves = function.startswith(_SERVING)
    return not serves or any(map(_is_users, stack))


def _is_native(thread: threading.Thread | None) -> bool:
    """Whether the thread's function is a method of the native core: it serves an inbox."""
    owner = getattr(getattr(thread, "_target", None), "__self__", None)
    return type(owner).__module__ == "sfm_kernel._native"


def _is_idle(stack: list[FrameType]) -> bool:
    """Whether a worker of a ThreadPoolExecutor waits for work, and its queue is empty.

    Only a thread that could go on can give it work, and that one is a bystander itself.
    """
    innermost = stack[0]
    if innermost.f_code.co_qualname != "_worker":
        return False
    variables = innermost.f_locals
    queue = variables.get("work_queue")
    return variables.get("work_item") is None and queue is not None and bool(queue.empty())


def _is_users(frame: FrameType) -> bool:
    return _is_users_file(frame.f_code.co_filename)


@functools.lru_cache(1024)
def _is_users_file(file: str) -> bool:
    """Whether code of this file is the user's: not a library's, and not this package's."""
    if file.startswith(("<frozen ", "<decorator-gen", OWN, _LIBRARY)):
        return False
    return not any(part in file for part in ("/site-packages/", "/dist-packages/"))


def main_line() -> tuple[str, int, bool] | None:
    """The program's line that the main thread is in, for observers; None if it is in none.

    Returns:
        The code as ``locate`` describes it, the line, and whether the thread waits there for the
        user to type something.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = _stack(frame)
    shown = next(filter(_is_users, stack), None)
    code = shown and locate(shown.f_code.co_filename, shown.f_code.co_name)
    return (code, shown.f_lineno, any(map(_awaits_input, stack))) if shown and code else None


def _awaits_input(frame: FrameType) -> bool:
    """Whether it is a Jupyter kernel's, which waits for the user to type into the notebook."""
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("ipykernel.") and frame.f_code.co_name == "_input_request"


# ---- functions that are called ----


def _callbacks() -> Iterator[Bystander]:
    for callback in registered():
        name = call("regcb", callback.template)
        yield _function("callback", name, callback.function, id(callback))


def _signals() -> Iterator[Bystander]:
    """Signal handlers in Python, and a timer."""
    timed = False
    for number in _NUMBERS:
        handler = getsignal(number)
        if callable(handler) and not _is_of_front_end(handler):
            timed = timed or number == signal.SIGALRM
            yield _function("signal", _name_of(number), handler)
    if not timed and signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        yield Bystander("timer", "timer", "SIGALRM")


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a realtime signal
        return f"signal {number}"


def _hooks() -> Iterator[Bystander]:
    for hook in hooks:
        for function in hook():
            if not _is_own(function):
                yield _function("hook", _title(function), function)


def _function(kind: str, name: str, function: Callable[..., Any], key: object = None) -> Bystander:
    code = _code(function)
    key = key or (kind, name, id(function))
    return Bystander(key, kind, name, code, code.co_firstlineno if code else 0)


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__func__", function)


def _code(function: Any) -> CodeType | None:
    function = _unwrapped(function)
    code = getattr(function, "__code__", None)
    if code is None:  # a callable object
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004
    return code if isinstance(code, CodeType) else None


def _title(function: Any) -> str:
    function = _unwrapped(function)
    return str(getattr(function, "__name__", type(function).__name__))


def _is_own(function: Any) -> bool:
    code = _code(function)
    return code is not None and code.co_filename.startswith(OWN)


def _is_of_front_end(function: Any) -> bool:
    module = getattr(_unwrapped(function), "__module__", None)
    return _is_own(function) or str(module).partition(".")[0] in _FRONT_END


# ---- an event loop ----


def _scheduled(loop: Any) -> list[Bystander]:
    """The user's tasks and timers in an event loop, whose thread may go on with them."""
    import asyncio  # a process with a loop has imported it; others need not pay for it

    found = []
    for task in asyncio.all_tasks(loop):
        inside = task.get_coro()
        frame = getattr(inside, "cr_frame", None)
        module = "" if frame is None else str(frame.f_globals.get("__name__"))
        is_own = frame is not None and frame.f_code.co_filename.startswith(OWN)
        if not is_own and module.partition(".")[0] not in _FRONT_END - {"asyncio"}:
            code, line = (frame.f_code, frame.f_lineno) if frame else (None, 0)
            found.append(Bystander(id(task), "task", task.get_name(), code, line))
    for timer in list(getattr(loop, "_scheduled", ())):  # of asyncio's own loops
        if not timer.cancelled():
            functions = _called_by(timer._callback, timer._args or ())
            found += [_function("task", _title(function), function) for function in functions]
    return found


def _called_by(function: Any, arguments: Iterable[Any]) -> Iterator[Any]:
    """The user's functions that a timer of asyncio calls, directly or through other functions."""
    inner = getattr(function, "__self__", None)
    periodic = getattr(inner, "callback", None)  # tornado's PeriodicCallback
    if isinstance(function, functools.partial):
        yield from _called_by(function.func, function.args)
    elif str(getattr(function, "__module__", "")).startswith("tornado."):
        candidates = [periodic] if periodic is not None else arguments
        for candidate in filter(callable, candidates):
            yield from _called_by(candidate, ())
    elif not _is_of_front_end(function):
        yield function


# ---- as a text ----


def _text(found: list[Bystander], over: bool) -> str:
    """JSON that fits into a segment: for each its kind, name, code, line, and cell if left over."""
    rows: list[list[Any]] = []
    for key, kind, name, code, line in found[:_SHOWN] if len(found) > _SHOWN + 1 else found:
        cell = _leftovers.get(key, _cell if over else None)
        location = code and locate(code.co_filename, code.co_name, always=True)
        rows.append([kind, name[:60], location or "", line, cell])
    rest = len(found) - len(rows)
    while True:
        more = [["more", str(rest), "", 0, None]] if rest else []
        text = json.dumps(rows + more, ensure_ascii=False, separators=(",", ":"))
        if len(text.encode(errors="replace")) <= OTHERS_BYTES:
            return text.encode(errors="replace").decode()
        longest = max(rows, key=lambda row: len(row[2]))
        if longest[2]:
            longest[2:4] = "", 0
        else:
            rows.pop()
            rest += 1


set_bystanders(bystanders)
set_main_line(main_line)
