"""The recorded file of a run: its contents, and that texts stay texts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel.__main__ import main
from sfm_kernel.errors import ProcessFailed
from sfm_kernel.observe import record
from sfm_kernel.observe.record import ProvenDeadlock
from sfm_kernel.observe.record.listing import MOST, key_of, lines_of_files, listings
from sfm_kernel.observe.timeline import Timeline
from tests.observe.pictures import flight

END = "</script><img src=x onerror=alert(2)>"
HOSTILE = END + "<script>alert(1)</script>\u2028'\"&\x00\ud800"


class Reader(HTMLParser):
    """The file as a browser parses it: elements with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        else:
            self.text += data
            self._texts.append((self._inside, data))

    def texts(self, tag: str) -> list[str]:
        """The texts of elements."""
        return [text for element, text in self._texts if element == tag]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of elements."""
        return [attributes for element, attributes in self.elements if element == tag]

    @property
    def data(self) -> dict[str, Any]:
        """The data that its script draws."""
        found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(self.scripts[0])))
        return found


def no_code(where: object) -> None:
    """No sources, for tests that search for words of this file."""


def talk(world: str, path: Path, **more: Any) -> Reader:
    """The file of a world in which A has sent B two messages, and B has received one."""
    with sfm_kernel.join(world, name="A") as a, sfm_kernel.join(world, name="B") as b:
        a.send(dest="B", tag=1, text=END)
        b.recv(tag=1)
        a.send(dest="B", tag=2, text=END)
        assert record(a, path, **more) == []
    return Reader(path)


def test_it_holds_the_run_and_its_code(tmp_path: Path) -> None:
    shown = talk("rec-holds", tmp_path / "a.html", title="Exercise 3", name="Ada")
    assert "Exercise 3" in shown.text and "Ada" in shown.text
    assert "World rec-holds: 2 processes, 2 messages" in shown.text
    assert "Left in inboxes" in shown.text and "sfm-kernel" in shown.text
    line = 1 + Path(__file__).read_text().splitlines().index("        b.recv(tag=1)")
    nth = shown.data["listings"][__file__]
    assert {"id": f"code-{nth}-{line}", "data-line": str(line)} in shown.all("span")
    assert f"#code-{nth}-{line}" in [link["href"] for link in shown.all("a")]
    assert "        b.recv(tag=1)\n" in shown.text
    # The drawing for browsers that run no scripts.
    assert len(shown.all("svg")) == 1
    assert [process["name"] for process in shown.data["timeline"]["processes"]] == ["A", "B"]
    assert len(shown.data["timeline"]["flights"]) == 2


def test_texts_are_never_markup(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    deadlocks = [ProvenDeadlock(time.time() + 1, HOSTILE)]
    shown = talk("rec-texts", path, title=HOSTILE, name=HOSTILE, deadlocks=deadlocks)
    assert len(shown.scripts) == 2 and not shown.all("img")
    assert "alert(2)" in shown.text and "onerror" not in {
        name for _, attributes in shown.elements for name in attributes
    }
    values = [dict(flight["attributes"])["text"] for flight in shown.data["timeline"]["flights"]]
    assert values == [repr(END)] * 2


def test_nothing_is_loaded_and_only_our_script_runs(tmp_path: Path) -> None:
    shown = talk("rec-policy", tmp_path / "a.html", sources=no_code)
    policy = next(meta for meta in shown.all("meta") if meta.get("http-equiv"))["content"]
    digest = base64.b64encode(hashlib.sha256(shown.scripts[1].encode()).digest()).decode()
    assert policy is not None and policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert not [tag for tag, attributes in shown.elements if "src" in attributes]
    styles = shown.text + (tmp_path / "a.html").read_text().partition("<script")[0]
    assert not shown.all("link") and not re.findall(r"url\((?!#)|@import", styles)


def test_other_worlds_and_libraries_are_not_in_it(tmp_path: Path) -> None:
    with sfm_kernel.join("rec-other", name="secret") as other:
        other.send(dest="secret", word="hidden")
        shown = talk("rec-own", tmp_path / "a.html", sources=no_code)
    assert "rec-other" not in (tmp_path / "a.html").read_text()
    assert "hidden" not in json.dumps(shown.data) and "rec-other" not in json.dumps(shown.data)
    for file in (json.__file__, sfm_kernel.__file__, "/etc/passwd", "/nowhere.py"):
        assert lines_of_files({"file": file, "cell": None}) is None
    assert lines_of_files({"file": __file__, "cell": None}) is not None


def test_deadlocks_of_an_earlier_run_are_left_out(tmp_path: Path) -> None:
    deadlocks = [
        ProvenDeadlock(time.time() - 1000, "long ago"),
        ProvenDeadlock(time.time() + 1, "just now"),
    ]
    shown = talk("rec-told", tmp_path / "a.html", deadlocks=deadlocks, sources=no_code)
    assert "just now" in shown.text and "long ago" not in shown.text


def test_an_empty_world(tmp_path: Path) -> None:
    with sfm_kernel.join("rec-empty", name="A") as a:
        record(a.folder, tmp_path / "a.html")
    assert "A run of A" in Reader(tmp_path / "a.html").text


def test_nothing_is_left_if_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.html").mkdir()
    with sfm_kernel.join("rec-write", name="A") as a:
        with pytest.raises(OSError):
            record(a, tmp_path / "a.html")
        with pytest.raises(FileNotFoundError):
            record(a, tmp_path / "no" / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(FileNotFoundError):
        record(tmp_path / "no-world", tmp_path / "b.html")


def long_run(count: int) -> Timeline:
    """A message every second."""
    line = {"file": "/a.py", "line": 3, "function": None, "cell": None, "cell_id": None}
    about = {"attributes": [["text", repr("x" * 90)]], "sent_at": line, "received_at": line}
    flights = [
        flight(f"a-b-{n}", "a", "b", 1000.0 + n, 1000.5 + n, number=n, **about)
        for n in range(count)
    ]
    processes = [{"uid": uid, "name": uid, "rank": None} for uid in "ab"]
    both = {"world": "w", "begin": 1000.0, "end": 1000.0 + count, "missing": 0}
    return Timeline({**both, "processes": processes, "spans": [], "flights": flights})


def test_a_long_run_is_there_from_its_begin_to_its_end(tmp_path: Path) -> None:
    """As many messages as a recorder keeps, in a file that can be sent by mail."""
    run = long_run(20_000)
    with sfm_kernel.join("rec-long", name="A") as a:
        assert record(a, tmp_path / "a.html", run=run, sources=no_code) == []
    assert Reader(tmp_path / "a.html").data["timeline"] == run.data
    assert (tmp_path / "a.html").stat().st_size < 2_000_000


def test_many_listings_are_cut_too() -> None:
    places = [{"file": f"/{n}.py", "cell": None, "cell_id": None} for n in range(MOST + 5)]
    found, notes = listings([*places, *places], lambda where: "x = 1\n" * 30_000)
    assert len(found) == MOST and all(len(listing.lines) < 20_000 for listing in found)
    assert notes[0] == "Of 0.py only the first 100 kB are shown." and "more than 40" in notes[-1]
    cell = {"file": "/tmp/x", "cell": 3, "cell_id": "abc"}
    assert key_of(cell) == "cell 3 abc"


def hang(sfm: Any) -> None:
    """A program whose two processes wait for each other."""
    sfm.send(dest=1 - sfm.rank, tag=3)
    sfm.recv(src=1 - sfm.rank, tag=2)


def test_run_records_what_hung(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    with pytest.raises(ProcessFailed, match="Deadlock"):
        sfm_kernel.run(hang, n=2, detect=True, record=path)
    shown = Reader(path)
    assert "What had hung before" in shown.text and "Deadlock: 0 → 1 → 0." in shown.text
    assert shown.texts("h1")[0].endswith(" on 2 processes")
    assert "    sfm.recv(src=1 - sfm.rank, tag=2)\n" in shown.text
    assert len(shown.data["timeline"]["flights"]) == 2


def test_output_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    with sfm_kernel.join("rec-output", name="A") as sfm:
        record(sfm, path, output=HOSTILE)
        shown = Reader(path)
        assert shown.texts("h2").count("Output") == 1 and END in "".join(shown.texts("pre"))
        assert len(shown.scripts) == 2
        record(sfm, path)
    assert "Output" not in Reader(path).texts("h2")


def test_run_where_it_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no" / "run.html"
    assert sfm_kernel.run(lambda sfm: sfm.rank, n=2, record=path) == [0, 1]
    assert f"{path} was not written: No such file or directory" in capfd.readouterr().err


def test_from_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.html"
    with sfm_kernel.join("rec-shell", name="A"):
        assert main(["record", "rec-shell", str(path), "--title", "T", "--name", "N"]) == 0
        assert main(["record", "rec-shell", str(tmp_path / "no" / "a.html")]) == 1
    assert "T · N" in re.findall("<title>(.*)</title>", path.read_text())[0]
    assert main(["record", "rec-nowhere", str(path)]) == 1
    assert str(tmp_path / "no") in capsys.readouterr().err
