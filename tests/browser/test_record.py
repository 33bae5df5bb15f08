"""The file of ``%sfm record`` in a browser, from a disk, without a server."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sfm_kernel
from sfm_kernel.observe.record import ProvenDeadlock, record
from tests.browser.ui import contrast, expect, violations

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

pytestmark = pytest.mark.keeps("the browser belongs to all modules")

END = "</script><img src=x onerror='document.title=`broken`'>"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a world in which A waits for an answer that has another tag."""
    path = tmp_path_factory.mktemp("record") / "run.html"
    with sfm_kernel.join("rec-page", name="A") as a, sfm_kernel.join("rec-page", name="B") as b:
        for number in range(5):
            a.send(dest="B", tag=number, text=END)
            b.recv(tag=number)
        b.send(dest="A", tag=3)
        hung = [ProvenDeadlock(time.time(), "A waits for B")]
        record(a, path, title=f"Exercise 3 {END}", name="Ada", deadlocks=hung)
    return path


@pytest.fixture(params=["light", "dark"])
def shown(context: BrowserContext, file: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The file in a new page, which must send no request and log no error."""
    page = context.new_page()
    events: list[str] = []
    page.on("console", lambda message: events.append(message.text))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", lambda asked: events.append(asked.url))
    page.emulate_media(color_scheme=request.param)
    page.goto(file.as_uri())
    expect(chart(page)).to_be_visible()
    yield page
    page.close()
    assert events == [file.as_uri()]


def chart(page: Page) -> Locator:
    """The timeline."""
    return page.get_by_role("application", name="Timeline of 2 processes")


def marked(page: Page) -> list[str | None]:
    """The lines that are marked."""
    lines = page.locator(".sfm-mod-marked").all()
    return [(line.text_content() or "").strip() for line in lines]


def test_it_looks_right(shown: Page, screenshots: Path, request: pytest.FixtureRequest) -> None:
    scheme = request.node.callspec.params["shown"]
    expect(shown.get_by_role("heading", level=1)).to_have_text(f"Exercise 3 {END}")
    assert shown.title().startswith("Exercise 3") and shown.locator("img").count() == 0
    body = shown.locator("body")
    for part in ("p.verdict", "header p", "td", ".sfm-Listings h3", "dt"):
        text = shown.locator(part).first.evaluate("one => getComputedStyle(one).color")
        ground = body.evaluate("one => getComputedStyle(one).backgroundColor")
        assert contrast(text, ground) >= 4.5, part
    assert violations(shown, "html") == []
    shown.screenshot(path=screenshots / f"record-{scheme}.png", full_page=True)


def test_keys_choose_a_message_and_its_lines_are_marked(shown: Page) -> None:
    chart(shown).press("Enter")
    details = shown.get_by_role("region", name="Chosen")
    expect(details).to_contain_text("Message")
    assert marked(shown) == ['a.send(dest="B", tag=number, text=END)', "b.recv(tag=number)"]
    shown.keyboard.press("+")
    shown.keyboard.press("ArrowLeft")
    expect(details).to_contain_text("from A to B")
    shown.keyboard.press("Escape")
    expect(details).to_have_count(0)
    assert marked(shown) == []


def test_the_pointer_is_told_what_it_rests_on(shown: Page) -> None:
    canvas = chart(shown).locator(".sfm-Timeline-plot canvas")
    box = canvas.bounding_box()
    assert box is not None
    for step in range(1, 60):
        shown.mouse.move(box["x"] + box["width"] * step / 60, box["y"] + box["height"] / 4)
        if canvas.get_attribute("title"):
            break
    assert re.match(r"A: |Message \d", canvas.get_attribute("title") or "")


def test_a_link_leads_to_a_line(shown: Page) -> None:
    shown.locator("section table a").first.click()
    target = shown.locator(".sfm-Listings span:target")
    expect(target).to_be_in_viewport()
    expect(target).to_contain_text("a.send")


def test_the_messages_as_a_table(shown: Page) -> None:
    shown.get_by_role("button", name="As a table").click()
    expect(shown.get_by_role("table").filter(has_text="tag=4")).to_be_visible()


def test_without_scripts_the_picture_stands_still(context: BrowserContext, file: Path) -> None:
    page = context.new_page()
    text = file.read_text().replace("<script>", '<script type="text/plain">')
    page.set_content(text)
    expect(page.locator("#sfm-timeline > svg")).to_be_visible()
    assert page.locator("#sfm-timeline > svg title").count() > 5
    page.close()
