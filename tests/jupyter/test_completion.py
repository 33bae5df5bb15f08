"""Tab and ``?``, as JupyterLab asks the kernel for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook

pytestmark = pytest.mark.keeps("one notebook with two engines for the module")

CELLS = ["%sfm start A B"]


def tab(book: Notebook, code: str) -> list[str]:
    """The completions that Tab at the end of the code offers."""
    answer = book.client.complete(code, len(code), reply=True, timeout=60)["content"]
    return [code[: answer["cursor_start"]] + match for match in answer["matches"]]


def asked(book: Notebook, code: str) -> str:
    """The answer to a question: in the pager, or below the cell."""
    answer = book.client.execute(code, reply=True, timeout=60)["content"]
    text = "".join(page["data"]["text/plain"] for page in answer["payload"])
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("%sfm sta", ["%sfm start", "%sfm status"]),
        ("x = 1\n%sfm tim", ["x = 1\n%sfm timeline"]),
        ("%sfm start 4 --sit", ["%sfm start 4 --site", "%sfm start 4 --sites"]),
        ("%sfm restart ", ["%sfm restart A", "%sfm restart B"]),
        ("%sfm restart A ", ["%sfm restart A B"]),
        ("%sfm detect o", ["%sfm detect on", "%sfm detect off"]),
        ("%sfm check rin", ["%sfm check ring"]),
        ("%sfm check ring --s", ["%sfm check ring --seed", "%sfm check ring --strict"]),
        ("%sfm help sca", ["%sfm help scale"]),
        ("%%sfm --no-d", ["%%sfm --no-detect"]),
        ("%%sfm c --", [f"%%sfm c --{word}" for word in ("fast", "asan", "stdin", "timeout")]),
        ("%%sfm\nsen", ["%%sfm\nsend"]),
    ],
)
def test_tab(book: Notebook, code: str, offered: list[str]) -> None:
    assert tab(book, code) == offered


def test_tab_knows_commands_and_none_of_pythons_keywords(book: Notebook) -> None:
    found = tab(book, "%sfm ")
    assert {"%sfm start", "%sfm why", "%sfm check", "%sfm run"} <= set(found)
    assert "%sfm and" not in found
    assert {"%%sfm A", "%%sfm B", "%%sfm c", "%%sfm --noblock"} <= set(tab(book, "%%sfm "))
    assert {"%%sfm A,A", "%%sfm A,B"} <= set(tab(book, "%%sfm A,"))
    assert "%%sfm\nrank" in tab(book, "%%sfm\nra")


def test_tab_knows_files(book: Notebook, tmp_path: Path) -> None:
    for name in ("prog.py", "prog.c", "prog.txt", "run.json"):
        (tmp_path / name).touch()
    (tmp_path / "program").mkdir()
    found = tab(book, f"%sfm run {tmp_path}/pro")
    assert [path.rpartition("/pro")[2] for path in found] == ["g.c", "g.py", "gram/"]
    assert tab(book, f"%sfm timeline {tmp_path}/r") == [f"%sfm timeline {tmp_path}/run.json"]
    assert tab(book, f"%sfm check --from {tmp_path}/prog.")[0].endswith("/prog.py")


def test_questions(book: Notebook) -> None:
    assert "%sfm start 4 " in asked(book, "%sfm?") and "%sfm check ring" in asked(book, "%sfm?")
    assert "--noblock" in asked(book, "%%sfm?") and "%%sfm c -n 4" in asked(book, "%%sfm?")
    explained = asked(book, "send?")
    assert "send(*, dest, **attributes)" in explained
    for part in ("Blocks:", "Raises:", "Example:"):
        assert part in explained
    for code in ("%sfm start?", "%sfm help start"):
        shown = book.text(code)
        assert "%sfm start --sites" in shown and "options: --site" in shown
        assert "%sfm stop" not in shown
    assert "no command is called 'foo'" in book.run("%sfm help foo").text


def test_shift_tab_in_a_cell_of_engines(book: Notebook) -> None:
    code = "%%sfm A\nm = recv("
    shown = book.client.inspect(code, len(code), reply=True, timeout=60)["content"]
    assert shown["found"] and "Take the first message" in shown["data"]["text/plain"]
