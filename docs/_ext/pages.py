"""Pages whose text is kept elsewhere: the notebooks, CONTRIBUTING, SECURITY and CHANGELOG.

Links in them, and links to them, lead somewhere on a repository's host, too. Here they get the
addresses that they have in the documentation.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from sphinx.application import Sphinx

INCLUDE = re.compile(r"```\{include\} \.\./(\w+\.md)\n```")
PAGES = {"SECURITY.md": "trust.md", "CONTRIBUTING.md": "contributing.md",
         "CHANGELOG.md": "changelog.md", "README.md": "index.md"}  # fmt: skip
NOT_RUN = """\
:::{note}
This notebook is shown without outputs: its lab makes network namespaces, which needs rights that
the build of this documentation does not have. `make demo` runs it where that is allowed.
:::"""


def copy_notebooks(app: Sphinx) -> None:
    """Copy ../notebooks to the folder of the same name here, and no solutions.

    A copy that is as it should be is not written again, so that Sphinx sees what has changed.
    """
    folder = Path(app.srcdir, "notebooks")
    folder.mkdir(exist_ok=True)
    sources = sorted(Path(app.srcdir).parent.joinpath("notebooks").glob("*.ipynb"))
    for path in {*folder.glob("*.ipynb")} - {folder / source.name for source in sources}:
        path.unlink()
    for source in sources:
        notebook = nbformat.read(source, as_version=4)
        if any(source.match(f"{one}.ipynb") for one in app.config.nb_execution_excludepatterns):
            title, _, rest = notebook.cells[0].source.partition("\n")
            notebook.cells[0].source = f"{title}\n\n{NOT_RUN}\n{rest}"
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace(
                    "](quick-reference.html)", "](../../notebooks/quick-reference.html)"
                )
        copy, text = folder / source.name, nbformat.writes(notebook) + "\n"
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace includes by their text, and addresses by those of the documentation."""
    if page.startswith("notebooks/"):
        return

    def text(found: re.Match[str]) -> str:
        path = Path(app.srcdir).parent / found[1]
        app.env.note_dependency(str(path))
        return path.read_text()

    said = INCLUDE.sub(text, source[0])
    said = re.sub(r"\]\(\.\./(notebooks/[\w-]+\.ipynb)\)", r"](\1)", said)
    said = re.sub(r"\]\(docs/", "](", said)
    source[0] = re.sub(r"\]\((?:\.\./)?([A-Z]+\.md)\)", lambda one: f"]({PAGES[one[1]]})", said)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True}
