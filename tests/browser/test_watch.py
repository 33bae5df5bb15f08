"""The live table in a cell, and the panel's notes about unused engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.keeps("the browser and the Lab server belong to all modules"),
    pytest.mark.jupyter,
    pytest.mark.usefixtures("own_kernels"),
]

START = "%load_ext sfm_kernel\n%sfm start A B C D"
HANGS = """%%sfm A,B,C --noblock --no-detect
if rank < 2:
    send(dest=1 - rank, tag=3)
    recv(src=1 - rank, tag=2)
else:
    sum(range(10 ** 12))"""
WATCH = "%sfm watch"
SHADES = """number => {
    const table = document.querySelectorAll('.jp-Notebook .jp-Cell')[number].querySelector('table');
    return table && [...table.querySelectorAll('td')].filter(cell => cell.style.background)
    .map(cell => {
        const numbers = text => text.match(/[\\d.]+/g).map(Number);
        let below = cell;
        do below = below.parentElement;
        while (below.parentElement && /rgba\\(0, 0, 0, 0\\)/.test(
            getComputedStyle(below).backgroundColor));
        const [under, over] = [below, cell].map(
            one => numbers(getComputedStyle(one).backgroundColor));
        const mixed = under.slice(0, 3).map(
            (value, n) => Math.round(value + (over[n] - value) * (over[3] ?? 1)));
        return [cell.textContent, getComputedStyle(cell).color, `rgb(${mixed.join(', ')})`];
    });
}"""
"""Read in one step, since the table is replaced four times a second."""


@pytest.mark.parametrize("name", ["JupyterLab Light", "JupyterLab Dark"])
def test_the_table_lives_until_stop(page: Page, lab: Lab, screenshots: Path, name: str) -> None:
    short = name.split()[-1].lower()
    path = notebook(lab.folder, f"watch-{short}.ipynb", START, HANGS, WATCH)
    ui.open_lab(page, lab, path)
    ui.theme(page, name)
    ui.kernel(page)
    ui.run_cell(page, 0, wait=True)
    ui.run_cell(page, 1, wait=True)
    ui.run_cell(page, 2)
    shown = page.locator(".jp-Notebook .jp-Cell").nth(2).locator(".jp-OutputArea-output")
    ui.expect(shown).to_contain_text("live; Stop ends it")
    ui.expect(shown.locator("table")).to_contain_text("recv(src='B', tag=2)", timeout=30_000)
    assert not shown.locator("ul").count(), "C computes, so that something goes on"
    page.screenshot(path=screenshots / f"watch-{short}.png")
    shades = page.wait_for_function(SHADES, arg=2).json_value()
    assert {text.split()[0] for text, _, _ in shades} == {"blocked", "running"}
    for text, colour, below in shades:
        assert ui.contrast(colour, below) >= 4.5, (text, colour, below)
    ui.command(page, "notebook:interrupt-kernel")
    ui.expect(shown).to_contain_text("as it was at")
    assert shown.count() == 1, "no traceback, and the table only once"


def test_it_says_why_nothing_goes_on(page: Page, lab: Lab, screenshots: Path) -> None:
    cell = HANGS.replace("sum(range(10 ** 12))", "pass").replace(" --noblock --no-detect", "")
    path = notebook(lab.folder, "why.ipynb", START, cell.replace("A,B,C", "A,B,C --watch"))
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    ui.run_cell(page, 0, wait=True)
    ui.run_cell(page, 1)
    shown = page.locator(".jp-Notebook .jp-Cell").nth(1).locator(".jp-OutputArea-output").first
    ui.expect(shown).to_contain_text("tag is 3, not 2", timeout=30_000)
    shades = page.wait_for_function(SHADES, arg=1).json_value()
    page.screenshot(path=screenshots / "watch-why.png")
    for text, colour, below in shades:
        assert ui.contrast(colour, below) >= 4.5, (text, colour, below)
    ui.expect(shown).to_contain_text("as it was when the cell ended")
    ui.expect(shown.locator("ul")).to_have_count(0)


def test_the_panel_says_why_idle_engines_ended(page: Page, lab: Lab, screenshots: Path) -> None:
    start = START.replace("A B C D", "A B --idle 3s")
    path = notebook(lab.folder, "idle.ipynb", start, "'next'")
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    panel = ui.panel(page)
    ui.run_cell(page, 0, wait=True)
    notice = panel.locator(".sfm-Notice")
    ui.expect(notice).to_contain_text("after 3 seconds without use", timeout=30_000)
    ui.expect(notice).to_contain_text("%sfm start A B --idle 3s")
    page.screenshot(path=screenshots / "idle.png")
    ui.run_cell(page, 1, wait=True)
    assert "after 3 seconds without use" in ui.output(page, 1)
    ui.expect(notice).to_have_count(0)
