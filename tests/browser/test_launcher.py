"""The cards of JupyterLab's launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sfm_kernel.lessons.students import COPIES, NOTEBOOKS
from tests.browser import ui
from tests.browser.lab import Lab

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

FIRST = min(path.name for path in NOTEBOOKS.glob("*.ipynb"))
PATH = "jupyterapp.shell.currentWidget?.context?.path"


def card(page: Page, name: str) -> Locator:
    """A card of the launcher, in our category."""
    section = page.locator(".jp-Launcher-section", has=page.get_by_role("heading", name="SFM"))
    return section.locator(".jp-LauncherCard", has_text=name)


@pytest.mark.usefixtures("own_kernels")
def test_first_steps_are_copied_once(page: Page, lab: Lab, screenshots: Path) -> None:
    copies = lab.folder / COPIES
    copies.mkdir()
    (copies / "mine").write_text("")
    ui.open_lab(page, lab)
    page.screenshot(path=screenshots / "launcher.png")
    ui.theme(page, "JupyterLab Dark")
    ui.expect(page.locator("#jupyterlab-splash")).to_have_count(0)
    page.screenshot(path=screenshots / "launcher-dark.png")
    ui.theme(page, "JupyterLab Light")
    card(page, "SFM: first steps").click()
    dialog = page.locator(".jp-Dialog")
    ui.expect(dialog).to_contain_text("nothing was copied")
    dialog.get_by_role("button").last.click()
    (copies / "mine").unlink()

    card(page, "SFM: first steps").click()
    page.wait_for_function(f"{PATH} === '{COPIES}/{FIRST}'")
    assert (copies / FIRST).read_bytes() == (NOTEBOOKS / FIRST).read_bytes()
    page.evaluate("() => jupyterapp.shell.currentWidget.close()")
    (copies / FIRST).write_text((copies / FIRST).read_text().replace("SFM", "my work"))
    changed = (copies / FIRST).read_bytes()
    ui.command(page, "sfm:first-steps")
    page.wait_for_function(f"{PATH} === '{COPIES}/{FIRST}'")
    assert (copies / FIRST).read_bytes() == changed


def test_classroom_is_a_page_of_its_own(page: Page, lab: Lab) -> None:
    ui.open_lab(page, lab)
    with page.context.expect_page() as opened:
        card(page, "Classroom").click()
    opened.value.wait_for_url(lab.url("sfm/classroom/"))
    opened.value.close()
