"""The table of processes in the main area, with what they use."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

PARTS = ["diagnosis", "snapshot", "usage"]
HEADINGS = [
    "Process",
    "State",
    "For",
    "Call",
    "Line",
    "Inbox",
    "Messages/s",
    "Memory",
    "Processor",
]


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world, which the view shows since there is no other."""
    return fake.Stream(page, [fake.world()])


@pytest.fixture
def view(page: Page, lab: Lab, stream: fake.Stream) -> Locator:
    """The table, in a window that is wide enough for all its columns."""
    page.set_viewport_size({"width": 1440, "height": 900})
    ui.open_lab(page, lab)
    ui.command(page, "sfm:open", kind="processes")
    ui.asked(page, stream, "w1", PARTS)
    found = page.locator("#sfm-processes")
    found.wait_for()
    return found


def points(row: Locator, column: str) -> list[list[float]]:
    """The points of a line in a row."""
    text = row.locator(f".sfm-Row-{column} polyline").get_attribute("points")
    return [[float(part) for part in point.split(",")] for point in text.split()]


def test_all_columns_have_headings_and_are_read(view: Locator, stream: fake.Stream) -> None:
    seen, why = fake.crossed()
    stream.show(seen, why)
    stream.send("usage", fake.usage(("A", 64_000_000, 1 << 30, 2.4), ("B", 900_000, None, 99.6)))
    headings = view.get_by_role("columnheader")
    ui.expect(headings).to_have_text(HEADINGS)
    first, second = (ui.row(view, name) for name in "AB")
    for column, text in [
        ("name", "A rank 0"),
        ("state", "stuck in recv"),
        ("waits", "recv(src='B', tag=2)"),
        ("where", "cell 7 line 3"),
        ("depth", "2"),
        ("memory", "64 MB"),
        ("processor", "2 %"),
    ]:
        cell = first.locator(f".sfm-Row-{column}")
        ui.expect(cell).to_have_text(text, use_inner_text=True)
    ui.expect(second.locator(".sfm-Row-memory")).to_have_text("900 kB")
    ui.expect(second.locator(".sfm-Row-processor")).to_have_text("100 %")
    ui.expect(ui.row(view, "C").locator(".sfm-Row-processor")).to_be_empty()
    ui.expect(first.locator(".sfm-Sparkline-limit")).to_have_count(1)
    ui.expect(second.locator(".sfm-Sparkline-limit")).to_have_count(0)
    ui.expect(first.locator(".sfm-Row-memory [title]")).to_have_attribute(
        "title", "64 MB of 1.1 GB, private memory"
    )
    bars = [row.locator(".sfm-Bar > span").get_attribute("style") for row in (first, second)]
    assert bars == ["width: 20%;", "width: 0%;"]
    for heading in headings.all():
        assert heading.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_lines_go_back_thirty_seconds(view: Locator, stream: fake.Stream, page: Page) -> None:
    stream.show(fake.snapshot(fake.process("A", 0, "running")))
    row = ui.row(view, "A")
    now = time.time()
    for age in range(40, -1, -1):
        made = fake.usage(("A", 1_000_000 * (41 - age), None, 0)) | {"time": now - age}
        stream.send("usage", made)
    ui.expect(row.locator(".sfm-Row-memory")).to_have_text("41 MB")
    line = points(row, "memory")
    assert len(line) == 30 and line[0][0] < 3 and line[-1] == [56, 1]
    heights = [y for _, y in line]
    assert heights == sorted(heights, reverse=True)
    stream.show(fake.snapshot(fake.process("A", 0, "running", sent=100)))
    page.wait_for_timeout(600)  # rates stand for half a second
    stream.show(fake.snapshot(fake.process("A", 0, "running", sent=200)))
    page.wait_for_timeout(600)
    stream.send("usage", fake.usage(("A", 41_000_000, None, 0)))
    ui.wait_until(page, lambda: points(row, "rate")[-1][1] == 1)
    assert points(row, "rate")[0][1] == 15


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_looks(view: Locator, stream: fake.Stream, screenshots: Path, theme: str) -> None:
    ui.theme(view.page, f"JupyterLab {theme}")
    stream.show(*fake.crossed())
    now = time.time()
    for age in range(30, -1, -1):
        used = (("A", 50_000_000 + 3_000_000 * (30 - age), 1 << 28, 2 * age), ("B", 9, None, 3))
        stream.send("usage", fake.usage(*used) | {"time": now - age})
    ui.expect(ui.row(view, "A").locator(".sfm-Row-memory")).to_have_text("140 MB")
    view.page.screenshot(path=screenshots / f"usage-{theme.lower()}.png")


@pytest.mark.jupyter
@pytest.mark.usefixtures("own_kernels")
def test_a_process_that_computes_and_one_that_allocates(page: Page, lab: Lab) -> None:
    busy = "%%sfm --noblock\nif rank == 0:\n    while True: pass\nelse:\n"
    busy += "    held = bytearray(300_000_000); recv()"
    path = notebook(lab.folder, "busy.ipynb", "%load_ext sfm_kernel\n%sfm start 2", busy)
    page.set_viewport_size({"width": 1440, "height": 900})
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    for cell in range(2):
        ui.run_cell(page, cell, wait=True)
    ui.command(page, "sfm:open", kind="processes")
    view = page.locator("#sfm-processes")

    def shown(name: str, column: str) -> int:
        text = ui.row(view, name).locator(f".sfm-Row-{column}").inner_text()
        return int("".join(filter(str.isdigit, text)) or 0)

    ui.wait_until(page, lambda: shown("1", "memory") > 300 > shown("0", "memory") > 0)
    ui.wait_until(page, lambda: shown("0", "processor") > shown("1", "processor"))
