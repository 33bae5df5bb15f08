"""The panel, its commands and the file browser's menu in Jupyter Notebook, the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [
    pytest.mark.keeps("the browser and the Lab server belong to all modules"),
    pytest.mark.jupyter,
]


def open_page(page: Page, lab: Lab, path: str) -> None:
    """Open a page of Jupyter Notebook, and wait until its document is there."""
    page.goto(lab.url(f"{path}?token={lab.token}"))
    page.evaluate(ui.READY)


def test_panel_is_in_the_right_sidebar(page: Page, lab: Lab, screenshots: Path) -> None:
    stream = fake.Stream(page, [])
    open_page(page, lab, f"notebooks/{notebook(lab.folder, 'seven.ipynb', '')}")
    counts = page.locator("#menu-panel .sfm-Status-button")
    ui.expect(counts).to_be_hidden()
    stream.send("worlds", [fake.world("w1", blocked=2, kernels=[ui.kernel(page)])])
    ui.expect(counts).to_contain_text("2 blocked")

    panel = page.locator("#jp-right-stack #sfm-panel")
    ui.expect(panel).to_be_hidden()
    page.get_by_role("menuitem", name="View").click()
    page.get_by_role("menuitem", name="Show the SFM Panel").click()
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
    stream.show(*fake.crossed())
    ui.expect(ui.row(panel, "A")).to_contain_text("stuck in recv")
    ui.command(page, "sfm:insert-code", world="w1")
    ui.wait_until(page, lambda: "%sfm connect c-w1" in ui.sources(page)[0])

    panel.get_by_role("button", name="Open graph").click()
    graph = page.locator("#jp-down-stack .sfm-Graph")
    stream.show(*fake.crossed())
    ui.expect(graph.get_by_role("button", name="B: ")).to_be_in_viewport(ratio=1)
    page.screenshot(path=screenshots / "notebook7.png")
    ui.theme(page, "JupyterLab Dark")
    page.screenshot(path=screenshots / "notebook7-dark.png")
    ui.theme(page, "JupyterLab Light")


def test_program_runs_from_the_file_browser(page: Page, lab: Lab, screenshots: Path) -> None:
    (lab.folder / "ring.py").write_text("open('ended', 'w').close()")
    open_page(page, lab, "tree")
    page.locator(".jp-DirListing-item[title*='Name: ring.py']").click(button="right")
    page.get_by_role("menuitem", name="Run with SFM").click()
    dialog = page.locator(".jp-Dialog")
    ui.expect(dialog.get_by_label("Program")).to_have_value("ring.py")
    dialog.get_by_label("Processes").fill("1")
    with page.context.expect_page() as opened:
        dialog.get_by_role("button", name="Run").click()
    assert "/terminals/" in opened.value.url
    while not (lab.folder / "ended").exists():
        page.wait_for_timeout(50)
    ui.expect(page.locator("#jp-right-stack #sfm-panel")).to_be_visible()
    page.screenshot(path=screenshots / "notebook7-tree.png")
    opened.value.close()
    page.evaluate("() => window.jupyterapp.serviceManager.terminals.shutdownAll()")
