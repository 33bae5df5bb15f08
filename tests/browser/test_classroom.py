"""The page of a class in a browser: thirty students, hostile ones among them."""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sfm_kernel.classroom.report import encoded
from tests.browser import ui
from tests.browser.fake import edge, judgement, message, place, process
from tests.unit.classes import KEY, Class, diagnosis

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.keeps("the browser belongs to all modules")

HOSTILE = "<img src=x onerror='document.title=`broken`'></script><b>\u202e"
NAMES = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Leslie", "Tony", "Frances", "John"]
VERDICTS = ("deadlock", "running", "idle", "waiting", "idle")


STATES = ("stuck", "waiting", "running", "idle")
EXERCISES = ["ring", "swap", "collect", "capitals_first", "simpson", "pingpong"]


def solved(nth: int, now: float) -> list[dict[str, Any]]:
    """The exercises of a student, who has passed some and is at the next one."""
    reached = nth % (len(EXERCISES) + 1)
    states = ["passed"] * reached + [("tried", "hangs")[nth % 2]]
    return [
        {"name": exercise, "state": state, "tries": 1 + nth % 3, "time": now}
        for exercise, state in zip(EXERCISES, states, strict=False)
    ]


def report(nth: int, name: str = "", hand: float | None = None) -> bytes:
    """The report of a student; every fifth is stuck, later ones for longer."""
    verdict, now = VERDICTS[nth % 5], time.time()
    state = {"deadlock": "blocked in recv", "waiting": "blocked in recv", "running": "running"}
    about: dict[str, Any] = {"where": place(3, cell=2), "since": now - 7 * nth - 5}
    if verdict in ("deadlock", "waiting"):
        about |= {"waits": "recv(src='B', tag=2)", "messages": [message("B", text=HOSTILE)]}
    engines = [
        process(engine, rank, state.get(verdict, "idle"), **about)
        for rank, engine in enumerate("ABCD")
    ]
    said = {"deadlock": "Deadlock: A → B → A", "waiting": "No deadlock yet", "running": "A runs"}
    sentences = ["A waits for recv(src='B', tag=2) in cell 2, line 3. A's inbox holds 1 message."]
    text: dict[str, Any] = {
        "sentences": sentences if "waits" in about else [],
        "title": said.get(verdict, ""),
    }
    if verdict == "deadlock":
        text |= {"since": now - 7 * nth - 5, "cycle": ["A", "B"], "stuck": ["A", "B"]}
        text |= {"edges": [edge("A", "B", "tag=2"), edge("B", "A", "tag=2")]}
        text["processes"] = [judgement(one, "stuck", "It waits.") for one in engines[:2]]
    code = [{"title": "cell 2", "lines": [[2, HOSTILE], [3, "recv(tag=2)"]], "at": [3]}]
    return encoded(
        {
            "name": name or f"{NAMES[nth % 10]} {'XYZ'[nth // 10]}.",
            "snapshot": {"time": now, "processes": engines},
            "diagnosis": diagnosis(verdict, **text),
            "told": [{"time": now - 60, "text": "Deadlock: A → B → A.\nA waits."}],
            "code": code if verdict == "deadlock" else [],
            "hand": hand,
            "exercises": solved(nth, now),
        }
    )


@pytest.fixture
def room() -> Iterator[Class]:
    """A class of thirty students, all of whom send reports."""
    opened = Class()
    over = threading.Event()

    def secret(nth: int) -> str:
        return f"a-secret-of-student-{nth}"

    def speak() -> None:
        while not over.wait(3):
            for nth in range(30):
                opened.share(b"", secret(nth))

    for nth in range(30):
        assert opened.share(report(nth), secret(nth))[0] == 204
    thread = threading.Thread(target=speak)
    thread.start()
    yield opened
    over.set()
    thread.join()
    opened.close()


@pytest.fixture
def shown(context: BrowserContext, room: Class) -> Iterator[Page]:
    """The class's page, which must log no error, and ask only its server."""
    page = context.new_page()
    complaints: list[str] = []
    page.set_viewport_size({"width": 1366, "height": 768})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    own = f"http://127.0.0.1:{room.port}/"
    page.on(
        "request", lambda asked: None if asked.url.startswith(own) else complaints.append(asked.url)
    )
    page.goto(f"{own}#teach-{KEY}")
    ui.expect(page.locator(".sfm-Cards li")).to_have_count(30)
    yield page
    page.close()
    assert complaints == []


def names(page: Page) -> list[str]:
    """The cards' names in their order."""
    return page.locator(".sfm-Card-name").all_text_contents()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_thirty_are_seen_at_once(shown: Page, screenshots: Path, scheme: str) -> None:
    shown.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for card in shown.locator(".sfm-Card").all():
        ui.expect(card).to_be_in_viewport(ratio=1)
        inner, outer = card.evaluate("one => [one.scrollHeight, one.clientHeight]")
        assert inner <= outer
    assert names(shown)[:2] == ["Donald Z.", "Ada Z."]  # 25 and 20 are stuck longest
    ui.expect(shown.get_by_role("status")).to_contain_text("30 worlds: 6 stuck, 6 waiting")
    ground = shown.locator(".sfm-Card").first.evaluate(
        "one => getComputedStyle(one).backgroundColor"
    )
    for part in (*(f".sfm-mod-{state} .sfm-State" for state in STATES), ".sfm-Card-counts"):
        text = shown.locator(part).first.evaluate("one => getComputedStyle(one).color")
        assert ui.contrast(text, ground) >= 4.5, part
    assert ui.violations(shown, "html") == []
    shown.screenshot(path=screenshots / f"classroom-{scheme}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_click_tells_all_of_one(shown: Page, screenshots: Path, scheme: str) -> None:
    shown.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    shown.locator(".sfm-Card").first.press("Enter")
    dialog = shown.get_by_role("dialog")
    ui.expect(dialog.get_by_role("heading", level=2)).to_contain_text("Donald Z.: stuck for")
    ui.expect(dialog).to_contain_text("A waits for recv(src='B', tag=2) in cell 2, line 3.")
    ui.expect(dialog.get_by_role("grid", name="Processes").get_by_role("row")).to_have_count(5)
    ui.expect(dialog.locator("pre .sfm-mod-marked")).to_have_text("recv(tag=2)")
    assert shown.locator("img").count() == 0 and shown.title() == "Classroom"
    ui.expect(dialog.get_by_role("list", name="Inbox of A")).to_contain_text("<img src=x onerror=")
    ui.expect(dialog.get_by_role("row", name="B rank 1")).to_contain_text("stuck in recv")
    ui.expect(dialog.get_by_role("group", name="Who waits for whom")).to_be_visible()
    shown.keyboard.press("Tab")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    ui.expect(dialog.get_by_role("list", name="Inbox of B")).to_be_visible()
    assert ui.violations(shown, "dialog") == []
    shown.screenshot(path=screenshots / f"classroom-details-{scheme}.png")
    shown.keyboard.press("Escape")
    ui.expect(dialog).to_have_count(0)


def test_only_stuck_and_who_is_stuck_anew(shown: Page, room: Class) -> None:
    shown.get_by_label("Only stuck").check()
    ui.expect(shown.locator(".sfm-Cards li")).to_have_count(6)
    room.share(report(0, f"{HOSTILE}{'long name ' * 30}"), secret="a-secret-of-another-student")
    ui.expect(shown.locator(".sfm-Cards li")).to_have_count(7)
    assert names(shown)[-1].startswith("<img") and "\u202e" not in names(shown)[-1]


def test_the_focus_stays_where_it_is_while_cards_move(shown: Page, room: Class) -> None:
    idle = shown.locator(".sfm-Card.sfm-mod-idle").first
    name = idle.locator(".sfm-Card-name").text_content()
    idle.focus()
    room.share(report(25, "first"), secret="a-secret-of-another-student")
    ui.expect(shown.locator(".sfm-Cards li")).to_have_count(31)
    focused = shown.locator(".sfm-Card:focus .sfm-Card-name")
    ui.expect(focused).to_have_text(name)


def test_the_line_for_students_is_shown_and_the_key_is_not(shown: Page, room: Class) -> None:
    shown.get_by_text("How students join").click()
    line = f"%sfm share http://127.0.0.1:{room.port}/#{room.shared.join}"
    ui.expect(shown.locator("details code").first).to_have_text(line)
    assert KEY not in shown.url and KEY not in shown.content()
    shown.reload()
    ui.expect(shown.locator(".sfm-Cards li")).to_have_count(30)  # this tab knows it still


def test_the_students_line_shows_nothing(context: BrowserContext, room: Class) -> None:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{room.port}/#{room.shared.join}")
    ui.expect(page.get_by_role("alert")).to_contain_text("This is the address for students")
    assert page.locator(".sfm-Cards li").count() == 0
    page.close()


def test_the_page_keeps_its_state_when_the_class_is_away(context: BrowserContext) -> None:
    room = Class()
    page = context.new_page()
    room.share(report(0), "a-secret-of-student-0")
    page.goto(f"http://127.0.0.1:{room.port}/#teach-{KEY}")
    ui.expect(page.locator(".sfm-Cards li")).to_have_count(1)
    room.close()
    ui.expect(page.get_by_role("alert")).to_contain_text("does not answer")
    assert page.locator(".sfm-Cards li").count() == 1
    page.close()


# ---- who has solved what


def cells(page: Page, student: str) -> list[str]:
    """The row of a student."""
    row = page.locator(".sfm-Exercises tr").filter(has=page.get_by_role("rowheader", name=student))
    return row.get_by_role("cell").all_text_contents()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_has_solved_what(shown: Page, screenshots: Path, scheme: str) -> None:
    shown.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    table = shown.get_by_role("group", name="Exercises")
    ui.expect(table.get_by_role("columnheader")).to_have_text(["student", *EXERCISES])
    ui.expect(table.get_by_role("row")).to_have_count(31)
    passed = ["✓ passed"] * 5
    assert cells(shown, "Barbara X.") == ["✓ passed"] * 4 + ["✗ tried 2×", "· not yet"]
    assert cells(shown, "Donald X.") == [*passed, "▲ hangs"]
    assert cells(shown, "Leslie X.") == [*passed, "✓ passed"]
    for part in ("passed", "tried", "hangs", "not-yet"):
        text, ground = table.locator(f"td.sfm-mod-{part}").first.evaluate(
            "one => [getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert ui.contrast(text, ground) >= 4.5, part
    shown.screenshot(path=screenshots / f"class-solved-{scheme}.png", full_page=True)


def test_a_raised_hand_comes_first_and_the_longest_stuck_has_a_bar(
    shown: Page, room: Class, screenshots: Path
) -> None:
    now = time.time()
    room.share(report(7, hand=now - 130), "a-secret-of-student-7")
    room.share(report(12, hand=now - 40), "a-secret-of-student-12")
    ui.expect(shown.locator(".sfm-Card-hand").first).to_contain_text("↑ hand up for 2:1")
    ui.expect(shown.get_by_role("status")).to_contain_text("30 worlds: 2 hands up, 6 stuck")
    assert names(shown)[:3] == ["Tony X.", "Alan Y.", "Donald Z."]
    ui.expect(shown.locator(".sfm-Card.sfm-mod-stuck .sfm-State").first).to_have_text(
        re.compile(r"^stuck for \d+:\d\d$")
    )
    bars = shown.locator(".sfm-Card").evaluate_all(
        "all => all.map(one => one.querySelector('.sfm-Bar > span')?.offsetWidth ?? null)"
    )
    stuck = [width for width in bars if width is not None]
    assert len(stuck) == 6, "only who is stuck has a bar"
    assert stuck == sorted(stuck, reverse=True) and stuck[0] > stuck[-1] > 0
    for card in shown.locator(".sfm-Card").all()[:3]:
        inner, outer = card.evaluate("one => [one.scrollHeight, one.clientHeight]")
        assert inner <= outer
    shown.get_by_label("Only stuck").check()
    ui.expect(shown.locator(".sfm-Cards li")).to_have_count(8)  # a raised hand is always seen
    shown.set_viewport_size({"width": 1100, "height": 560})
    shown.screenshot(path=screenshots / "class-hands.png")  # docs/class.png
    room.share(report(7), "a-secret-of-student-7")
    room.share(report(12), "a-secret-of-student-12")
    ui.expect(shown.get_by_role("status")).not_to_contain_text("hand")
    assert names(shown)[0] == "Donald Z."


@pytest.mark.parametrize("width", [240, 683])  # the latter is 200 % of a small screen
def test_narrow_and_by_keyboard(shown: Page, screenshots: Path, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 600})
    wide = shown.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "only the table itself scrolls"
    table = shown.get_by_role("group", name="Exercises")
    shown.locator(".sfm-Card").last.focus()
    for name in ("Who has solved what", "Save as CSV"):
        shown.keyboard.press("Tab")
        ui.expect(shown.get_by_role("button", name=name)).to_be_focused()
    shown.keyboard.press("Tab")
    ui.expect(table).to_be_focused()
    shown.screenshot(path=screenshots / f"class-{width}.png")
    first, second = table.get_by_role("row").all()[1:3]
    for row in (first, second):
        assert row.evaluate("one => one.offsetHeight") < 60, "names are not broken into letters"
    if width > 240:
        return
    before = table.get_by_role("rowheader").first.bounding_box()
    shown.keyboard.press("ArrowRight")
    ui.wait_until(shown, lambda: table.evaluate("one => one.scrollLeft") > 0, lambda: "no scroll")
    after = table.get_by_role("rowheader").first.bounding_box()
    assert before and after and before["x"] == after["x"], "the names stay in view"


def test_it_is_saved_as_csv(shown: Page, room: Class) -> None:
    room.share(report(6, name="=1+1"), "a-secret-of-student-6")
    ui.expect(shown.get_by_role("rowheader", name="=1+1")).to_be_visible()
    with shown.expect_download() as saving:
        shown.get_by_role("button", name="Save as CSV").press("Enter")
    assert saving.value.suggested_filename.endswith(".csv")
    text = Path(saving.value.path()).read_text("utf-8-sig")
    rows = {row[0]: row[1:] for row in csv.reader(text.splitlines())}
    assert len(rows) == 31 and rows["'=1+1"] == ["passed"] * 6
    assert rows["student (as the student's machine reports)"] == EXERCISES
    assert rows["Donald X."] == ["passed"] * 5 + ["hangs"]


def test_no_exercise_no_table(context: BrowserContext) -> None:
    room = Class()
    page = context.new_page()
    room.share(encoded({**json.loads(report(0)), "exercises": []}), "a-secret-of-student-0")
    page.goto(f"http://127.0.0.1:{room.port}/#teach-{KEY}")
    ui.expect(page.locator(".sfm-Cards li")).to_have_count(1)
    ui.expect(page.get_by_role("heading", name="Who has solved what")).to_be_hidden()
    page.close()
    room.close()
