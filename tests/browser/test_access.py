"""The panel for people who see little, or use no pointer: axe-core's rules, the focus, links."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab, notebook

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

STATES = (
    "idle",
    "running",
    "blocked in recv",
    "blocked in send",
    "blocked in collective",
    "blocked in cell",
    "ended",
    "left",
    "damaged",
)


@pytest.fixture
def stream(page: Page) -> fake.Stream:
    """A stream with one world, which the panel shows since there is no other."""
    return fake.Stream(page, [fake.world(running=1, blocked=2, ended=1)])


@pytest.fixture
def shown(page: Page, lab: Lab, stream: fake.Stream) -> Page:
    """JupyterLab with the panel open."""
    ui.open_lab(page, lab)
    ui.panel(page)
    return page


def stuck(stream: fake.Stream) -> None:
    """A deadlock."""
    stream.show(*fake.crossed())
    stream.send("usage", fake.usage(("A", 64_000_000, 1 << 30, 2.4)))


def every_state(stream: fake.Stream) -> None:
    """A process in each state, at two sites with a slow link, and nothing that is stuck."""
    processes = [
        fake.process(rank, rank, state, site="lyon" if rank % 2 else "oslo", where=fake.place(3, 7))
        for rank, state in enumerate(STATES)
    ]
    seen = fake.snapshot(*processes, links=[fake.link("lyon", "oslo", "The link is slow.")])
    edges = [fake.edge(2, 1, "tag=1") | {"cycle": False}]
    why = fake.diagnosis("waiting", "No deadlock yet", "A waits.", edges=edges)
    stream.show(seen, why)


def no_world(stream: fake.Stream) -> None:
    """Nothing to show."""
    stream.send("worlds", [])


@pytest.mark.parametrize("theme", ["Light", "Dark"])
@pytest.mark.parametrize("show", [stuck, every_state, no_world])
def test_axe_finds_nothing_in_the_panel(
    shown: Page, stream: fake.Stream, theme: str, show: Callable[[fake.Stream], None]
) -> None:
    ui.theme(shown, f"JupyterLab {theme}")
    show(stream)
    if show is not no_world:
        ui.rows(ui.panel(shown)).first.click()
    if show is every_state:
        ui.panel(shown).locator(".sfm-Quiet").click()
    shown.wait_for_timeout(300)
    assert ui.violations(shown, "#sfm-panel") == []
    if show is not no_world:
        assert ui.violations(shown, ".sfm-Status") == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
@pytest.mark.parametrize("kind", ["processes", "graph", "timeline"])
def test_axe_finds_nothing_in_a_view(
    shown: Page, stream: fake.Stream, theme: str, kind: str
) -> None:
    ui.theme(shown, f"JupyterLab {theme}")
    ui.command(shown, "sfm:open", kind=kind)
    shown.locator(f"#sfm-{kind} .sfm-View").wait_for()
    stuck(stream)
    shown.wait_for_timeout(300)
    assert ui.violations(shown, f"#sfm-{kind}") == []


def test_axe_finds_a_button_without_a_name(shown: Page) -> None:
    ui.panel(shown).evaluate("node => node.append(document.createElement('button'))")
    assert ui.violations(shown, "#sfm-panel") == ["button-name: <button></button>"]


def test_focus_goes_to_the_panel_and_from_there_into_it(shown: Page, stream: fake.Stream) -> None:
    stuck(stream)
    ui.command(shown, "application:toggle-right-area")
    ui.expect(shown.locator("#sfm-panel")).to_be_hidden()
    ui.command(shown, "sfm:show-panel")
    ui.expect(ui.panel(shown)).to_be_focused()
    shown.keyboard.press("Tab")
    title = ui.panel(shown).get_by_role("button", name="Processes", exact=True)
    ui.expect(title).to_be_focused()


def test_a_panel_that_opens_itself_leaves_the_focus(
    page: Page, lab: Lab, stream: fake.Stream
) -> None:
    ui.open_lab(page, lab, notebook(lab.folder, "types.ipynb", "1"))
    stream.send("worlds", [fake.world(kernels=[ui.kernel(page)])])
    ui.setting(page, "deadlock", "open")
    ui.asked(page, stream, "w1", [])
    page.evaluate(f"{ui.NOTEBOOK}.content.activeCell.editor.focus()")
    page.evaluate(f"{ui.NOTEBOOK}.content.mode = 'edit'")
    stream.send("diagnosis", fake.crossed()[1] | {"time": time.time()})
    page.locator("#sfm-panel").wait_for()
    page.wait_for_timeout(300)
    assert ui.cursor(page) == (0, 0)


def test_links_say_which_engine(shown: Page, stream: fake.Stream) -> None:
    ui.command(shown, "sfm:open", kind="graph")
    stuck(stream)
    panel, graph = ui.panel(shown), shown.locator("#sfm-graph")
    for where in (panel.get_by_role("grid"), panel.get_by_role("region", name="Why"), graph):
        for name in ("cell 7 line 3, A", "cell 7 line 5, B"):
            ui.expect(where.get_by_role("button", name=name, exact=True).first).to_be_visible()
