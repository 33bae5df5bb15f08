"""The directive ``recorded``: a run of a program of docs/programs, which the reader can play with.

Each build runs the programs, and shows the files that they have recorded; see
``sfm_kernel.observe.record``.
"""

from __future__ import annotations

import subprocess
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "recorded"
"""The folder of the files, in the documentation."""

SECONDS = 120.0
"""The time that a program may take; only one that hangs needs it."""


class Recorded(SphinxDirective):
    """The argument is the program's path; the content describes the run to those who see none."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        program = Path(self.env.srcdir, self.arguments[0])
        if not program.is_file():
            raise self.error(f"there is no program {self.arguments[0]}")
        file = f"{FOLDER}/{program.stem}.html"
        title = escape(" ".join(self.content))
        shown = (
            f'<iframe class="sfm-recorded" src="{file}" title="{title}" loading="lazy"></iframe>\n'
            f'<p><a href="{file}">The same, on a page of its own</a></p>'
        )
        return [nodes.raw("", shown, format="html")]


def record(app: Sphinx, problem: Exception | None) -> None:
    """Run the programs.

    Raises:
        CalledProcessError: one has failed; its error is on stderr.
    """
    if problem is None and app.builder.format == "html":
        folder = Path(app.outdir, FOLDER)
        folder.mkdir(exist_ok=True)
        for program in Path(app.srcdir, "programs").glob("*.py"):
            file = folder / f"{program.stem}.html"
            subprocess.run([sys.executable, program, file], check=True, timeout=SECONDS)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("recorded", Recorded)
    app.connect("build-finished", record)
    return {"parallel_read_safe": True}
