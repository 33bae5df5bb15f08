"""``__main__`` in worker processes: what its functions are pickled by is found there, too."""

from __future__ import annotations

import os
import runpy
import sys
import types
from typing import Any

RUN_NAME = "__worker__"
"""The ``__name__`` of the main program where it is imported by a worker."""

_importing: list[str] = []
"""The main program while it is being imported."""


def where(options: dict[str, Any]) -> dict[str, str]:
    """The main program of this process, for ``load``; empty if no other process can import it.

    None can in a notebook, with ``python -c``, and with ``python -m package``, where importing what
    runs is not meant; nor shall one if the executor was made with ``main=False``.
    """
    main = sys.modules["__main__"]
    sys.modules.setdefault(RUN_NAME, main)  # what comes back from workers has that name
    if not options.get("main", True):
        return {}
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name is not None:
        return {} if name.endswith("__main__") else {"name": name}
    path = getattr(main, "__file__", None)
    return {"path": os.path.abspath(path)} if path and os.path.exists(path) else {}


def load(place: dict[str, str], variables: dict[str, Any]) -> None:
    """Import the main program, with these global variables, and let it be ``__main__``."""
    module = types.ModuleType(RUN_NAME)
    module.__dict__.update(variables, __name__=RUN_NAME)
    sys.modules[RUN_NAME] = module
    _importing.extend(place.values())
    try:
        if "name" in place:
            found = runpy.run_module(place["name"], variables, RUN_NAME, alter_sys=True)
        elif "path" in place:
            found = runpy.run_path(place["path"], variables, RUN_NAME)
        else:
            found = {}
    finally:
        _importing.clear()
    module.__dict__.update(found)
    sys.modules["__main__"] = sys.modules[RUN_NAME] = module


def check_not_importing() -> None:
    """Raise RuntimeError if the main program starts processes while a worker imports it."""
    if _importing:
        raise RuntimeError(
            f"{_importing[0]} makes an executor whenever it is imported, and workers import it to "
            f"find its functions. Put what starts the program below `if __name__ == '__main__':`"
        )
