"""The side panel over a stream that the tests feed: processes and messages."""

from __future__ import annotations

import re
import time
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

HOSTILE = "<img src=x onerror=\"window.hacked='yes'\"><script>window.hacked='yes'</script>"
WORLD = fake.world(running=1, blocked=2)


@pytest.fixture(scope="module")
def loaded(context: BrowserContext, lab: Lab) -> Iterator[tuple[Page, fake.Stream]]:
    """JupyterLab with the panel open, for all tests of the module, since loading takes seconds."""
    with new_page(context) as page:
        stream = fake.Stream(page, [WORLD])
        ui.open_lab(page, lab)
        ui.panel(page)
        yield page, stream


@pytest.fixture
def stream(loaded: tuple[Page, fake.Stream]) -> fake.Stream:
    """A stream with one new world, of which the panel knows nothing."""
    page, stream = loaded
    for worlds in ([], [WORLD]):
        stream.send("worlds", worlds)
        ui.asked(page, stream, "w1", ["diagnosis", "snapshot"] if worlds else [])
    return stream


@pytest.fixture
def shown(loaded: tuple[Page, fake.Stream], stream: fake.Stream) -> Page:
    """JupyterLab with the panel open."""
    return loaded[0]


def test_table(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    rows = ui.rows(ui.panel(shown))
    ui.expect(rows).to_have_count(3)
    texts = [" ".join(row.inner_text().split()) for row in rows.all()]
    assert texts[0].startswith("A rank 0 stuck in recv")
    assert "recv(src='B', tag=2) cell 7 line 3" in texts[0] and "inbox 2" in texts[0]
    assert texts[2].startswith("C rank 2 running")


def test_sites_are_shown_where_there_are_several(
    shown: Page, stream: fake.Stream, screenshots: Path
) -> None:
    stream.show(
        fake.snapshot(
            fake.process("A", 0, site="lyon"),
            fake.process("B", 1, site="oslo", host="far", here=False),
            fake.process(2, 2, site="oslo"),
        )
    )
    panel = ui.panel(shown)
    rows = ui.rows(panel)
    ui.expect(rows.nth(1)).to_contain_text("B rank 1 oslo")
    ui.expect(rows.nth(2)).to_contain_text("2 oslo")
    rows.nth(1).click()
    ui.expect(panel.get_by_text("engine, pid 101, on far, at oslo")).to_be_visible()
    shown.screenshot(path=screenshots / "sites.png")
    stream.show(fake.snapshot(fake.process("A", 0, site="lyon"), fake.process("B", 1, site="lyon")))
    ui.expect(rows.nth(1)).to_contain_text("B rank 1")
    ui.expect(rows.nth(1)).not_to_contain_text("lyon")


def test_activities_outside_of_calls(shown: Page, stream: fake.Stream) -> None:
    def now(does: str) -> fake.Json:
        return {"now": {"does": does, "where": fake.place(4, 7)}, "where": fake.place(1, 7)}

    wait = {"kind": "recv", "text": "recv_nb(tag=2)", "template": [], "peers": None, "all": False,
            "until": None, "context_id": "", "purpose": "", "group": None}  # fmt: skip
    why = "no gateway of oslo answers"
    polls = {"count": 9, "since": time.time() - 90, "wait": wait, "where": fake.place(2, 7)}
    stream.show(
        fake.snapshot(
            fake.process("A", 0, "running", **now("computes")),
            fake.process("B", 1, "running", **now("lock")),
            fake.process("C", 2, "running", polls=polls, **now("computes")),
            fake.process(
                "D",
                3,
                "blocked in recv",
                waits="recv()",
                now={"does": "stopped", "where": None},
                where=fake.place(1, 7),
            ),
            fake.process("E", 4, "running", unreachable=time.time() - 9, unreachable_why=why),
            fake.process("F", 5, "idle", unseen=time.time() - 9, waits="serves A"),
        )
    )
    rows = ui.rows(ui.panel(shown))
    ui.expect(rows).to_have_count(6)
    texts = [" ".join(row.inner_text().split()) for row in rows.all()]
    texts = [re.sub(r" inbox.*| rank \d", "", text) for text in texts]
    assert [re.sub(r"\d+ s ", "… s ", text) for text in texts] == [  # time goes on
        "A running … s cell 7 line 4",
        "B waiting … s a lock cell 7 line 4",
        "C polling 1 min recv_nb(tag=2) cell 7 line 2",
        "D stopped … s cell 7 line 1",
        f"E unreachable … s {why}",
        "F unseen … s was idle: serves A",
    ]
    seconds = [int(found) for text in texts for found in re.findall(r"(\d+) s ", text)]
    assert all(now >= 3 for now in seconds[:3]) and min(seconds[3:]) >= 9 and len(seconds) == 5


def test_durations_go_on_and_rates_fall_while_nothing_comes(
    shown: Page, stream: fake.Stream
) -> None:
    process = fake.process(0, 0, "running", since=time.time())
    stream.show(fake.snapshot(process))
    stream.show(fake.snapshot(process | {"sent": 40, "received": 4}))
    row = ui.rows(ui.panel(shown)).first
    rate = row.locator(".sfm-Row-rate")
    ui.expect(rate).not_to_have_text("↑0 ↓0")
    ui.expect(rate).to_have_text("↑0 ↓0")
    # A busy browser may pass over a second.
    ui.expect(row.locator(".sfm-Row-since")).to_have_text(re.compile(r"^\s*([3-9]|\d\d) s"))


def test_durations_are_by_the_server_s_clock(shown: Page, stream: fake.Stream) -> None:
    process = fake.process("A", 0, "blocked in recv", since=time.time() - 3600)
    seen = fake.snapshot(process) | {"time": time.time() - 1800}  # nothing has changed since
    stream.show(seen)
    since = ui.rows(ui.panel(shown)).first.locator(".sfm-Row-since")
    ui.expect(since).to_have_text("1 h")


def test_queue_is_shown_and_searched(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    panel = ui.panel(shown)
    ui.rows(panel).first.click()
    inbox = panel.get_by_role("list", name="Inbox of A").locator("> li")
    ui.expect(inbox).to_have_count(2)
    ui.expect(inbox.first).to_contain_text("Nearly fits: tag is 3, not 2")
    search = panel.get_by_role("searchbox", name="Search in the inbox of A")
    search.fill("tag=9")
    ui.expect(inbox).to_have_count(1)
    ui.expect(inbox).to_contain_text("from C")
    ui.expect(panel).to_contain_text("2 messages, 200 B; 1 found")
    search.fill("SPAM b")
    ui.expect(inbox).to_contain_text("from B")
    search.fill("nothing like it")
    ui.expect(inbox).to_have_count(0)


def test_texts_of_messages_stay_text(shown: Page, stream: fake.Stream) -> None:
    bad = fake.message(HOSTILE, dest="A", **{HOSTILE: HOSTILE})
    where = fake.place(3, 7) | {"file": HOSTILE, "function": HOSTILE}
    hostile_process = fake.process(
        HOSTILE, 0, "blocked in recv", waits=HOSTILE, where=where, messages=[bad], host=HOSTILE
    )
    other = fake.process("B", 1, "blocked in recv", where=where)
    judged = fake.judgement(hostile_process, "stuck", HOSTILE)
    judged["near"] = [
        {"message": bad, "misses": [{"name": HOSTILE, "has": HOSTILE, "wants": HOSTILE}]}
    ]
    why = fake.diagnosis(
        "deadlock",
        HOSTILE,
        HOSTILE,
        cycle=[HOSTILE, "B"],
        stuck=[HOSTILE, "B"],
        edges=[fake.edge(HOSTILE, "B", HOSTILE), fake.edge("B", HOSTILE, HOSTILE)],
        processes=[judged, fake.judgement(other, "stuck", HOSTILE)],
    )
    hostile = fake.world(title=HOSTILE, cluster=HOSTILE)
    stream.send("worlds", [hostile])
    stream.show(fake.snapshot(hostile_process, other), why)
    panel = ui.panel(shown)
    ui.rows(panel).first.click()
    ui.expect(panel.get_by_role("list", name="Inbox of")).to_contain_text(HOSTILE)
    panel.get_by_role("button", name="Copy diagnosis").click()
    ui.expect(panel.locator(".sfm-Why-title")).to_have_text(HOSTILE)
    assert panel.locator("img, script").count() == 0
    assert shown.evaluate("window.hacked") is None


def test_deadlock_is_announced_once_with_its_explanation(shown: Page, stream: fake.Stream) -> None:
    seen, why = fake.crossed()
    stream.show(seen, why)
    alert = shown.locator(".sfm-Announcer[role=alert]")
    ui.expect(alert).to_contain_text("Deadlock: A and B wait for each other")
    ui.expect(alert).to_contain_text("A's inbox holds 1 message that nearly fits")
    shown.evaluate("""() => {
        window.spoken = 0;
        const watch = {childList: true, characterData: true, subtree: true};
        for (const node of document.querySelectorAll('.sfm-Announcer'))
            new MutationObserver(() => window.spoken++).observe(node, watch);
    }""")
    for _ in range(5):
        stream.show(seen | {"time": time.time()}, why | {"time": time.time()})
    stream.show(seen, fake.diagnosis("running", "All compute"))
    ui.expect(shown.locator(".sfm-Announcer[role=status]")).to_have_text(
        "The deadlock is over. All compute"
    )
    ui.expect(alert).to_be_empty()
    assert shown.evaluate("window.spoken") == 2  # both regions, when it was over


def test_diagnosis_is_copied_as_plain_text(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    ui.panel(shown).get_by_role("button", name="Copy diagnosis").click()
    text = shown.evaluate("navigator.clipboard.readText()")
    assert text.startswith("Deadlock: A and B wait for each other\n- A waits for recv(src='B'")
    assert "B (stuck): B waits for recv(src='A', tag=1)" in text and "World cluster w1" in text


def test_engines_of_the_deadlock_are_interrupted(shown: Page, stream: fake.Stream) -> None:
    asked: list[object] = []
    ui.answer(shown, "w1/interrupt", asked, {"interrupted": []})
    stream.show(*fake.crossed())
    ui.panel(shown).get_by_role("button", name="Interrupt these engines").click()
    ui.wait_until(shown, lambda: bool(asked))
    assert asked == [{"uids": ["u-A", "u-B"]}]


def test_server_s_complaint_is_shown(shown: Page, stream: fake.Stream) -> None:
    ui.answer(shown, "w1/interrupt", [], {"message": "nobody is there: start engines"}, status=409)
    stream.show(*fake.crossed())
    ui.panel(shown).get_by_role("button", name="Interrupt All Engines: cluster w1").click()
    dialog = shown.get_by_role("dialog")
    ui.expect(dialog).to_contain_text("nobody is there: start engines")
    shown.keyboard.press("Escape")
    ui.expect(dialog).to_have_count(0)


def test_keyboard_reaches_rows_places_and_queue(shown: Page, stream: fake.Stream) -> None:
    stream.show(*fake.crossed())
    panel = ui.panel(shown)
    rows = ui.rows(panel)
    ui.expect(rows).to_have_count(3)
    assert [row.get_attribute("tabindex") for row in rows.all()] == ["0", "-1", "-1"]
    rows.first.press("ArrowDown")
    ui.expect(rows.nth(1)).to_be_focused()
    assert [row.get_attribute("tabindex") for row in rows.all()] == ["-1", "0", "-1"]
    shown.keyboard.press("ArrowRight")
    ui.expect(rows.nth(1).get_by_role("button", name="cell 7 line 5")).to_be_focused()
    shown.keyboard.press("ArrowLeft")
    ui.expect(rows.nth(1)).to_be_focused()
    shown.keyboard.press("End")
    ui.expect(rows.nth(2)).to_be_focused()
    shown.keyboard.press("Home")
    shown.keyboard.press("Enter")
    ui.expect(rows.first).to_have_attribute("aria-selected", "true")
    ui.expect(panel.get_by_role("searchbox", name="Search in the inbox of A")).to_be_visible()
