"""Copies of the notebooks: for students, without solutions, and for teachers, with them.

A solution is the complete cell of an exercise, in ``solutions/NAME.py`` (or ``.c``) beside the
notebooks. The lines that students have to write are between ``BEGIN`` and ``END``, as in
nbgrader; in the students' notebooks ``...`` replaces them.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.examine.cell import STUB

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
"""The notebooks that the package brings. In a checkout it is a link to the repository's folder,
which also has the solutions; a wheel is without them, since it is installed where students work."""

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

FOLDER = "solutions"
"""The folder of solutions, beside the notebooks."""

COPIES = "sfm-notebooks"
"""The folder of copies to work in, if the user names none."""


class NotebookError(SFMError):
    """Notebooks and solutions do not fit together, or cannot be copied."""


def cleared(text: str) -> str:
    """A solution without the lines that students have to write.

    >>> print(cleared("def f(x):\\n    ### BEGIN SOLUTION\\n    return x\\n    ### END SOLUTION"))
    def f(x):
        ...
    """
    lines, inside = [], False
    for line in text.splitlines():
        if BEGIN in line:
            inside = True
            lines.append(line[: len(line) - len(line.lstrip())] + STUB)
        elif END in line:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


_Copy = Callable[[Path, Path], list[Path]]
"""A function that copies notebooks from one folder to another, and returns those it has written."""


def _told(copy: _Copy) -> _Copy:
    """The function, which raises NotebookError for a file that cannot be read or written."""

    @functools.wraps(copy)
    def told(notebooks: Path, target: Path) -> list[Path]:
        try:
            return copy(notebooks, target)
        except OSError as problem:  # shutil.Error has a list of triples instead of an error number
            path, why = problem.filename or target, problem.strerror or problem.args[0][0][-1]
            raise NotebookError(
                f"{path} cannot be read or written ({why}): name another folder"
            ) from None

    return told


@_told
def students(notebooks: Path, target: Path) -> list[Path]:
    """Copy notebooks and all other files of their folder, without the solutions.

    Returns:
        The notebooks that were written.
    Raises:
        NotebookError: there are no notebooks, or a notebook still has a solution in it. Nothing
            was written.
    """
    found = _notebooks(notebooks, target)
    for path in found:
        if BEGIN in path.read_text(encoding="utf-8"):
            raise NotebookError(f"{path} has a solution in it: students would read it")
    not_copied = shutil.ignore_patterns(FOLDER, ".*", "__pycache__*")
    shutil.copytree(notebooks, target, ignore=not_copied, dirs_exist_ok=True)
    return [target / path.name for path in found]


@_told
def laid_out(notebooks: Path, target: Path) -> list[Path]:
    """Copy notebooks for somebody who will work in them: ``students``, which overwrites nothing.

    Args:
        target: a folder that is new, or empty, or has nothing but such copies, unchanged.
    Returns:
        The notebooks that were written.
    Raises:
        NotebookError: the folder has other files, or is none. Nothing was written.
    """
    _notebooks(notebooks, target)
    ours = {path.name: path for path in notebooks.iterdir() if path.is_file()}
    if target.exists() and not target.is_dir():
        raise NotebookError(f"{target} is a file: name a folder, which may be new")
    found = [path for path in sorted(target.glob("*")) if not path.name.startswith(".")]
    others = [path.name for path in found if not _same(path, ours.get(path.name))]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise NotebookError(
            f"nothing was copied, since {target} has other files or changed notebooks "
            f"({', '.join(others[:3])}{more}): name a folder that is new or empty"
        )
    return students(notebooks, target)


def first_copy(folder: Path) -> Path:
    """The first notebook, in this folder or in ``COPIES`` below it, where somebody works in it.

    All notebooks are ``laid_out`` there unless that one is there, whatever has become of it.

    Raises:
        NotebookError: they cannot be. Nothing was written.
    """
    name = _notebooks(NOTEBOOKS, folder / COPIES)[0].name
    for known in (folder / name, folder / COPIES / name):
        if known.is_file():
            return known
    return laid_out(NOTEBOOKS, folder / COPIES)[0]


def _same(copy: Path, original: Path | None) -> bool:
    return original is not None and copy.is_file() and copy.read_bytes() == original.read_bytes()


@_told
def solved(notebooks: Path, target: Path) -> list[Path]:
    """Write the notebooks with the solutions in the cells of the exercises: nbgrader's source.

    Returns:
        The notebooks that were written.
    Raises:
        NotebookError: there are no notebooks, one cannot be read, or an exercise has no solution.
            Nothing was written.
    """
    found = _notebooks(notebooks, target)
    if notebooks.samefile(NOTEBOOKS) and not (notebooks / FOLDER).is_dir():
        raise NotebookError(
            "the installed package is without solutions, since students could read them there: "
            "name the notebooks of a clone of sfm-kernel, `--notebooks FOLDER`"
        )
    written = {}
    for path in found:
        notebook = _read(path)
        for name, cell in exercises(notebook):
            text = _solution(notebooks / FOLDER, name, path)
            magic = "".join(cell["source"]).partition("\n")[0]
            cell["source"] = f"{magic}\n{text}".rstrip("\n").splitlines(keepends=True)
        written[target / path.name] = notebook
    target.mkdir(parents=True, exist_ok=True)
    for path, notebook in written.items():
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")
    return list(written)


def exercises(notebook: Any) -> Iterator[tuple[str, Any]]:
    """The cells in which students write: the name of the exercise, and the cell."""
    for cell in notebook["cells"]:
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("solution"):
            yield grading["grade_id"], cell


def _notebooks(folder: Path, target: Path) -> list[Path]:
    found = sorted(folder.glob("[0-9][0-9]-*.ipynb"))
    if not found:
        raise NotebookError(f"there are no notebooks such as 01-cpi.ipynb in {folder.resolve()}")
    if target.resolve() == folder.resolve():
        raise NotebookError(f"{target} is the folder of the notebooks: name another folder")
    return found


def _read(path: Path) -> Any:
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(notebook["cells"], list):
            raise ValueError("its cells are not a list")
    except (ValueError, KeyError, TypeError) as problem:
        raise NotebookError(f"{path} is no notebook: {problem}. Save it again in Jupyter") from None
    return notebook


def _solution(folder: Path, name: str, notebook: Path) -> str:
    for path in (folder / f"{name}.py", folder / f"{name}.c"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise NotebookError(f"the exercise {name} of {notebook.name} has no solution in {folder}")


def named(text: str) -> set[str]:
    """The checks that a notebook's text asks for."""
    return set(re.findall(r"%sfm check (\w+)", text))
