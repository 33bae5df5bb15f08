"""Buttons on the pages of notebooks: download, and open on Binder.

The templates' variable ``binder`` is Binder's address of this repository, or empty if it is not
known where that is: GitHub's workflows say it, and otherwise the clone knows where it comes from.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def binder(environment: Mapping[str, str], origin: str) -> str:
    """Binder's address of a repository; "" if it is not on GitHub.

    Args:
        environment: the variables of a workflow.
        origin: the address from which the repository was cloned.
    """
    found = re.search(r"github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", origin)
    name = environment.get("GITHUB_REPOSITORY") or (found[1] if found else "")
    is_release = environment.get("GITHUB_REF_TYPE") == "tag"  # has a wheel: Binder is ready sooner
    ref = environment["GITHUB_REF_NAME"] if is_release else "HEAD"
    return f"https://mybinder.org/v2/gh/{name}/{ref}" if name else ""


def origin(folder: Path) -> str:
    """The address from which the repository was cloned; "" if there is none."""
    ask = ["git", "-C", str(folder), "config", "--get", "remote.origin.url"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:  # no git
        return ""


def set_address(app: Sphinx, config: Any) -> None:
    config.html_context["binder"] = binder(os.environ, origin(Path(app.srcdir)))


def copy_notebooks(app: Sphinx, problem: Exception | None) -> None:
    """Put the notebooks beside their pages, as they are in the repository."""
    if problem is None and app.builder.format == "html":
        for path in Path(app.srcdir).parent.joinpath("notebooks").glob("*.ipynb"):
            shutil.copy(path, Path(app.outdir, "notebooks"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", set_address)
    app.connect("build-finished", copy_notebooks)
    return {"parallel_read_safe": True}
