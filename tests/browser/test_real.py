"""End to end: a notebook starts a world and hangs; the panel shows and ends it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocket

pytestmark = [
    pytest.mark.keeps("the browser and the Lab server belong to all modules"),
    pytest.mark.jupyter,
    pytest.mark.usefixtures("own_kernels"),
]

START = "%load_ext sfm_kernel\n%sfm start A B"
HANGS = """%%sfm --no-detect
other = "B" if sfm.name == "A" else "A"
send(dest=other, tag=3, data="spam")
m = recv(src=other,
         tag=2)"""
AFTER = "%%sfm\nprint('goes on', recv(tag=3).data)"
TALKS = """%%sfm B
import threading, time
def talk():
    for number in range(10_000):
        send(dest="C", number=number)
        time.sleep(0.02)
threading.Thread(target=talk, daemon=True).start()"""
WAITS = "%%sfm A\nrecv(60, tag=1)"
HOLDS = """%%sfm A
import ctypes, os
ctypes.PyDLL(None).read(os.open("go", os.O_RDWR), ctypes.create_string_buffer(1), 1)"""
COUNT = """() => {
    window.updates = 0;
    const watch = {childList: true, characterData: true, subtree: true};
    new MutationObserver(() => window.updates++).observe(
        document.querySelector('#sfm-panel .sfm-Table'), watch);
}"""


@pytest.fixture
def hanging(page: Page, lab: Lab) -> Page:
    """A notebook with a world, whose second cell is a deadlock; the panel is open."""
    path = notebook(lab.folder, "hangs.ipynb", START, HANGS, AFTER)
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    ui.panel(page)
    ui.run_cell(page, 0, wait=True)
    return page


def test_deadlock_is_explained_jumped_to_and_ended(hanging: Page, screenshots: Path) -> None:
    panel = ui.panel(hanging)
    ui.expect(ui.rows(panel)).to_have_count(3)  # the notebook, too
    ui.run_cell(hanging, 1)
    why = panel.locator(".sfm-Why[data-verdict=deadlock]")
    ui.expect(why).to_be_visible(timeout=30_000)
    ui.expect(why).to_contain_text("src='B', tag=2")
    ui.expect(why).to_contain_text("src='A', tag=2")
    ui.expect(why).to_contain_text("tag is 3, not 2")
    ui.expect(hanging.locator(".sfm-Announcer[role=alert]")).to_contain_text("tag=2")
    notes = hanging.locator(".cm-line [role=note]")
    ui.expect(notes.first).to_contain_text("wait")
    assert {"A", "B"} <= set("".join(notes.all_inner_texts()))
    row = ui.row(panel, "A")
    row.click()
    inbox = panel.get_by_role("list", name="Inbox of A")
    ui.expect(inbox).to_contain_text("spam")
    hanging.screenshot(path=screenshots / "deadlock.png")

    place = row.get_by_role("button", name="line 4")
    ui.expect(place).to_have_text("cell 2 line 4")
    hanging.evaluate(f"{ui.NOTEBOOK}.content.activeCellIndex = 2")
    place.click()
    ui.wait_until(hanging, lambda: ui.cursor(hanging) == (1, 3))
    hanging.screenshot(path=screenshots / "jumped.png")

    why.get_by_role("button", name="Interrupt these engines").click()
    ui.expect(why).to_be_hidden()
    ui.expect(notes).to_have_count(0)
    ui.wait_until(hanging, lambda: "KeyboardInterrupt" in ui.output(hanging, 1))
    ui.run_cell(hanging, 2, wait=True)
    assert ui.output(hanging, 2).count("goes on spam") == 2
    ui.expect(panel.locator(".sfm-Why[data-verdict=deadlock]")).to_have_count(0)
    hanging.screenshot(path=screenshots / "recovered.png")


def test_timeline_of_a_run(hanging: Page, screenshots: Path) -> None:
    ui.command(hanging, "sfm:open", kind="timeline")
    ui.open_file(hanging, "hangs.ipynb")
    ui.run_cell(hanging, 1)
    ui.expect(ui.panel(hanging).locator("[data-verdict=deadlock]")).to_be_visible(timeout=30_000)
    timeline = hanging.locator("#sfm-timeline .sfm-Timeline")
    timeline.get_by_role("button", name="As a table").click()
    ui.expect(timeline).to_contain_text("spam")
    hanging.screenshot(path=screenshots / "timeline-table.png")
    timeline.get_by_role("button", name="As a table").click()
    hanging.screenshot(path=screenshots / "timeline.png")
    ui.command(hanging, "sfm:interrupt")
    ui.wait_until(hanging, lambda: "KeyboardInterrupt" in ui.output(hanging, 1))


def test_notebook_s_own_world_is_restarted_rescaled_and_stopped(page: Page, lab: Lab) -> None:
    path = notebook(lab.folder, "owns.ipynb", START, HANGS)
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    panel = ui.panel(page)
    ui.run_cell(page, 0, wait=True)
    row = ui.row(panel, "A")
    before = row.get_attribute("data-uid")
    ui.run_cell(page, 1)
    ui.expect(panel.locator("[data-verdict=deadlock]")).to_be_visible(timeout=30_000)
    row.click()
    panel.get_by_role("button", name="Restart the Selected Engine: A").click()
    alive = ui.row(panel, "A")
    ui.wait_until(page, lambda: alive.last.get_attribute("data-uid") != before)
    dialog = page.get_by_role("dialog")
    ui.world_menu(page, "owns.ipynb", "Change the Number of Engines…")
    dialog.get_by_role("spinbutton").fill("3")
    dialog.locator(".jp-mod-accept").click()
    ui.expect(ui.rows(panel)).to_have_count(4, timeout=30_000)
    ui.world_menu(page, "owns.ipynb", "Stop All Engines…")
    dialog.locator(".jp-mod-accept").click()
    ui.expect(ui.rows(panel)).to_have_count(0, timeout=30_000)


@pytest.mark.timeout(170)
def test_server_s_world_from_start_to_stop(page: Page, lab: Lab, screenshots: Path) -> None:
    path = notebook(lab.folder, "connects.ipynb", "", "%%sfm\nprint(rank, size)")
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    panel = ui.panel(page)
    panel.get_by_role("button", name="Start Engines…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("2")
    dialog.get_by_role("button", name="Start").click()
    ui.expect(ui.rows(panel)).to_have_count(2, timeout=60_000)
    ui.world_menu(page, "", "Insert Code to Connect")
    ui.run_cell(page, 0, wait=True)
    ui.run_cell(page, 1, wait=True)
    assert "0 2" in ui.output(page, 1) and "1 2" in ui.output(page, 1)
    ui.expect(ui.rows(panel)).to_have_count(3)
    page.screenshot(path=screenshots / "server-world.png")
    ui.world_menu(page, "", "Change the Number of Engines…")
    dialog.get_by_role("spinbutton").fill("3")
    dialog.locator(".jp-mod-accept").click()
    ui.expect(ui.rows(panel)).to_have_count(4, timeout=60_000)
    ui.world_menu(page, "", "Stop All Engines…")
    dialog.locator(".jp-mod-accept").click()
    ui.expect(panel.locator(".sfm-World", has_text="of the server")).to_have_count(
        0, timeout=60_000
    )


def test_what_a_page_has_missed_is_shown_again(page: Page, lab: Lab) -> None:
    go = lab.folder / "go"
    prints = f"""%%sfm
import os, time
print('before', rank)
while not os.path.exists({str(go)!r}):
    time.sleep(0.02)
print('after', rank)"""
    path = notebook(lab.folder, "reloads.ipynb", START, prints, "%sfm output")
    ui.open_lab(page, lab, path)
    kernel = ui.kernel(page)
    ui.run_cell(page, 0, wait=True)
    ui.run_cell(page, 1)
    for rank in range(2):
        ui.wait_until(page, lambda rank=rank: f"before {rank}" in ui.output(page, 1))  # type: ignore[misc]
    page.goto("about:blank")  # a reload; nobody listens until the page is there again
    go.touch()
    ui.wait_until(page, lambda: lab.get(f"api/kernels/{kernel}")["execution_state"] == "idle")
    ui.open_lab(page, lab, path)
    assert ui.kernel(page) == kernel and "after" not in ui.output(page, 1)
    ui.run_cell(page, 2, wait=True)
    for rank in range(2):
        assert f"before {rank}\\nafter {rank}\\n" in ui.output(page, 2)


@pytest.mark.timeout(170)
@pytest.mark.parametrize(("name", "cell"), [("cell blocked", WAITS), ("GIL held", HOLDS)])
def test_picture_stays_live(page: Page, lab: Lab, screenshots: Path, name: str, cell: str) -> None:
    path = notebook(lab.folder, "live.ipynb", START + " C", TALKS, cell)
    go = lab.folder / "go"
    go.unlink(missing_ok=True)
    os.mkfifo(go)
    frames: list[float] = []

    def count(socket: WebSocket) -> None:
        if "/sfm/stream" in socket.url:
            socket.on("framereceived", lambda _: frames.append(time.monotonic()))

    page.on("websocket", count)
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    panel = ui.panel(page)
    ui.run_cell(page, 0, wait=True)
    ui.expect(ui.rows(panel)).to_have_count(4)
    ui.run_cell(page, 1, wait=True)
    ui.run_cell(page, 2)
    row = ui.row(panel, "home")
    ui.expect(row).to_contain_text("waits for a cell")
    page.wait_for_timeout(1000)
    frames.clear()
    begin = time.monotonic()
    page.evaluate(COUNT)
    page.wait_for_timeout(4000)
    updates = page.evaluate("window.updates")
    seconds = time.monotonic() - begin
    ui.expect(row).to_contain_text("waits for a cell")
    with open(os.open(go, os.O_RDWR), "wb") as pipe:
        pipe.write(b".")  # who holds the GIL goes on
    file = screenshots / "rates.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    known[name] = {
        "updates of the view a second": round(updates / seconds, 1),
        "texts from the server a second": round(len(frames) / seconds, 1),
    }
    file.write_text(json.dumps(known, indent=1))
    assert updates > 0 and frames


def test_a_timeline_in_a_narrow_cell_keeps_its_letters_and_scrolls(
    page: Page, lab: Lab, screenshots: Path
) -> None:
    talk = "%%sfm\nother = 'B' if sfm.name == 'A' else 'A'\nfor n in range(5):\n"
    talk += "    send(dest=other, n=n)\n    recv(n=n)"
    path = notebook(lab.folder, "narrow.ipynb", START, talk, "%sfm timeline")
    page.set_viewport_size({"width": 1000, "height": 800})
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    for cell in range(3):
        ui.run_cell(page, cell, wait=True)
    picture = page.locator(".jp-Notebook svg.sfm-timeline")
    sizes = """svg => {
        const scrolls = svg.parentElement.parentElement;
        return [svg.getBoundingClientRect().width, scrolls.scrollWidth, scrolls.clientWidth];
    }"""
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        ui.theme(page, theme)
        width, inside, room = picture.evaluate(sizes)
        assert room < width == inside == 560
        picture.scroll_into_view_if_needed()
        page.screenshot(path=screenshots / f"narrow-{theme.split()[-1].lower()}.png")
