"""What an engine does not have: a keyboard, and a front end that could restart it.

A cell that asks for one of them ends with a sentence that says what to do instead.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NoReturn

from sfm_kernel.errors import SFMError


class Unattended(SFMError):
    """A cell on an engine asks for a keyboard."""


def install(shell: Any, name: object) -> None:
    """Have ``input``, ``breakpoint``, ``exit`` and ``sys.exit`` end a cell of this engine only.

    Args:
        name: the engine's.
    """
    kernel = shell.kernel
    ask = f"ask in the notebook, and send engine {name} the answer: `send(dest={name!r}, answer=…)`"
    kernel.raw_input = _refusal(f"input() waits for a keyboard, and an engine has none: {ask}")
    kernel.getpass = _refusal(f"getpass() waits for a keyboard, and an engine has none: {ask}")
    sys.breakpointhook = _refusal(
        "breakpoint() opens a debugger at a keyboard, and an engine has none: raise an error "
        f"there, and `%sfm debug {name}` shows the values"
    )
    for leave in ("exit", "quit"):
        shell.user_ns[leave] = sys.exit
    # IPython's advice is for a terminal.
    warnings.filterwarnings("ignore", "To exit: use 'exit'")
    show = shell.showtraceback

    def showtraceback(*args: Any, **kwargs: Any) -> None:
        value = sys.exc_info()[1]
        if not isinstance(value, SystemExit):
            show(*args, **kwargs)
            return
        code = "" if value.code is None else f"{value.code}: "
        text = f"{code}it ends this cell, not the engine: `%sfm restart {name}` begins anew"
        shell._showtraceback(SystemExit, text, [f"SystemExit: {text}"])

    shell.showtraceback = showtraceback


def _refusal(text: str) -> Any:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise Unattended(text)

    return refuse
