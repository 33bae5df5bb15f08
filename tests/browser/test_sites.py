"""The panel's drawing of sites, and of the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import fake, ui
from tests.browser.conftest import new_page
from tests.browser.lab import Lab

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

SLOW = (
    "the connection lyon → oslo was silent for 1.2 s and restarted from 10 segments instead of "
    "80: +60 ms; a heartbeat or BBR would have kept it warm"
)
FAST = "a clock at lyon is 3.0 s ahead of this machine's: times from there are corrected by that"
IDLE = fake.diagnosis("idle", "Nobody waits")


@pytest.fixture(scope="module")
def loaded(context: BrowserContext, lab: Lab) -> Iterator[tuple[Page, fake.Stream]]:
    with new_page(context) as page:
        stream = fake.Stream(page, [fake.world()])
        ui.open_lab(page, lab)
        ui.panel(page)
        ui.asked(page, stream, "w1", ["diagnosis", "snapshot"])
        yield page, stream


def spread(*sites: str) -> list[fake.Json]:
    """Four processes in each site."""
    ranks = range(4 * len(sites))
    return [fake.process(f"P{rank}", rank, "running", site=sites[rank // 4]) for rank in ranks]


def test_one_site_is_not_worth_a_drawing(loaded: tuple[Page, fake.Stream]) -> None:
    page, stream = loaded
    stream.show(fake.snapshot(*spread("here")), IDLE)
    ui.expect(ui.rows(ui.panel(page))).to_have_count(4)
    ui.expect(page.locator(".sfm-Sites")).to_have_count(0)


def test_two_sites(loaded: tuple[Page, fake.Stream], screenshots: Path) -> None:
    page, stream = loaded
    links = [fake.link("lyon", "oslo", SLOW), fake.link("oslo", "lyon")]
    seen = fake.snapshot(*spread("lyon", "oslo"), links=links)
    seen["sites"][0]["sentence"] = FAST
    stream.show(seen, IDLE)
    drawn = page.locator(".sfm-Sites")
    ui.expect(drawn.locator(".sfm-Sites-site")).to_have_count(2)
    ui.expect(drawn.locator("g.sfm-Sites-way")).to_have_count(1)  # both directions in one
    ui.expect(drawn.locator("text.sfm-mod-trouble")).to_contain_text("⚠ 20 ms · 200 Mbit/s")
    ui.expect(drawn.locator("svg")).to_have_attribute(
        "aria-label", "2 sites. lyon and oslo: 20 ms · 200 Mbit/s"
    )
    ui.expect(drawn.locator("li")).to_have_text([FAST, SLOW])
    drawn.scroll_into_view_if_needed()
    page.screenshot(path=screenshots / "sites-two.png")


def test_many_sites_and_hostile_names(loaded: tuple[Page, fake.Stream], screenshots: Path) -> None:
    page, stream = loaded
    names = ["lyon", "oslo", "<b>bonn</b>", "a-name-that-is-far-too-long-for-a-box"]
    silent = fake.link("lyon", "oslo", "the connection lyon → oslo …", silent_s=12.0, count=0)
    more = [fake.link("oslo", name) for name in names[2:]]
    direct = fake.link("lyon", names[3], via="direct", rtt_s=None, rate=None)
    stream.show(fake.snapshot(*spread(*names), links=[silent, direct, *more]), IDLE)
    drawn = page.locator(".sfm-Sites")
    ui.expect(drawn.locator(".sfm-Sites-site")).to_have_count(4)
    ui.expect(drawn.locator("g.sfm-Sites-way")).to_have_count(4)
    ui.expect(drawn.locator("text.sfm-mod-trouble")).to_contain_text("no answer for 12 s")
    ui.expect(drawn).to_contain_text("<b>bonn</b>")
    drawn.scroll_into_view_if_needed()
    page.screenshot(path=screenshots / "sites-four.png")
