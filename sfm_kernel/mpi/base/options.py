"""What a program has set in ``mpi4py.rc`` before it imported ``mpi4py.MPI``.

There is such a module where this package stands in for mpi4py. Elsewhere the defaults hold.
"""

from __future__ import annotations

import sys
from typing import Any

DEFAULTS: dict[str, Any] = {"initialize": True, "finalize": None, "errors": "exception"}
"""The options that are obeyed here. The others of ``mpi4py.rc`` choose between ways to the same."""


def option(name: str) -> Any:
    """The value of an option now."""
    return getattr(sys.modules.get("mpi4py.rc"), name, DEFAULTS[name])
