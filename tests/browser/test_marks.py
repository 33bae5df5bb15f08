"""The lines in which the processes of a deadlock wait are marked in the notebook's cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

CELL = "%%sfm\nif rank == 0:\n    sfm.recv(src=1)\nelse:\n    sfm.recv(src=0)\n"


def stuck(cell_id: str, **lines: int) -> tuple[fake.Json, fake.Json]:
    """Processes that wait for each other in these lines of the cell: snapshot and diagnosis."""
    processes = [
        fake.process(name, rank, "blocked in recv", where=fake.place(line, 7, cell_id))
        for rank, (name, line) in enumerate(lines.items())
    ]
    judged = [fake.judgement(process, "stuck", "waits") for process in processes]
    names = list(lines)
    about = {"cycle": names, "stuck": names, "processes": judged}
    return fake.snapshot(*processes), fake.diagnosis("deadlock", "Deadlock", **about)


def notes(page: Page) -> Locator:
    """The notes behind lines of cells."""
    return page.get_by_role("note")


def marked(page: Page) -> list[str]:
    """The texts of the lines that are marked."""
    lines = page.locator(".cm-line.sfm-Marked")
    return [text.strip() for text in lines.all_inner_texts()]


def test_lines_of_a_deadlock_are_marked(page: Page, lab: Lab, screenshots: Path) -> None:
    stream = fake.Stream(page, [fake.world("w1", blocked=3)])
    path = notebook(lab.folder, "marks.ipynb", CELL, *["1"] * 60, CELL)
    ui.open_lab(page, lab, path)
    stream.send("worlds", [fake.world("w1", blocked=3, kernels=[ui.kernel(page)])])
    ui.panel(page)
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
    ids = page.evaluate(f"{ui.NOTEBOOK}.content.widgets.map(one => one.model.id)")
    stream.show(*stuck(ids[0], A=3, B=5, C=5))
    ui.expect(notes(page)).to_have_text(["A waits here", "B and C wait here"])
    assert [text.partition(")")[0] for text in marked(page)] == [
        "sfm.recv(src=1",
        "sfm.recv(src=0",
    ]
    signs = page.locator(".sfm-Gutter-sign")
    ui.expect(signs).to_have_count(2)
    assert signs.last.get_attribute("title") == "B and C wait here"
    colours = {}
    for theme in ("Light", "Dark"):
        ui.theme(page, f"JupyterLab {theme}")
        ui.expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        page.screenshot(path=screenshots / f"marks-{theme.lower()}.png")
        colours[theme] = notes(page).first.evaluate(
            "note => [getComputedStyle(note).color, getComputedStyle(note).backgroundColor]"
        )
    ui.theme(page, "JupyterLab Light")
    assert all(ui.contrast(*pair) >= 4.5 for pair in colours.values()), colours

    # Not after an edit, although the deadlock goes on: the numbers are those of the former text.
    page.locator(".cm-content").first.click()
    page.keyboard.type("x")
    ui.expect(notes(page)).to_have_count(0)
    ui.expect(page.locator(".sfm-Gutter")).to_have_count(0)
    seen, why = stuck(ids[0], A=3, B=5, C=5)
    stream.show(seen, why | {"title": "Deadlock again"})
    ui.expect(ui.panel(page)).to_contain_text("Deadlock again")
    ui.expect(notes(page)).to_have_count(0)

    stream.show(*stuck(ids[1], **{f"P{rank}": 1 for rank in range(50)}))
    ui.expect(notes(page)).to_have_text("P0, P1, P2, P3, P4 and 45 more wait here")

    # Another deadlock, in a cell that has no editor before it is scrolled into view.
    stream.show(*stuck(ids[-1], A=3, B=5))
    ui.panel(page).locator(".sfm-Why .sfm-CodeLocation").first.click()
    ui.expect(notes(page)).to_have_text(["A waits here", "B waits here"])
    stream.send("diagnosis", fake.diagnosis("running", "A computes"))
    ui.expect(notes(page)).to_have_count(0)
    ui.expect(page.locator(".sfm-Gutter")).to_have_count(0)
