"""The panel stands still: what comes and goes faster than it can be read moves nothing."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import REPOSITORY, Lab

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

WATCH = """() => {
    window.tops = {};
    window.texts = new Set();
    const look = () => {
        for (const heading of document.querySelectorAll('#sfm-panel h2'))
            (tops[heading.textContent] ??= []).push(heading.getBoundingClientRect().top);
        const line = document.querySelector('#sfm-panel .sfm-mod-why .sfm-Section-body');
        texts.add(line.innerText.trim());
        texts.add(document.querySelector('#sfm-panel .sfm-Table').innerText);
        window.watching = requestAnimationFrame(look);
    };
    look();
}"""
MOVES = 8
"""Pixels by which a heading may move."""


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world, which the panel shows since there is no other."""
    return fake.Stream(page, [fake.world(title="01-cpi.ipynb")])


@pytest.fixture
def shown(page: Page, lab: Lab, stream: fake.Stream) -> Page:
    """JupyterLab with the panel open."""
    ui.open_lab(page, lab)
    ui.panel(page)
    return page


@pytest.mark.jupyter
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("own_kernels")
def test_no_heading_moves_during_notebook_01_s_live_cell(page: Page, lab: Lab) -> None:
    notebook = json.loads((REPOSITORY / "notebooks/01-cpi.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    wanted = ("def area", "%sfm start", "cpi.serve", "with live(")
    live = [cell for part in wanted for cell in code if part in "".join(cell["source"])]
    assert len(live) == len(wanted)
    notebook["cells"] = live
    (lab.folder / "01-cpi.ipynb").write_text(json.dumps(notebook))
    ui.open_lab(page, lab, "01-cpi.ipynb")
    ui.kernel(page)
    panel = ui.panel(page)
    for cell in range(3):
        ui.run_cell(page, cell, wait=True)
    ui.expect(ui.rows(panel)).to_have_count(5)
    ui.expect(panel.get_by_role("button", name="waiting")).to_be_visible()
    page.evaluate(WATCH)
    ui.run_cell(page, 3, wait=True)
    page.evaluate("cancelAnimationFrame(watching)")
    tops = page.evaluate("tops")
    assert set(tops) == {"Processes", "Why", "Worlds", "Wait-for graph"}
    moved = {heading: max(found) - min(found) for heading, found in tops.items()}
    assert max(moved.values()) <= MOVES, moved
    texts = page.evaluate("[...texts]")
    assert {text for text in texts if "\n" not in text} <= {"waiting", "running"}
    assert any("cell 4 line" in text for text in texts)
    for text in texts:
        assert not re.search(r"[0-9a-f]{8}|\.py\b", text), text


def test_processes_come_first_and_name_their_notebook(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    panel = ui.panel(shown)
    titles = panel.locator(".sfm-Section-title")
    ui.expect(titles).to_have_text(["Processes", "Why", "Worlds", "Wait-for graph"])
    ui.expect(panel.locator(".sfm-Section-about")).to_have_text("01-cpi.ipynb")


@pytest.mark.parametrize(
    ("states", "line"),
    [
        (("running", "blocked in recv", "blocked in cell"), "running"),
        (("blocked in recv", "blocked in send", "blocked in cell"), "waiting"),
        (("idle", "idle", "blocked in cell"), "idle"),
    ],
)
def test_why_is_one_line_while_nothing_is_stuck(
    shown: Page, stream: fake.Stream, states: tuple[str, ...], line: str
) -> None:
    processes = [fake.process(rank, rank, state) for rank, state in enumerate(states)]
    sentence = "1 waits for recv(src=0)."
    stream.show(
        fake.snapshot(*processes),
        fake.diagnosis("waiting", "No deadlock is proven", sentence),
    )
    place = ui.panel(shown).get_by_role("region", name="Why", exact=True)
    ui.expect(place.locator(".sfm-Section-body")).to_have_text(line)
    height = place.bounding_box()["height"]
    place.get_by_role("button", name=line).press("Enter")
    ui.expect(place).to_contain_text(sentence)
    opened = place.bounding_box()["height"]
    more = [f"{rank} waits." for rank in range(40)]
    stream.send("diagnosis", fake.diagnosis("waiting", "No deadlock is proven", *more))
    ui.expect(place).to_contain_text("39 waits.")
    assert place.bounding_box()["height"] == opened > height


def test_why_is_in_view_below_many_processes(shown: Page, stream: fake.Stream) -> None:
    ranks = range(30)
    stream.show(fake.snapshot(*(fake.process(rank, rank, "running") for rank in ranks)))
    place = ui.panel(shown).get_by_role("region", name="Why", exact=True)
    ui.expect(place).to_be_in_viewport(ratio=0.99)
    row = ui.rows(ui.panel(shown)).first
    row.focus()
    for _ in ranks:
        shown.keyboard.press("ArrowDown")
        row = shown.locator("tr:focus")
        seen, hides = row.bounding_box(), place.bounding_box()
        assert seen["y"] + seen["height"] <= hides["y"] + 1


def test_a_state_is_shown_when_it_has_lasted(shown: Page, stream: fake.Stream) -> None:
    row = ui.rows(ui.panel(shown)).first
    stream.show(fake.snapshot(fake.process("A", 0, "blocked in recv", waits="recv(tag=1)")))
    ui.expect(row).to_contain_text("blocked in recv")
    shown.evaluate("""() => {
        window.seen = new Set();
        const table = document.querySelector('#sfm-panel .sfm-Table');
        const watch = {childList: true, characterData: true, subtree: true};
        new MutationObserver(() => seen.add(table.querySelector('td.sfm-Row-state').innerText))
            .observe(table, watch);
    }""")
    for number in range(30):
        state = "blocked in send" if number % 2 else "running"
        since = time.time() + 3600 + number  # so that none lasts, however slow the machine is
        stream.show(fake.snapshot(fake.process("A", 0, state, since=since, sent=number)))
        shown.wait_for_timeout(100)
    ui.expect(row).to_contain_text("running")
    states = set(shown.evaluate("[...seen]"))
    assert "running" in states and states <= {"blocked in recv", "running"}
