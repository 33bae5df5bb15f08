"""Finished runs of programs in the panel: their list, their records, and their removal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab
from tests.browser.test_layout import drag_edge
from tests.browser.test_programs import fill, menu

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

pytestmark = [
    pytest.mark.keeps("the browser and the Lab server belong to all modules"),
    pytest.mark.jupyter,
]

RING = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.send("spam", (comm.rank + 1) % comm.size)
print(f"<b>rank {comm.rank}</b> has", comm.recv(), flush=True)
comm.barrier()
raise SystemExit(3 if comm.rank == 1 else 0)
"""


IS_DARK = "() => matchMedia('(prefers-color-scheme: dark)').matches"


def section(panel: Locator) -> Locator:
    return panel.get_by_role("region", name="Finished runs")


def items(panel: Locator) -> Locator:
    return section(panel).get_by_role("listitem")


def run(nth: int, program: str = "ring.py", end: str = "done", **more: Any) -> dict[str, Any]:
    made = {"id": f"{nth}-0", "program": program, "ranks": 4, "time": time.time(), "end": end}
    return fake.check("finished_run", made | more)


def test_a_run_stays_and_its_record_opens(page: Page, lab: Lab, screenshots: Path) -> None:
    (lab.folder / "stays.py").write_text(RING)
    ui.open_lab(page, lab)
    panel = ui.panel(page)
    mine = items(panel).filter(has_text="stays.py")  # another module's run may come late
    menu(page, "stays.py")
    page.get_by_role("menuitem", name="Run with SFM").click()
    fill(page, 3, "")
    mine.wait_for(timeout=60_000)
    ui.expect(mine).to_contain_text("exit status 3, 3 ranks")
    mine.get_by_role("button", name="stays.py, exit status 3").click()
    record = page.frame_locator("iframe[title='Run of stays.py']")
    record.get_by_role("heading", name="stays.py on 3 ranks: exit status 3").wait_for()
    record.locator("#sfm-timeline canvas").first.wait_for()  # its script runs
    output = record.get_by_label("output", exact=True)
    ui.expect(output).to_contain_text("<b>rank 2</b> has spam")
    ui.expect(output).to_contain_text("sfm: rank 1 ended with exit status 3")
    assert record.locator("body").evaluate("() => self.origin") == "null"
    page.screenshot(path=screenshots / "finished-run.png")
    mine.get_by_role("button", name="Delete").click()
    ui.expect(mine).to_have_count(0)
    page.evaluate("() => window.jupyterapp.serviceManager.terminals.shutdownAll()")


def test_the_last_runs_are_a_quiet_list(page: Page, lab: Lab, screenshots: Path) -> None:
    stream = fake.Stream(page, [])
    ui.open_lab(page, lab)
    panel = ui.panel(page)
    ends = ["done", "deadlock", "exit status 3", "killed by SIGSEGV", "stopped"]
    hostile = run(9, "<img src=x onerror=alert(1)>" + "long" * 40)
    old = run(8, "old.c", time=time.time() - 3 * 86400, ranks=1)
    stream.send("runs", [*(run(nth, end=end) for nth, end in enumerate(ends)), hostile, old])
    ui.expect(items(panel)).to_have_count(7)
    ui.expect(items(panel).nth(1)).to_contain_text("deadlock, 4 ranks")
    ui.expect(items(panel).last).to_contain_text("done, 1 rank")
    long_ago = time.localtime(old["time"])
    assert str(long_ago.tm_year) in items(panel).last.inner_text()
    assert page.locator(".sfm-Runs img").count() == 0
    drag_edge(page, 80)
    ui.wait_until(page, lambda: panel.bounding_box()["width"] <= 250)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        ui.theme(page, theme)
        panel.screenshot(path=screenshots / f"finished-runs-{theme[11:].lower()}.png")
    assert panel.evaluate("node => node.scrollWidth <= node.clientWidth")

    # With keys alone; nothing is deleted before the answer.
    deleted: list[str] = []

    def take(route: Route) -> None:
        deleted.append(f"{route.request.method} {route.request.url.partition('/sfm/')[2]}")
        route.fulfill(status=204)

    page.route("**/sfm/runs*", take)
    page.route("**/sfm/runs/*", take)
    items(panel).nth(1).get_by_role("button", name="Delete: ring.py, ").press("Enter")
    ui.wait_until(page, lambda: len(deleted) == 1)
    section(panel).get_by_role("button", name="Delete All Finished Runs").press("Enter")
    dialog = page.locator(".jp-Dialog")
    ui.expect(dialog).to_contain_text("Delete 7 finished runs?")
    page.keyboard.press("Escape")
    section(panel).get_by_role("button", name="Delete All Finished Runs").press("Enter")
    dialog.get_by_role("button", name="Delete").click()
    ui.wait_until(page, lambda: len(deleted) == 2)
    assert [one.partition("?")[0] for one in deleted] == ["DELETE runs/1-0", "DELETE runs"]
    stream.send("runs", [])
    ui.expect(section(panel)).to_have_count(0)
    assert not ui.enabled(page, "sfm:open-run")


def test_a_record_has_the_colours_of_the_theme(page: Page, lab: Lab) -> None:
    stream = fake.Stream(page, [])
    ui.open_lab(page, lab)
    page.emulate_media(color_scheme="null")  # or playwright decides about the frame's
    page.route("**/sfm/runs/*/record*", lambda route: route.fulfill(body="<p>here</p>"))
    stream.send("runs", [run(1)])
    ui.wait_until(page, lambda: ui.enabled(page, "sfm:open-run"))
    ui.command(page, "sfm:open-run")
    ui.command(page, "sfm:open-run")  # it is open already
    record = page.frame_locator("iframe[title='Run of ring.py']")
    ui.expect(record.locator("p")).to_have_text("here")
    for theme, dark in (("JupyterLab Dark", True), ("JupyterLab Light", False)):
        ui.theme(page, theme)
        ui.wait_until(page, lambda dark=dark: record.locator("p").evaluate(IS_DARK) == dark)
