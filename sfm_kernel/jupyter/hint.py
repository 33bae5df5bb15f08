"""An IPython extension for every notebook: says what to do first where ``send`` is not known yet.

It is loaded before anybody uses ``%sfm``, so it imports nothing of this package.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_NAMES = ("send", "recv", "recv_nb", "peek", "regcb", "sfm", "rank", "size")
_UNKNOWN = re.compile(rf"name '({'|'.join(_NAMES)})' is not defined")


def load_ipython_extension(shell: Any) -> None:
    """Look at the errors of cells from now on."""

    def look(result: Any) -> None:
        found = _UNKNOWN.match(str(result.error_in_exec))
        if not isinstance(result.error_in_exec, NameError) or found is None:
            return
        name = found[1]
        if name in ("rank", "size"):
            text = f"{name} is known on engines: begin the cell with `%%sfm`"
        else:
            text = f"{name} is known once engines run: `%sfm start 4` first"
        if "sfm_kernel.jupyter.engine" not in shell.extension_manager.loaded:
            print(f"sfm: {text}", file=sys.stderr)

    shell.events.register("post_run_cell", look)
