"""Bystanders: the parts of a program that could go on while a thread is blocked, or after its end.

These are other threads, callbacks, signal handlers, functions that a call runs while it waits, and
tasks of an event loop. Observers report no deadlock for a process that has a bystander. A thread is
classified by the function that it runs, not by its object's name or creator. Each blocked call asks
for the bystanders up to ten times a second (`native/src/calls/blocked.rs`), so the search must be
cheap: it takes some 30 us, and several times as long where the caches have been used since.
"""

from __future__ import annotations

import functools
import itertools
import json
import signal
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from sfm_kernel._native import (
    OTHERS_BYTES,
    frame_of,
    native_handlers,
    set_bystanders,
    stacks,
)
from sfm_kernel.endpoint.callbacks import Callback, registered
from sfm_kernel.endpoint.calls import call
from sfm_kernel.endpoint.seen import OWN, locate
from sfm_kernel.endpoint.sleeping import Frame, is_asleep, is_users, line_of

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
    "sfm_kernel.directory.client:",  # takes in the server's updates, in a thread made by the core
    "sfm_kernel.directory.remote:",  # as that
    "sfm_kernel.endpoint.main_thread:main_line",  # for an observer, in such a thread
    "tqdm._monitor:",
    "zmq.",
)
"""The outermost functions of threads that serve the front end, also by ZeroMQ: module and name.
They send none of the program's messages, unless they run one of the user's functions."""

FUTURES = "sfm-futures"
"""The thread that receives the results of an executor, in a process that is in one world only. In
another world's view nobody could tell what such a thread waits for, so it has a longer name."""

ASKING = "sfm-asking"
"""The thread that receives the answers to remote calls while the program goes on."""

_WORKER = "concurrent.futures.thread:_worker"
"""The outermost function of a ThreadPoolExecutor's threads."""

_STARTING = ("threading", "_pydev_bundle.pydev_monkey")
"""Modules whose functions call those of threads; the second is a debugger's."""

_FRONT_END = frozenset("IPython _signal asyncio debugpy ipykernel ipyparallel signal zmq".split())  # noqa: SIM905
"""Packages whose handlers of signals, tasks and timers are of no concern to the program."""

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
    located: tuple[str, int] | None = None
    """The line as ``sleeping.line_of`` describes it."""


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
    found: dict[object, Bystander] = {}
    parts = (acting_threads(blocked, idle), _callbacks(), handlers_of_signals(), _hooks())
    for bystander in itertools.chain.from_iterable(parts):
        found.setdefault(bystander.key, bystander)  # one that runs is found in its line first
    return list(found.values())


# ---- threads ----


def acting_threads(blocked: set[int], idle: bool) -> Iterator[Bystander]:
    """Threads whose functions could act for the program; also those made with ``_thread``.

    ``idle``: include workers of thread pools that have no work.
    """
    known = {thread.ident: thread for thread in threading.enumerate()}  # the oldest first
    running = stacks()
    for ident in dict.fromkeys([*known, *running]):
        if ident is None or ident in blocked or ident not in running:
            continue
        thread, stack = known.get(ident), running[ident]
        if _acts(thread, stack, idle):
            if callback := _is_network(thread) and _running(stack):
                name = call("regcb", callback.template)
                yield Bystander(id(callback), "callback", name, *_location(thread, stack))
                continue
            name = "" if thread is None else thread.name
            kind = "lock" if is_asleep(thread, stack) else "thread"
            found = _location(thread, stack)
            yield Bystander(ident, kind, name, *found, line_of(ident, stack))


def other_threads() -> bool:
    """Whether another thread than this one could act for the program.

    Beside a callback, which runs in the network thread, the main thread is none.
    """
    this = threading.current_thread()
    waiting = {threading.main_thread().ident or 0} if _is_network(this) else set()
    return any(acting_threads({threading.get_ident()} | waiting, False))


def _running(stack: list[Frame]) -> Callback | None:
    """The callback that a network thread runs, in its line; None if it was removed meanwhile."""
    codes = [code for code, _, _ in stack]
    return next((known for known in registered() if _code(known.function) in codes), None)


def _location(thread: threading.Thread | None, stack: list[Frame]) -> tuple[CodeType | None, int]:
    """The user's line that a thread is in; without one, the function that it runs or will run."""
    if shown := next(filter(is_users, stack), None) or _outermost(stack):
        return shown[:2]
    code = _code(getattr(thread, "function", None) or getattr(thread, "_target", None))
    return code, code.co_firstlineno if code else 0


def _outermost(stack: list[Frame]) -> Frame | None:
    """The frame of a thread's function; None if that is native, or has not begun."""
    return next((frame for frame in reversed(stack) if frame[2] not in _STARTING), None)


def _acts(thread: threading.Thread | None, stack: list[Frame], idle: bool) -> bool:
    name = "" if thread is None else thread.name
    outermost = _outermost(stack)
    if outermost is None:
        return not _is_network(thread)
    code, _, module = outermost
    function = f"{module}:{code.co_qualname}"
    if thread is not None and function == _WORKER:
        return idle or not _is_idle(thread, stack)
    if name.startswith("sfm-") and code.co_filename.startswith(OWN):
        serves = not name.startswith(("sfm-mpi", FUTURES))  # those send for the program
    else:
        serves = function.startswith(_SERVING)
    return not serves or any(map(is_users, stack))


def _is_network(thread: threading.Thread | None) -> bool:
    """Whether the thread serves an inbox: its function is a method of the native core."""
    owner = getattr(getattr(thread, "_target", None), "__self__", None)
    is_native = type(owner).__module__ == "sfm_kernel._native"
    return thread is not None and thread.name.startswith("sfm-network-") and is_native


def _is_idle(thread: threading.Thread, stack: list[Frame]) -> bool:
    """Whether a worker of a ThreadPoolExecutor waits for work, and its queue is empty.

    Only a thread that could go on can give it work, and that one is a bystander itself.
    """
    from concurrent.futures.thread import _threads_queues  # the thread's function stands there

    queue = _threads_queues.get(thread)
    return stack[0] == _outermost(stack) and queue is not None and queue.empty()


# ---- functions that are called ----


def _callbacks() -> Iterator[Bystander]:
    for callback in registered():
        name = call("regcb", callback.template)
        found = _function("callback", name, callback.function, id(callback))
        yield found._replace(located=callback.failed)


def handlers_of_signals() -> Iterator[Bystander]:
    """Signal handlers in Python and of extensions, and a timer."""
    native = native_handlers()
    yield from (Bystander(("native", n), "signal", _name_of(n)) for n in native)
    timed = signal.SIGALRM in native
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
        code, line, module = frame_of(task.get_coro()) or (None, 0, "")
        is_own = code is not None and code.co_filename.startswith(OWN)
        if not is_own and module.partition(".")[0] not in _FRONT_END - {"asyncio"}:
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
    for key, kind, name, code, line, located in (
        found[:_SHOWN] if len(found) > _SHOWN + 1 else found
    ):
        cell = _leftovers.get(key, _cell if over else None)
        location = code and locate(code.co_filename, code.co_name, always=True)
        rows.append([kind, name[:60], *(located or (location or "", line)), cell])
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
