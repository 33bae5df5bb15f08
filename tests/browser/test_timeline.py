"""The live timeline: pointer and keys on it, pause, zoom, scrub, and forgetting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab
from tests.observe import pictures

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

ROWS = [{"uid": f"u-{name}", "name": name, "rank": i} for i, name in enumerate("AB")]
RUN = 10.0
"""Length of the recorded run in seconds; A sent a message to B at each second but the last."""


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world, in which no process is blocked."""
    return fake.Stream(page, [fake.world("w1")])


@pytest.fixture
def began() -> float:
    """The begin of the run that the timeline shows."""
    return time.time() - RUN - 1


@pytest.fixture
def view(page: Page, lab: Lab, stream: fake.Stream, began: float) -> Locator:
    """The timeline of a run, in the main area."""
    ui.open_lab(page, lab)
    ui.command(page, "sfm:open", kind="timeline")
    ui.asked(page, stream, "w1", ["diagnosis", "timeline"])
    spans = [
        {"uid": row["uid"], "begin": began, "end": began + RUN, "state": "running", "where": None}
        for row in ROWS
    ]
    tell(stream, began, RUN, [flight(f"{n}", began + n) for n in range(int(RUN) - 1)], spans)
    shown = page.locator("#sfm-timeline")
    ui.expect(shown.get_by_role("application")).to_be_visible()
    return shown


def tell(
    stream: fake.Stream,
    began: float,
    seconds: float,
    flights: list[fake.Json],
    spans: list[fake.Json],
) -> None:
    """Send an update of the timeline."""
    parts = {"processes": ROWS, "spans": spans, "flights": flights, "missing": 0}
    made = {"world": "w1", "begin": began, "end": began + seconds} | parts
    stream.send("timeline", pictures.check("timeline", made))


def flight(name: str, sent: float) -> fake.Json:
    """A message from A to B that was under way for a second."""
    lines = {"sent_at": fake.place(1), "received_at": fake.place(2)}
    tag = [["tag", repr(name)]]
    return pictures.flight(name, "u-A", "u-B", sent, sent + 1, attributes=tag, **lines)


def labels(view: Locator) -> int:
    """A hash of the drawing above the rows: other times have other labels."""
    pixels = "node => node.toDataURL().split('').reduce((h, c) => (h * 31 + c.charCodeAt()) | 0, 0)"
    return int(view.locator("canvas.sfm-Timeline-axis").evaluate(pixels))


def changes(page: Page, view: Locator, before: int) -> int:
    """Wait until another time window is shown."""
    ui.wait_until(page, lambda: labels(view) != before)
    return labels(view)


def test_message_is_chosen_by_a_click(page: Page, view: Locator) -> None:
    view.get_by_role("button", name="Run", exact=True).click()
    plot = view.locator(".sfm-Timeline-plot canvas")
    box = plot.bounding_box()
    assert box is not None
    chosen = view.get_by_role("region", name="Chosen")

    def hit() -> bool:
        # Half-way between the rows, at half-way of the message of the fifth second.
        for x in range(int(box["width"] * 0.4), int(box["width"] * 0.6), 4):
            plot.click(position={"x": x, "y": box["height"] / 2})
            if chosen.is_visible() and "Message" in chosen.inner_text():
                return True
        return False

    ui.wait_until(page, hit)
    ui.expect(chosen).to_contain_text("from A to B")
    ui.expect(chosen).to_contain_text("tag")
    ui.expect(chosen.get_by_role("button", name="cell 1 line 1")).to_be_visible()
    ui.expect(chosen.get_by_role("button", name="cell 1 line 2")).to_be_visible()
    chosen.get_by_role("button", name="Close").click()
    ui.expect(chosen).to_have_count(0)


def test_messages_are_walked_through_by_keys(page: Page, view: Locator) -> None:
    view.get_by_role("button", name="Run", exact=True).click()
    view.get_by_role("application").press("Enter")
    chosen = view.get_by_role("region", name="Chosen")
    ui.expect(chosen).to_contain_text("tag")
    before = chosen.inner_text()
    page.keyboard.press("ArrowRight")
    ui.expect(chosen).not_to_have_text(before)
    page.keyboard.press("Escape")
    ui.expect(chosen).to_have_count(0)


def test_time_is_zoomed_shifted_and_scrubbed(page: Page, view: Locator) -> None:
    view.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_timeout(300)
    now = labels(view)
    view.get_by_role("button", name="+", exact=True).click()
    now = changes(page, view, now)
    view.get_by_role("application").press("ArrowLeft")
    now = changes(page, view, now)
    view.locator(".sfm-Timeline-plot canvas").hover()
    page.keyboard.down("Control")  # without it the page scrolls
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    now = changes(page, view, now)
    overview = view.locator("canvas.sfm-Timeline-overview").bounding_box()
    assert overview is not None
    y = overview["y"] + overview["height"] / 2
    page.mouse.move(overview["x"] + overview["width"] * 0.1, y)
    page.mouse.down()
    page.mouse.move(overview["x"] + overview["width"] * 0.3, y, steps=4)
    page.mouse.up()
    changes(page, view, now)


def test_pause_takes_in_nothing_until_it_ends(
    page: Page, view: Locator, stream: fake.Stream, began: float
) -> None:
    pause = view.get_by_role("button", name="Pause")
    pause.click()
    ui.expect(pause).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(300)
    before = labels(view)
    tell(stream, began, RUN + 60, [flight("late", began + RUN + 58)], [])
    page.wait_for_timeout(500)
    assert labels(view) == before
    view.get_by_role("button", name="Follow").click()
    changes(page, view, before)


def test_lasting_spans_grow_without_updates(
    page: Page, view: Locator, stream: fake.Stream, began: float
) -> None:
    before = labels(view)
    lasts = {"uid": "u-A", "begin": began + RUN, "end": None, "where": None}
    tell(stream, began, RUN, [], [lasts | {"state": "blocked in recv"}])
    now = changes(page, view, before)
    changes(page, view, now)


def test_timeline_forgets_what_is_older_than_its_history(
    view: Locator, stream: fake.Stream
) -> None:
    now = time.time()
    tell(stream, now - 400, 400, [flight("old", now - 300), flight("new", now - 3)], [])
    view.get_by_role("button", name="As a table").click()
    ui.expect(view.get_by_role("table")).to_contain_text("new")
    ui.expect(view.get_by_role("table")).not_to_contain_text("old")


def test_matrix_says_who_sends_how_much_to_whom(
    page: Page, view: Locator, stream: fake.Stream, began: float, screenshots: Path
) -> None:
    view.get_by_role("button", name="As a table").click()
    button = view.get_by_role("button", name="As a matrix")
    button.focus()
    page.keyboard.press("Enter")
    region = view.get_by_role("region", name="Matrix of messages")
    ui.expect(region.locator("caption")).to_contain_text("9 messages of")
    ui.expect(region.get_by_role("columnheader")).to_have_text(["from \\ to", "A", "B"])
    line = region.get_by_role("row").filter(has=page.get_by_role("rowheader", name="A"))
    ui.expect(line.get_by_role("cell").last).to_contain_text("9")
    ui.expect(view.get_by_role("region", name="Messages", exact=True)).to_have_count(0)
    page.keyboard.press("Tab")
    ui.expect(region).to_be_focused()

    tell(stream, began, RUN, [flight("more", began + RUN - 1)], [])
    ui.expect(line.get_by_role("cell").last).to_contain_text("10")
    assert "A → B: 10 messages of" in str(line.get_by_role("cell").last.get_attribute("title"))
    for theme in ("Dark", "Light"):
        ui.theme(page, f"JupyterLab {theme}")
        ui.expect(page.locator("#jupyterlab-splash")).to_have_count(0)
        page.screenshot(path=screenshots / f"matrix-{theme.lower()}.png")
    button.click()
    ui.expect(view.get_by_role("application")).to_be_visible()
