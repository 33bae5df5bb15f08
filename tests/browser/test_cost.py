"""The browser's costs of a busy world: recorded only, since machines differ."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import fake, ui
from tests.browser.lab import Lab
from tests.conftest import LONG
from tests.observe.pictures import check, flight

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

pytestmark = pytest.mark.keeps("the browser and the Lab server belong to all modules")

PROCESSES = 16
RATE = 10
SECONDS = 2
PARTS = {
    "panel": ["diagnosis", "snapshot"],
    "processes": ["diagnosis", "snapshot", "usage"],
    "graph": ["diagnosis", "snapshot"],
    "timeline": ["diagnosis", "timeline"],
}

SOCKET = """{
    const Real = window.WebSocket;
    function Fake(url, ...rest) {
        if (!url.includes('/sfm/stream')) return new Real(url, ...rest);
        window.stream = this;
        this.readyState = Real.OPEN;
        this.send = text => { this.asked = text; };
        this.close = () => {};
        setTimeout(() => this.onopen());
    }
    window.WebSocket = Object.setPrototypeOf(Fake, Real);
    window.fed = 0;
    window.feed = (updates, rate) => {
        const left = [...updates];
        const timer = setInterval(() => {
            if (left.length === 0) return clearInterval(timer);
            left.shift().forEach(data => window.stream.onmessage({data}));
            window.fed++;
        }, 1000 / rate);
    };
}"""
"""A stream within the page: a stream from the test would cost the page time."""


class Busy:
    """Sixteen processes that send to their neighbours, and often wait."""

    def __init__(self) -> None:
        self.step = 0
        self._begin = time.time()
        self._since = [self._begin] * PROCESSES
        self._states = ["running"] * PROCESSES

    def snapshot(self) -> fake.Json:
        """The next snapshot: three processes have changed their state, all counters have grown."""
        self.step += 1
        now = self._now()
        for i in range(self.step % 5, PROCESSES, 5):
            blocked = self._states[i] == "running"
            self._states[i] = "blocked in recv" if blocked else "running"
            self._since[i] = now
        return fake.snapshot(*(self._process(i) for i in range(PROCESSES))) | {"time": now}

    def _now(self) -> float:
        return self._begin + self.step / RATE

    def diagnosis(self, seen: fake.Json) -> fake.Json:
        """A diagnosis: each blocked process waits for the one before it."""
        waiting = [process for process in seen["processes"] if process["state"] != "running"]
        edges = [
            fake.edge(process["name"], (process["rank"] - 1) % PROCESSES, "tag=1")
            | {"cycle": False}
            for process in waiting
        ]
        judged = [
            fake.judgement(
                process, "waits" if process in waiting else "acts", f"{process['name']} works"
            )
            for process in seen["processes"]
        ]
        return fake.diagnosis("waiting", "All wait a little", edges=edges, processes=judged)

    def timeline(self) -> fake.Json:
        """A tenth of a second in which each process has sent a message."""
        now = self._now()
        rows = [{"uid": f"u-{i}", "name": i, "rank": i} for i in range(PROCESSES)]
        spans = [
            {"uid": f"u-{i}", "begin": now - 0.1, "end": now - 0.05, "state": state, "where": None}
            for i, state in enumerate(self._states)
        ]
        flights = [self._flight(i, now) for i in range(PROCESSES)]
        made = {"world": "w1", "begin": now - 60, "end": now, "missing": 0, "processes": rows}
        return check("timeline", made | {"spans": spans, "flights": flights})

    def _flight(self, i: int, now: float) -> fake.Json:
        src, dest = f"u-{i}", f"u-{(i + 1) % PROCESSES}"
        about: fake.Json = {
            "sent_at": fake.place(2),
            "received_at": fake.place(3),
            "number": self.step,
        }
        about["attributes"] = [["tag", "1"]]
        return flight(f"{i}-{self.step}", src, dest, now - 0.08, now - 0.02, **about)

    def _process(self, i: int) -> fake.Json:
        waits = "recv(tag=1)" if self._states[i] != "running" else None
        return fake.process(
            i,
            i,
            self._states[i],
            since=self._since[i],
            waits=waits,
            where=fake.place(3, 7),
            sent=self.step * (i + 1),
            received=self.step * (i + 1) - 1,
            messages=[fake.message(j, tag=j, step=self.step) for j in range(self.step % 4)],
        )


@pytest.mark.parametrize("shown", PARTS if LONG else ["processes", "timeline"])
def test_sixteen_processes_ten_times_a_second(
    page: Page, lab: Lab, screenshots: Path, shown: str
) -> None:
    page.add_init_script(SOCKET)
    ui.open_lab(page, lab)
    page.evaluate("texts => feed([texts], 1)", [_text("worlds", [fake.world(engines=PROCESSES)])])
    if shown == "panel":
        ui.panel(page)
    else:
        ui.command(page, "sfm:open", kind=shown)
    asked = "() => JSON.parse(stream.asked ?? null)?.parts"
    ui.wait_until(page, lambda: page.evaluate(asked) == PARTS[shown])
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate("([texts, rate]) => feed(texts, rate)", [_texts(PARTS[shown]), RATE])
    page.wait_for_timeout(1000)
    begin, before, fed = time.monotonic(), _busy(session), page.evaluate("fed")
    page.wait_for_timeout(SECONDS * 1000)
    seconds, busy = time.monotonic() - begin, _busy(session) - before
    fed = page.evaluate("fed") - fed
    page.screenshot(path=screenshots / f"busy-{shown}.png")
    file = screenshots / "cost.json"
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    known[shown] = {
        "part of a core": round(busy / seconds, 4),
        "updates a second": round(fed / seconds, 1),
    }
    file.write_text(json.dumps(known, indent=1))
    assert fed > 0
    if shown in ("panel", "processes"):
        ui.expect(ui.rows(page.locator(f"#sfm-{shown}"))).to_have_count(PROCESSES)


def _texts(parts: list[str]) -> list[list[str]]:
    """The messages that the server sends in SECONDS and a few more, by update."""
    busy, made = Busy(), []
    for _ in range((SECONDS + 4) * RATE):
        seen = busy.snapshot()
        texts = [_text("diagnosis", busy.diagnosis(seen))]
        if "snapshot" in parts:
            texts.append(_text("snapshot", seen))
        if "timeline" in parts:
            texts.append(_text("timeline", busy.timeline()))
        made.append(texts)
    return made


def _text(kind: str, value: object) -> str:
    return json.dumps({"type": kind, "time": time.time(), kind: value})


def _busy(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    # The main thread's processor time: TaskDuration is longer where others take the core.
    return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))
