"""The list of worlds, the shown world, and the requests to the server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

TWO = [fake.world("w1", blocked=1), fake.world("w2", owner="other", cluster=None)]
NOTHING: list[str] = []
SEEN = ["diagnosis", "snapshot"]


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with two worlds, neither of which is a notebook's."""
    return fake.Stream(page, TWO)


def test_pinned_world_is_shown_and_stays_after_a_reload(
    page: Page, lab: Lab, stream: fake.Stream
) -> None:
    ui.open_lab(page, lab)
    panel = ui.panel(page)
    ui.asked(page, stream, None, NOTHING)
    panel.get_by_role("button", name="1 other world of yours").click()
    pin = panel.get_by_role("button", name="Pin the World: cluster w2")
    pin.click()
    ui.asked(page, stream, "w2", SEEN)
    ui.expect(pin).to_have_attribute("aria-pressed", "true")
    ui.expect(panel.locator("[data-world=w2]")).to_have_attribute("aria-current", "true")
    page.wait_for_timeout(1000)  # JupyterLab saves its state with a delay
    ui.reload(page)
    ui.asked(page, stream, "w2", SEEN)
    panel.get_by_role("button", name="Pin the World: cluster w2").click()
    ui.asked(page, stream, None, NOTHING)


def test_focused_notebook_s_world_is_shown(page: Page, lab: Lab, stream: fake.Stream) -> None:
    first = notebook(lab.folder, "first.ipynb", "1")
    second = notebook(lab.folder, "second.ipynb", "2")
    ui.open_lab(page, lab, first)
    ui.panel(page)
    first_kernel = ui.kernel(page)
    ui.open_file(page, second)
    second_kernel = ui.kernel(page)
    assert first_kernel != second_kernel
    stream.send(
        "worlds",
        [
            fake.world("w1", kernels=[first_kernel]),
            fake.world("w2", kernels=[second_kernel]),
            fake.world("w3"),
        ],
    )
    ui.asked(page, stream, "w2", SEEN)
    ui.open_file(page, first)
    ui.asked(page, stream, "w1", SEEN)
    stream.send("worlds", [fake.world("w2", kernels=[second_kernel])])
    ui.asked(page, stream, None, NOTHING)
    ui.expect(ui.panel(page)).to_contain_text("The current notebook is in no world")


def test_worlds_of_other_programs_are_folded(
    page: Page, lab: Lab, stream: fake.Stream, screenshots: Path
) -> None:
    ui.open_lab(page, lab, notebook(lab.folder, "own.ipynb", "1"))
    panel, own = ui.panel(page), ui.kernel(page)
    others = [fake.world(name, owner="other", cluster=None) for name in ("p1", "p2")]
    others.append(fake.world("another", owner="notebook", kernels=["of another notebook"]))
    mine = fake.world("mine", owner="notebook", kernels=[own])
    stream.send("worlds", [*others, fake.world("started"), mine])
    first = panel.get_by_role("list", name="Worlds", exact=True)
    ui.expect(first.get_by_role("listitem")).to_have_count(2)
    assert first.locator("li").first.get_attribute("data-world") == "mine"
    folded = panel.get_by_role("list", name="Other worlds")
    ui.expect(folded).to_have_count(0)
    fold = panel.get_by_role("button", name="3 other worlds of yours")
    ui.expect(fold).to_have_attribute("aria-expanded", "false")
    panel.screenshot(path=screenshots / "worlds-folded.png")
    fold.press("Enter")
    ui.expect(fold).to_have_attribute("aria-expanded", "true")
    ui.expect(folded.get_by_role("listitem")).to_have_count(3)
    ui.theme(page, "JupyterLab Dark")
    panel.screenshot(path=screenshots / "worlds-open-dark.png")
    ui.theme(page, "JupyterLab Light")

    def is_saved() -> bool:  # JupyterLab does that with a delay
        saved = [path.read_text() for path in (lab.folder.parent / "workspaces").glob("*")]
        return any(re.search(r'"others":\s*true', text) for text in saved)

    ui.wait_until(page, is_saved)
    ui.reload(page)
    ui.asked(page, stream, None, NOTHING)  # the notebook is in none of the worlds it hears of first
    assert ui.kernel(page) == own
    stream.send("worlds", [*others, mine])
    ui.expect(folded.get_by_role("listitem")).to_have_count(3)
    page.keyboard.press("Escape")
    fold.click()
    ui.expect(folded).to_have_count(0)
    stream.send("worlds", others)  # none is the notebook's: there is room for all
    ui.expect(first.get_by_role("listitem")).to_have_count(3)


def test_nothing_is_asked_for_while_hidden(page: Page, lab: Lab, stream: fake.Stream) -> None:
    stream.worlds = [fake.world("w1")]
    ui.open_lab(page, lab)
    ui.asked(page, stream, "w1", NOTHING)  # the status bar needs only the worlds
    ui.panel(page)
    ui.asked(page, stream, "w1", SEEN)
    ui.command(page, "sfm:open", kind="timeline")
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot", "timeline"])
    ui.hide(page, True)
    ui.asked(page, stream, "w1", NOTHING)
    ui.hide(page, False)
    ui.asked(page, stream, "w1", ["diagnosis", "snapshot", "timeline"])
    ui.command(page, "application:toggle-right-area")
    ui.asked(page, stream, "w1", ["diagnosis", "timeline"])
    ui.command(page, "application:close")
    ui.asked(page, stream, "w1", NOTHING)


def test_closed_panel_looks_for_deadlocks_only_while_somebody_is_blocked(
    page: Page, lab: Lab, stream: fake.Stream
) -> None:
    stream.worlds = [fake.world("w1")]
    ui.open_lab(page, lab)
    ui.asked(page, stream, "w1", NOTHING)
    for _ in range(10):  # short waits are none of its business
        stream.send("worlds", [fake.world("w1", blocked=2)])
        page.wait_for_timeout(300)
        stream.send("worlds", [fake.world("w1")])
    assert stream.watch["parts"] == NOTHING
    stream.send("worlds", [fake.world("w1", blocked=2)])
    ui.asked(page, stream, "w1", ["diagnosis"])
    assert stream.watch["rate"] == 1
    stream.send("diagnosis", fake.crossed()[1])
    toast = page.get_by_role("alert").filter(has_text="Deadlock: A and B wait for each other")
    toast.get_by_role("button", name="Why?").click()
    ui.expect(page.locator("#sfm-panel")).to_be_visible()
    ui.asked(page, stream, "w1", SEEN)
    stream.send("diagnosis", fake.diagnosis("running", "All compute"))
    ui.expect(toast).to_be_hidden()


@pytest.mark.parametrize("chosen", ["open", "nothing"])
def test_deadlock_does_what_the_settings_say(
    page: Page, lab: Lab, stream: fake.Stream, chosen: str
) -> None:
    stream.worlds = [fake.world("w1", blocked=2)]
    ui.open_lab(page, lab)
    ui.setting(page, "deadlock", chosen)
    try:
        if chosen == "nothing":
            page.wait_for_timeout(3000)  # the panel waits a moment before it looks
            ui.asked(page, stream, "w1", NOTHING)
            return
        ui.asked(page, stream, "w1", ["diagnosis"])
        stream.send("diagnosis", fake.crossed()[1])
        ui.expect(page.locator("#sfm-panel")).to_be_visible()
    finally:
        ui.setting(page, "deadlock", "announce")


def test_rate_is_a_setting(page: Page, lab: Lab, stream: fake.Stream) -> None:
    stream.worlds = [fake.world("w1")]
    ui.open_lab(page, lab)
    ui.panel(page)
    ui.asked(page, stream, "w1", SEEN)
    assert stream.watch["rate"] == 10
    ui.setting(page, "rate", 3)
    ui.wait_until(page, lambda: stream.watch["rate"] == 3)
    ui.setting(page, "rate", 10)


def test_lost_connection_comes_back(page: Page, lab: Lab, stream: fake.Stream) -> None:
    stream.worlds = [fake.world("w1")]
    ui.open_lab(page, lab)
    panel = ui.panel(page)
    ui.asked(page, stream, "w1", SEEN)
    stream.show(fake.snapshot(fake.process(0, 0)))
    ui.expect(ui.rows(panel)).to_have_count(1)
    stream.refuse = True
    before = len(stream.watches)
    stream.drop()
    notice = panel.get_by_text("The server does not answer")
    ui.expect(notice).to_be_visible(timeout=20_000)
    ui.expect(ui.rows(panel)).to_have_count(1)  # the last known state
    assert not ui.enabled(page, "sfm:start")
    stream.refuse = False
    ui.expect(notice).to_be_hidden(timeout=60_000)
    ui.wait_until(page, lambda: len(stream.watches) > before)
    ui.asked(page, stream, "w1", SEEN)


def test_commands_are_enabled_only_where_they_make_sense(
    page: Page, lab: Lab, stream: fake.Stream
) -> None:
    ui.open_lab(page, lab)
    ui.panel(page)
    of_world = ["stop", "restart", "rescale", "interrupt", "pin", "download-trace"]
    of_process = ["interrupt-process", "restart-process", "stop-process", "jump"]
    for name in [*of_world, *of_process, "insert-code", "copy-diagnosis", "interrupt-stuck"]:
        assert not ui.enabled(page, f"sfm:{name}"), name
    ui.panel(page).get_by_role("button", name="Pin the World: cluster w1").click()
    stream.show(*fake.crossed())
    ui.rows(ui.panel(page)).first.click()
    ui.expect(ui.panel(page).get_by_role("searchbox")).to_be_visible()
    for name in [*of_world, *of_process, "copy-diagnosis", "interrupt-stuck"]:
        assert ui.enabled(page, f"sfm:{name}"), name
    for name in ("stop", "restart", "rescale"):  # w2 belongs to somebody else
        assert not ui.enabled(page, f"sfm:{name}", world="w2"), name
    assert ui.enabled(page, "sfm:interrupt", world="w2")


def test_all_commands_are_in_the_palette(page: Page, lab: Lab, stream: fake.Stream) -> None:
    ui.open_lab(page, lab)
    ui.panel(page).get_by_role("button", name="Pin the World: cluster w1").click()
    stream.show(*fake.crossed())
    ids = page.evaluate("jupyterapp.commands.listCommands().filter(id => id.startsWith('sfm:'))")
    assert len(ids) >= 15
    for name in ids:
        label, caption = page.evaluate(
            "id => [jupyterapp.commands.label(id), jupyterapp.commands.caption(id)]", name
        )
        assert label and caption, name
    ui.search_palette(page, "sfm timeline", "Open Timeline")
    page.keyboard.press("Enter")
    page.locator("#sfm-timeline").wait_for()


def test_the_classroom_opens_in_a_page_of_its_own(page: Page, lab: Lab) -> None:
    ui.open_lab(page, lab)
    with page.context.expect_page() as opened:
        ui.command(page, "sfm:classroom")
    classroom = opened.value
    line = classroom.get_by_role("code").first
    ui.expect(line).to_contain_text(f"%sfm share {lab.url('sfm/classroom/')}#")
    ui.expect(classroom.get_by_text("Nobody shares a world yet.")).to_be_visible()
    classroom.close()


def test_engines_are_started_from_the_panel(page: Page, lab: Lab, stream: fake.Stream) -> None:
    sent: list[object] = []
    ui.answer(page, "", sent, {"world": "w2", "cluster": "c-w2"}, status=201)
    ui.open_lab(page, lab)
    start = ui.panel(page).get_by_role("button", name="Start Engines…")
    for text, body in [("3", {"engines": 3}), ("A B", {"names": ["A", "B"]})]:
        start.click()
        page.get_by_role("dialog").get_by_role("textbox").fill(text)
        page.get_by_role("dialog").get_by_role("button", name="Start").click()
        ui.wait_until(page, lambda: bool(sent))
        assert sent.pop() == {**body, "progress": True}
    ui.asked(page, stream, "w2", SEEN)

    page.route(
        "**/sfm/worlds?*", lambda route: route.fulfill(status=404, body="<!DOCTYPE html>\n<p>\n")
    )
    start.click()
    page.get_by_role("dialog").get_by_role("button", name="Start").click()
    ui.expect(page.get_by_role("dialog")).to_contain_text("the server does not know sfm-kernel")


ANSWER_IN_PARTS = """
const real = window.fetch;
window.fetch = (request, init) => {
  if (!request.url?.includes('/sfm/worlds')) {
    return real(request, init);
  }
  const start = controller => {
    window.part = text => controller.enqueue(new TextEncoder().encode(text));
    window.end = () => controller.close();
  };
  return Promise.resolve(new Response(new ReadableStream({ start })));
};
"""


def test_engines_are_counted_while_they_start(page: Page, lab: Lab, stream: fake.Stream) -> None:
    page.add_init_script(ANSWER_IN_PARTS)
    ui.open_lab(page, lab)
    shown, dialog = page.locator(".Toastify"), page.get_by_role("dialog")
    for last in ['{"world": "w2", "cluster": "c"}', '{"message": "no memory is left"}']:
        page.evaluate("window.part = null")
        ui.panel(page).get_by_role("button", name="Start Engines…").click()
        dialog.get_by_role("button", name="Start").click()
        ui.expect(shown).to_contain_text("Starting engines")
        page.wait_for_function("() => window.part !== null")
        for part in ['{"came": 1, "of"', ': 2}\n{"came": 2, "of": 2}\n', last]:
            page.evaluate("text => window.part(text)", part)
        ui.expect(shown).to_contain_text("Starting engines: 2 of 2")
        page.evaluate("window.end()")
        ui.expect(shown).not_to_contain_text("Starting engines")
    ui.expect(dialog).to_contain_text("no memory is left")
    ui.asked(page, stream, "w2", SEEN)


@pytest.mark.parametrize(
    ("button", "path", "body"),
    [
        ("Stop All Engines…", "stop", {"uids": None}),
        ("Restart All Engines…", "restart", {"uids": None}),
        ("Change the Number of Engines…", "rescale", {"engines": 6}),
        ("Interrupt All Engines", "interrupt", {"uids": None}),
    ],
)
def test_server_s_worlds_are_managed(
    page: Page, lab: Lab, stream: fake.Stream, button: str, path: str, body: object
) -> None:
    sent: list[object] = []
    ui.answer(page, f"w1/{path}", sent, {})
    ui.open_lab(page, lab)
    if path == "interrupt":
        ui.panel(page).get_by_role("button", name=f"{button}: cluster w1").click()
    else:
        ui.world_menu(page, "cluster w1", button)
    if path == "rescale":
        page.get_by_role("dialog").get_by_role("spinbutton").fill("6")
    if path != "interrupt":
        page.get_by_role("dialog").locator(".jp-mod-accept").click()
    ui.wait_until(page, lambda: bool(sent))
    assert sent == [body]


def test_code_is_inserted_from_the_menu(page: Page, lab: Lab, stream: fake.Stream) -> None:
    path = notebook(lab.folder, "insert.ipynb", "1")
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    ui.world_menu(page, "cluster w1", "Insert Code to Connect")
    ui.wait_until(page, lambda: len(ui.sources(page)) == 2)
    assert ui.sources(page) == ["1", "%load_ext sfm_kernel\n%sfm connect c-w1"]


def test_code_is_dragged_into_the_notebook(page: Page, lab: Lab, stream: fake.Stream) -> None:
    path = notebook(lab.folder, "drag.ipynb", "first", "second")
    ui.open_lab(page, lab, path)
    ui.kernel(page)
    stream.send("worlds", [])
    code = ui.panel(page).locator(".sfm-Code pre")
    code.hover()
    page.mouse.down()
    page.locator(".jp-Cell").nth(1).hover(position={"x": 100, "y": 10})
    page.mouse.move(600, 300, steps=2)
    page.locator(".jp-Cell").nth(1).hover(position={"x": 100, "y": 10}, force=True)
    page.mouse.up()
    ui.wait_until(page, lambda: len(ui.sources(page)) == 3)
    assert ui.sources(page) == ["first", "%load_ext sfm_kernel\n%sfm start 4", "second"]
