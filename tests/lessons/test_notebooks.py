"""The exercises of the notebooks: each has its solution, its check and its grading."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.lessons.examine.check import checks
from sfm_kernel.lessons.students import (
    BEGIN,
    COPIES,
    NotebookError,
    cleared,
    exercises,
    first_copy,
    laid_out,
    named,
    solved,
    students,
)
from tools.demo import run_demo

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9][0-9]-*.ipynb"))
SOLUTIONS = FOLDER / "solutions"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def source(cell: Any) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_begins_with_what_you_will_learn_and_has_exercises(path: Path) -> None:
    notebook = read(path)
    found = dict(exercises(notebook))
    assert "What you will learn" in source(notebook["cells"][0]) and found
    assert found.keys() == named(path.read_text()), "each is checked, and checks are of it"
    cells = notebook["cells"]
    for name, cell in found.items():
        place = cells.index(cell)
        suffix = "c" if checks()[name].language == "c" else "py"
        magic, _, text = source(cell).partition("\n")
        assert magic == ("%%sfm c" if suffix == "c" else "%%sfm")
        assert text == cleared((SOLUTIONS / f"{name}.{suffix}").read_text())
        asked = source(cells[place - 1])
        assert asked.lstrip("#").startswith(" Exercise: ") and "<summary>Hint 1</summary>" in asked
        assert asked.count("<details>") == asked.count("\n\n</details>")
        assert source(cells[place + 1]) == f"%sfm check {name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_has_what_nbgrader_reads(path: Path) -> None:
    """Its schema 3: https://nbgrader.readthedocs.io (contributor guide, metadata)."""
    graded = [cell["metadata"]["nbgrader"] for cell in read(path)["cells"] if _is_graded(cell)]
    assert len({cell["grade_id"] for cell in graded}) == len(graded)
    for cell in graded:
        flags = {key: cell[key] for key in ("grade", "locked", "solution", "task")}
        assert cell["schema_version"] == 3
        if cell["solution"]:
            assert flags == {"grade": False, "locked": False, "solution": True, "task": False}
            assert "points" not in cell
        else:
            assert flags == {"grade": True, "locked": True, "solution": False, "task": False}
            assert cell["points"] > 0 and cell["grade_id"].startswith("check-")


def _is_graded(cell: Any) -> bool:
    return "nbgrader" in cell["metadata"]


def test_students_get_all_but_the_solutions(tmp_path: Path) -> None:
    target = tmp_path / "class"
    command = [sys.executable, "-m", "sfm_kernel.lessons", "students", str(target)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout == f"{len(NOTEBOOKS)} notebooks in {target}\n"
    assert [path.name for path in sorted(target.glob("*.ipynb"))] == [p.name for p in NOTEBOOKS]
    assert not (target / "solutions").exists()
    assert not any(BEGIN in path.read_text() for path in target.rglob("*") if path.is_file())


def test_whoever_learns_gets_a_copy_and_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sfm_kernel.lessons", "copy"]
    target = tmp_path / "mine"
    for _ in range(2):  # the second finds what the first has written, unchanged
        ran = subprocess.run([*command, str(target)], capture_output=True, text=True, check=True)
        assert ran.stdout == f"{len(NOTEBOOKS)} notebooks in {target}\n"
    assert not (target / "solutions").exists()
    assert (target / "quick-reference.html").is_file()
    (target / NOTEBOOKS[0].name).write_text("my work")
    (target / NOTEBOOKS[1].name).unlink()
    (target / "data").mkdir()
    ran = subprocess.run([*command, str(target)], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stdout == "" and "Traceback" not in ran.stderr
    (said,) = ran.stderr.splitlines()
    assert f"({NOTEBOOKS[0].name}, data): name a folder that is new or empty" in said
    assert (target / NOTEBOOKS[0].name).read_text() == "my work"
    assert not (target / NOTEBOOKS[1].name).exists()


def test_what_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for copy in (students, laid_out, solved):
        with pytest.raises(NotebookError, match=r"/proc/none cannot be .*: name another folder"):
            copy(FOLDER, Path("/proc/none"))
    with pytest.raises(NotebookError, match="there are no notebooks"):
        laid_out(tmp_path / "none", tmp_path / "mine")

    def full(*names: object, **_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "one")

    monkeypatch.setattr(shutil.copytree, "__defaults__", (False, None, full, False, False))
    with pytest.raises(NotebookError, match=r"\(.*No space left on device.*\): name another"):
        laid_out(FOLDER, tmp_path / "mine")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotebookError, match="file is a file: name a folder, which may be new"):
        laid_out(FOLDER, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_first_copy_is_found_or_made(tmp_path: Path) -> None:
    first = first_copy(tmp_path)
    assert first == tmp_path / COPIES / NOTEBOOKS[0].name
    assert first.read_bytes() == NOTEBOOKS[0].read_bytes()
    first.write_text("my work")
    assert first_copy(tmp_path) == first and first.read_text() == "my work"
    assert first_copy(first.parent) == first
    first.unlink()
    (first.parent / "data").write_text("")
    with pytest.raises(NotebookError, match="nothing was copied, since"):
        first_copy(tmp_path)


def test_teachers_get_the_solutions_in_their_place(tmp_path: Path) -> None:
    written = solved(FOLDER, tmp_path)
    assert [path.name for path in written] == [path.name for path in NOTEBOOKS]
    for path, original in zip(written, NOTEBOOKS, strict=True):
        notebook, before = read(path), read(original)
        for name, cell in exercises(notebook):
            assert source(cell).count(BEGIN) == 1, name
            cell["source"] = cleared(source(cell)).splitlines(keepends=True)
        assert notebook == before


@pytest.mark.jupyter
def test_the_solved_notebook_passes_where_grades_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved(FOLDER, tmp_path / "solved")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert run_demo(tmp_path / "solved", tmp_path / "run", only=["00-first-steps"]) == 0
    ran = (tmp_path / "run/00-first-steps.ipynb").read_text()
    assert ran.count("✓ ring: right with ") == ran.count("✓ swap: right with ") == 1


def test_notebooks_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="there are no notebooks"):
        students(tmp_path, tmp_path / "class")
    with pytest.raises(NotebookError, match="name another folder"):
        solved(FOLDER, FOLDER)
    copy = tmp_path / "copy"
    students(FOLDER, copy)
    with pytest.raises(NotebookError, match=r"the exercise ring of 00-first-steps.* no solution"):
        solved(copy, tmp_path / "solved")
    assert not (tmp_path / "solved").exists()
    broken = tmp_path / "broken"
    for text in ("<<<<<<< HEAD", "[]", '{"cells": 3}'):
        students(FOLDER, broken)
        (broken / "02-ping-pong.ipynb").write_text(text)
        (broken / "solutions").symlink_to(SOLUTIONS)
        with pytest.raises(
            NotebookError, match=r"02-ping-pong\.ipynb is no notebook: .*Save it ag"
        ):
            solved(broken, tmp_path / "solved")
        (broken / "solutions").unlink()
    notebook = copy / "01-cpi.ipynb"
    notebook.write_text(notebook.read_text().replace("def simpson(n):", BEGIN))
    with pytest.raises(NotebookError, match=r"01-cpi\.ipynb has a solution in it"):
        students(copy, tmp_path / "class")
