"""An IPython extension for every notebook: loads this package's where a cell names the package, and
says what to do first where ``send`` is not known yet.

Most notebooks of an environment do not use this package, so this module imports nothing of it.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_NAMES = ("send", "recv", "recv_nb", "peek", "regcb", "sfm", "rank", "size")
_UNKNOWN = re.compile(rf"name '({'|'.join(_NAMES)})' is not defined")


def load_ipython_extension(shell: Any) -> None:
    """Look at cells, and at their errors, from now on."""

    def load(info: Any) -> None:
        if "sfm_kernel" not in str(info.raw_cell):
            return
        shell.events.unregister("pre_run_cell", load)
        events = {"pre_execute": (), "pre_run_cell": (info,)}
        known = {event: list(shell.events.callbacks[event]) for event in events}
        shell.extension_manager.load_extension("sfm_kernel")
        for event, arguments in events.items():  # of this cell, for what it has loaded
            for call in shell.events.callbacks[event]:
                if call not in known[event]:
                    call(*arguments)

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

    shell.events.register("pre_run_cell", load)
    shell.events.register("post_run_cell", look)
