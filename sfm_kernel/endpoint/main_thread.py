"""The program's line that the main thread is in while it is in no call of this package."""

from __future__ import annotations

import threading

from sfm_kernel._native import set_main_line, stacks
from sfm_kernel.endpoint.bystanders import (
    ASKING,
    FUTURES,
    acting_threads,
    handlers_of_signals,
)
from sfm_kernel.endpoint.sleeping import Frame, line_of, waits_for_lock


def main_line() -> tuple[str, int, bool, bool] | None:
    """The program's line that the main thread is in, for observers; None if it is in none.

    Returns:
        The code as ``locate`` describes it, the line, whether the thread waits there for the user
        to type something, and whether only a message could release a lock that it waits for there.
    """
    main = threading.main_thread().ident or 0
    stack = stacks().get(main, [])
    located = line_of(main, stack)
    if not located:
        return None
    helpers = {thread.ident or 0 for thread in threading.enumerate() if thread.name == FUTURES}
    blocked = {main, threading.get_ident(), *helpers}
    held = waits_for_lock(main, stack) and not (
        any(thread.kind != "lock" for thread in acting_threads(blocked, False))
        or any(handlers_of_signals())
    )
    return *located, any(map(_awaits_input, stack)), held


def awaits_futures() -> bool:
    """Whether a thread of this package receives the results of the program's futures."""
    return any(thread.name in (FUTURES, ASKING) for thread in threading.enumerate())


def _awaits_input(frame: Frame) -> bool:
    """Whether it is a Jupyter kernel's, which waits for the user to type into the notebook."""
    code, _, module = frame
    return module.startswith("ipykernel.") and code.co_name == "_input_request"


set_main_line(main_line)
