"""A program of the file browser, run in several processes from its context menu and the panel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import ui
from tests.browser.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [
    pytest.mark.keeps("the browser and the Lab server belong to all modules"),
    pytest.mark.jupyter,
]

PROGRAM = """\
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
print(comm.gather((comm.rank, *sys.argv[1:])), flush=True)
comm.bcast(input("go on? ") if comm.rank == 0 else None)
open(f"ended-{comm.rank}", "w").close()
"""
SHOWN = """() => {
    const terminal = [...window.jupyterapp.shell.widgets('main')]
        .map(one => one.content?._term).find(one => one);
    const buffer = terminal?.buffer.active;
    if (!buffer) return '';
    let text = '';
    for (let nth = 0; nth < buffer.length; nth++) {
        const line = buffer.getLine(nth);
        text += (line.isWrapped ? '' : '\\n') + line.translateToString(false);
    }
    return text.replace(/ +\\n/g, '\\n');
}"""


def menu(page: Page, name: str) -> Locator:
    """The context menu of a file."""
    page.locator(f".jp-DirListing-item[title*='Name: {name}']").click(button="right")
    return page.locator(".lm-Menu")


def fill(page: Page, ranks: int, arguments: str) -> None:
    """Fill in how to run the program."""
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_label("Processes").fill(str(ranks))
    dialog.get_by_label("Arguments").fill(arguments)
    dialog.get_by_role("button", name="Run").click()


def until_shown(page: Page, text: str) -> None:
    """The terminal shows the text, now or soon."""
    page.wait_for_function(f"text => ({SHOWN})().includes(text)", arg=text, timeout=60_000)


@pytest.fixture
def folder(lab: Lab) -> Path:
    """The folder of the program. A shell would split its name in two."""
    made = lab.folder / "my programs"
    made.mkdir()
    (made / "ring.py").write_text(PROGRAM)
    (made / "picture.png").write_bytes(b"")
    (made / "line\n.py").write_text("")  # an input field would make "line.py" of it
    return made


def test_program_runs_in_a_terminal_beside_its_picture(
    page: Page, lab: Lab, folder: Path, screenshots: Path
) -> None:
    ui.open_lab(page, lab, "my programs")
    item = page.get_by_role("menuitem", name="Run with SFM")
    menu(page, "ring.py")
    item.click()
    ui.expect(page.locator(".jp-Dialog").get_by_label("Program")).to_have_value(
        "my programs/ring.py"
    )
    fill(page, 3, "spam 'two words'")
    until_shown(page, "(2, 'spam', 'two words')")
    panel = ui.panel(page)
    ui.expect(ui.rows(panel)).to_have_count(3)
    page.screenshot(path=screenshots / "program.png")

    page.keyboard.type("yes\n")
    for rank in range(3):
        while not (folder / f"ended-{rank}").exists():
            page.wait_for_timeout(50)

    # The dialog in the panel remembers the last entries, and offers them.
    panel.locator("[data-command='sfm:run-program']").click()
    dialog = page.locator(".jp-Dialog")
    ui.expect(dialog.get_by_label("Processes")).to_have_value("3")
    ui.expect(dialog.get_by_label("Arguments")).to_have_value("spam 'two words'")
    dialog.get_by_label("Program").fill("nothing.c")
    dialog.get_by_role("button", name="Run").click()
    ui.expect(dialog).to_contain_text("there is no nothing.c")
    dialog.get_by_role("button").last.click()

    menu(page, "line")
    item.click()
    ui.expect(dialog).to_contain_text("its name has control characters")
    dialog.get_by_role("button").last.click()

    menu(page, "picture.png")
    ui.expect(page.get_by_role("menuitem", name="Open", exact=True)).to_be_visible()
    ui.expect(item).to_have_count(0)
    # A line that was begun is not run.
    terminals = page.locator(".lm-TabBar-tabLabel", has_text="Terminal")
    terminals.click()
    page.keyboard.type("touch typed; ")
    menu(page, "ring.py")
    item.click()
    fill(page, 2, "again")
    until_shown(page, "(1, 'again')")
    assert not (folder / "typed").exists()
    ui.expect(terminals).to_have_count(1)

    # While it runs, its terminal is not used.
    menu(page, "ring.py")
    item.click()
    fill(page, 2, "beside")
    ui.expect(terminals).to_have_count(2)
    page.evaluate("() => window.jupyterapp.serviceManager.terminals.shutdownAll()")
