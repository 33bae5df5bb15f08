"""Jumping to lines, the views of the main area, and announcements to screen readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world."""
    return fake.Stream(page, [fake.world("w1", blocked=2)])


def show_at(stream: fake.Stream, place: fake.Json) -> None:
    """Send a snapshot of one process that is blocked at this line."""
    stream.show(fake.snapshot(fake.process("A", 0, "blocked in recv", where=place)))


def test_jump_finds_the_cell_by_its_count(page: Page, lab: Lab, stream: fake.Stream) -> None:
    path = notebook(lab.folder, "count.ipynb", "first", "1\n2\n3", "last")
    ui.open_lab(page, lab, path)
    stream.send("worlds", [fake.world("w1", kernels=[ui.kernel(page)])])
    ui.run_cell(page, 1, wait=True)
    ui.panel(page)
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
    show_at(stream, fake.place(3, 1))
    ui.panel(page).get_by_role("button", name="cell 1 line 3").click()
    ui.wait_until(page, lambda: ui.cursor(page) == (1, 2))


def test_jump_finds_the_cell_by_its_id(page: Page, lab: Lab, stream: fake.Stream) -> None:
    path = notebook(lab.folder, "id.ipynb", *["\n".join("abcde")] * 30)
    ui.open_lab(page, lab, path)
    stream.send("worlds", [fake.world("w1", kernels=[ui.kernel(page)])])
    ui.panel(page)
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
    cell_id = page.evaluate(f"{ui.NOTEBOOK}.content.widgets[27].model.id")
    show_at(stream, fake.place(4, 99, cell_id))
    ui.panel(page).get_by_role("button", name="cell 99 line 4").click()
    ui.wait_until(page, lambda: ui.cursor(page) == (27, 3))
    visible = f"""() => {{
        const box = {ui.NOTEBOOK}.content.widgets[27].node.getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight;
    }}"""
    ui.wait_until(page, lambda: bool(page.evaluate(visible)))


def test_jump_opens_a_file(page: Page, lab: Lab, stream: fake.Stream) -> None:
    (lab.folder / "program.py").write_text("one\ntwo\nthree\n")
    ui.open_lab(page, lab)
    ui.panel(page)
    show_at(stream, fake.place(2, None) | {"file": str(lab.folder / "program.py")})
    ui.panel(page).get_by_role("button", name="program.py:2").click()
    line = """() => {
        const editor = jupyterapp.shell.currentWidget?.content?.editor;
        return editor?.hasFocus() ? editor.getCursorPosition().line : null;
    }"""
    ui.wait_until(page, lambda: page.evaluate(line) == 1)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (fake.place(2, 5), "cell 5 line 2 is in no open notebook"),
        (fake.place(2, None) | {"file": "/elsewhere/p.py"}, "is not below JupyterLab's folder"),
    ],
)
def test_jump_that_is_not_possible_says_why(
    page: Page, lab: Lab, stream: fake.Stream, place: fake.Json, said: str
) -> None:
    ui.open_lab(page, lab)
    ui.panel(page)
    show_at(stream, place)
    ui.panel(page).locator(".sfm-CodeLocation").click()
    ui.expect(page.get_by_role("dialog")).to_contain_text(said)


def test_process_is_chosen_in_the_graph(page: Page, lab: Lab, stream: fake.Stream) -> None:
    ui.open_lab(page, lab)
    panel = ui.panel(page)
    ui.command(page, "sfm:open", kind="graph")
    graph = page.locator("#sfm-graph .sfm-Graph")
    stream.show(*fake.crossed())
    graph.get_by_role("button", name="B: ").click()
    ui.expect(panel.get_by_role("searchbox", name="Search in the inbox of B")).to_be_visible()


def test_parts_have_roles_and_buttons_have_names(page: Page, lab: Lab, stream: fake.Stream) -> None:
    ui.open_lab(page, lab)
    stream.show(*fake.crossed())
    panel = page.get_by_role("region", name="SFM", exact=True)
    ui.panel(page)
    for name in ("Worlds", "Why", "Processes", "Wait-for graph"):
        ui.expect(panel.get_by_role("region", name=name, exact=True)).to_be_visible()
    grid = panel.get_by_role("grid", name="Processes")
    stream.show(*fake.crossed())
    ui.expect(grid.get_by_role("row")).to_have_count(4)  # and the headings
    ui.expect(grid.get_by_role("columnheader")).to_have_count(7)
    ui.expect(grid.get_by_role("rowheader")).to_have_count(3)
    ui.rows(panel).first.click()
    unnamed = panel.locator("button").evaluate_all(
        "all => all.filter(one => !(one.ariaLabel || one.innerText).trim()).length"
    )
    assert unnamed == 0
    assert panel.locator("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").count() == 0


def test_nothing_moves_where_motion_is_reduced(page: Page, lab: Lab, stream: fake.Stream) -> None:
    page.emulate_media(reduced_motion="reduce")
    path = notebook(lab.folder, "calm.ipynb", "1\n2")
    ui.open_lab(page, lab, path)
    stream.send("worlds", [fake.world("w1", kernels=[ui.kernel(page)])])
    ui.run_cell(page, 0, wait=True)
    ui.panel(page)
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
    stream.show(*fake.crossed())
    show_at(stream, fake.place(2, 1))
    ui.panel(page).get_by_role("button", name="cell 1 line 2").click()
    page.locator(".sfm-mod-flash").wait_for()
    moving = """() => document.getAnimations().map(one => [
        one.animationName ?? one.transitionProperty, one.effect.target?.className
    ])"""
    ours = [animation for animation in page.evaluate(moving) if "sfm-" in str(animation)]
    assert not ours
