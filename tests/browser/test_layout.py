"""The panel and the views in the window: themes, widths, the restored layout, the status bar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import REPOSITORY, Lab
from tests.browser.test_panel import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

SOURCES = REPOSITORY / "labextension/src"

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world, which the panel shows since there is no other."""
    return fake.Stream(page, [fake.world(running=1, blocked=2)])


@pytest.fixture
def shown(page: Page, lab: Lab, stream: fake.Stream) -> Page:
    """JupyterLab with the panel open."""
    ui.open_lab(page, lab)
    ui.panel(page)
    return page


def test_sections_are_closed_by_key_and_stay_so(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    title = ui.panel(shown).get_by_role("button", name="Why", exact=True)
    title.press("Enter")
    ui.expect(title).to_have_attribute("aria-expanded", "false")
    ui.expect(ui.panel(shown).locator(".sfm-Why")).to_have_count(0)
    shown.wait_for_timeout(1000)  # JupyterLab saves its state with a delay
    ui.reload(shown)
    again = ui.panel(shown).get_by_role("button", name="Why", exact=True)
    ui.expect(again).to_have_attribute("aria-expanded", "false")


def test_views_and_panel_come_back_after_a_reload(shown: Page, stream: fake.Stream) -> None:
    for kind in ("processes", "graph", "timeline"):
        ui.command(shown, "sfm:open", kind=kind)
        shown.locator(f"#sfm-{kind}").wait_for(state="attached")
    shown.wait_for_timeout(1500)
    ui.reload(shown)
    for kind in ("processes", "graph", "timeline"):
        shown.locator(f"#sfm-{kind}").wait_for(state="attached")
    ui.expect(shown.locator("#sfm-panel")).to_be_visible()


@pytest.mark.parametrize("name", ["JupyterLab Light", "JupyterLab Dark"])
def test_looks(shown: Page, stream: fake.Stream, screenshots: Path, name: str) -> None:
    short = name.split()[-1].lower()
    ui.theme(shown, name)
    seen, why = fake.crossed()
    stream.show(seen, why)
    panel = ui.panel(shown)
    ui.rows(panel).first.click()
    panel.locator(".sfm-Why").wait_for()
    shown.screenshot(path=screenshots / f"panel-{short}.png")
    colours = panel.locator(".sfm-Why-title").evaluate(
        "node => [getComputedStyle(node).color, getComputedStyle(node.parentNode).backgroundColor]"
    )
    assert ui.contrast(*colours) >= 4.5
    for kind in ("processes", "graph"):
        ui.command(shown, "sfm:open", kind=kind)
        shown.locator(f"#sfm-{kind}").wait_for()
        shown.wait_for_timeout(300)
        stream.show(seen, why)
        shown.wait_for_timeout(300)
        shown.screenshot(path=screenshots / f"{kind}-{short}.png")


@pytest.mark.parametrize("short", ["light", "dark"])
def test_narrow_window(shown: Page, stream: fake.Stream, screenshots: Path, short: str) -> None:
    ui.theme(shown, f"JupyterLab {short.title()}")
    shown.set_viewport_size({"width": 400, "height": 800})
    ui.command(shown, "application:toggle-right-area")
    ui.command(shown, "application:toggle-left-area")
    ui.command(shown, "sfm:open", kind="processes")
    view = shown.locator("#sfm-processes")
    view.wait_for()
    stream.show(*fake.crossed())
    ui.rows(view).first.click()
    shown.wait_for_timeout(300)
    shown.screenshot(path=screenshots / f"narrow-{short}.png")
    content = view.locator(".sfm-View")
    assert content.evaluate("node => node.scrollWidth <= node.clientWidth")
    for row in ui.rows(view).all():
        assert row.evaluate("node => node.scrollWidth <= node.clientWidth + 1")


@pytest.mark.parametrize("width", [320, 250])
def test_a_row_shows_name_state_and_line_in_full(
    shown: Page, stream: fake.Stream, screenshots: Path, width: int
) -> None:
    panel = ui.panel(shown)
    ui.wait_until(shown, lambda: panel.bounding_box()["width"] >= 319)  # its first width
    if width < 320:
        drag_edge(shown, 320 - width)
        ui.wait_until(shown, lambda: panel.bounding_box()["width"] <= width)
    stream.show(
        fake.snapshot(
            fake.process("worker", 0, "blocked in recv", where=fake.place(11, 4), sent=12),
            fake.process(11, 11, "running", where=fake.place(10, 12)),
            fake.process("home", 1, "blocked in cell", kind="notebook", where=fake.place(4, 11)),
        )
    )
    for row in ui.rows(panel).all():
        for part in ("th", ".sfm-Row-state", ".sfm-Row-where", ".sfm-Row-since", ".sfm-Row-depth"):
            cell = row.locator(part)
            assert cell.evaluate("node => node.scrollWidth <= node.clientWidth"), part
    ui.expect(panel.locator(".sfm-World-counts")).to_have_text(
        "1 running, 2 blocked, 1 idle, of the server"
    )
    shown.screenshot(path=screenshots / f"width-{width}.png")


def drag_edge(page: Page, by: int) -> None:
    """Make the panel narrower: drag its left edge to the right."""
    box = ui.panel(page).bounding_box()
    page.mouse.move(box["x"] - 3, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + by + 20, box["y"] + 300, steps=3)
    page.mouse.up()


def test_the_panel_is_widened_once(shown: Page, stream: fake.Stream) -> None:
    panel = ui.panel(shown)
    shown.set_viewport_size({"width": 1100, "height": 800})
    drag_edge(shown, 200)
    ui.wait_until(shown, lambda: panel.bounding_box()["width"] <= 260)
    shown.wait_for_timeout(1500)  # JupyterLab saves the layout with a delay
    ui.reload(shown)
    assert ui.panel(shown).bounding_box()["width"] <= 260


def test_a_world_s_menu_is_opened_and_left_by_key(shown: Page, stream: fake.Stream) -> None:
    more = ui.panel(shown).get_by_role("button", name="More: cluster w1")
    more.press("Enter")
    items = shown.locator(".lm-Menu-itemLabel:not(:empty)")
    ui.expect(items).to_have_text(
        [
            "Insert Code to Connect",
            "Restart All Engines…",
            "Change the Number of Engines…",
            "Stop All Engines…",
        ]
    )
    shown.keyboard.press("Escape")
    ui.expect(items).to_have_count(0)
    ui.expect(more).to_be_focused()


def test_a_state_looks_as_in_the_timeline(shown: Page, stream: fake.Stream) -> None:
    states = json.loads((SOURCES / "timeline/states.json").read_text())
    stream.show(fake.snapshot(*(fake.process(i, i, state) for i, state in enumerate(states))))
    rows = ui.rows(ui.panel(shown))
    ui.expect(rows).to_have_count(len(states))
    for row, style in zip(rows.all(), states.values(), strict=True):
        state = row.locator(".sfm-State")
        ui.expect(state).to_have_text(style["text"])
        hatch = state.locator("path").first
        assert (hatch.get_attribute("d") if style["hatch"] else "") == style["hatch"]
        shape = state.locator("> svg")
        assert style["colour"] in shape.get_attribute("style")


def test_where_world_is_first_read_it_is_defined(shown: Page, stream: fake.Stream) -> None:
    stream.send("worlds", [])
    ui.expect(ui.panel(shown).get_by_role("region", name="Worlds", exact=True)).to_contain_text(
        "No world yet. A world is a group of processes that send each other messages"
    )


def test_status_bar_counts_and_opens_the_panel(page: Page, lab: Lab, stream: fake.Stream) -> None:
    ui.open_lab(page, lab)
    item = page.get_by_role("button", name="SFM 1 running 2 blocked 1 idle")
    item.click()
    ui.expect(page.locator("#sfm-panel")).to_be_visible()
    stream.send("worlds", [])
    ui.expect(item).to_be_hidden()


def test_hostile_deadlock_in_a_notification(page: Page, lab: Lab, stream: fake.Stream) -> None:
    ui.open_lab(page, lab)
    why = fake.diagnosis("deadlock", HOSTILE, cycle=["A"], stuck=["A"])
    ui.wait_until(page, lambda: bool(stream.watches))
    stream.send("diagnosis", why)
    toast = page.get_by_role("alert").filter(has_text="<img src=x")
    ui.expect(toast.locator("visible=true").first).to_be_visible()
    assert page.locator(".Toastify img, .Toastify script").count() == 0
    assert page.evaluate("window.hacked") is None
