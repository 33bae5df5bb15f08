"""``%sfm share``: a class sees what is shared, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.classroom.shared_worlds import SILENT
from tests.jupyter.notebook import Notebook, notebook, wait_for
from tests.jupyter.server import Server

HANG = "%%sfm --no-detect\nother = 'BA'[rank]\nsend(dest=other, tag=3)\nrecv(src=other, tag=2)"


class Page:
    """The teacher's page, without a browser."""

    def __init__(self, url: str, authorization: str) -> None:
        self.url, self._authorization = url, authorization

    def get(self, path: str) -> Any:
        """The answer to a request of the page."""
        headers = {"Authorization": self._authorization}
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    @property
    def line(self) -> str:
        """The line that students type."""
        return f"%sfm share {self.url}#{self.get('session')['join']}"

    def worlds(self) -> list[dict[str, Any]]:
        """The summaries of all worlds."""
        found: list[dict[str, Any]] = self.get("worlds")["worlds"]
        return found

    def state(self, name: str) -> str:
        """The state of a world; empty if it is unknown."""
        states = {world["name"]: str(world["state"]) for world in self.worlds()}
        return states.get(name, "")

    def details(self, name: str) -> dict[str, Any]:
        """The details of a world."""
        identity = next(world["id"] for world in self.worlds() if world["name"] == name)
        found: dict[str, Any] = self.get(f"worlds/{identity}")
        return found


@pytest.fixture
def page() -> Iterator[Page]:
    """A class without a Jupyter server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sfm_kernel.classroom", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(5)]
    url, _, key = lines[1].partition("#teach-")
    made = Page(url, f"Bearer {key}")
    assert lines[3] == made.line
    yield made
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.fixture(scope="module")
def _two() -> Iterator[tuple[Notebook, Notebook]]:
    with notebook("%sfm start A B") as first, notebook("%sfm start A B") as second:
        yield first, second


@pytest.fixture
def book(_two: tuple[Notebook, Notebook]) -> Iterator[Notebook]:
    """A notebook with engines; another one has engines, too, and shares nothing."""
    yield _two[0]
    _two[0].run("%sfm share off").ok()


keeps = pytest.mark.keeps("two notebooks with engines for several tests")


@keeps
def test_a_class_sees_who_hangs_and_no_other_world(book: Notebook, page: Page) -> None:
    text = book.text(f"{page.line} --name Ada")
    assert text.startswith(f"shared as 'Ada' with {page.url}\n")
    assert "why nothing goes on" in text and "No code" in text and "plain HTTP" not in text
    cell = book.send(HANG)
    wait_for(lambda: page.state("Ada") == "stuck", "the class sees it")
    seen = page.details("Ada")
    assert seen["title"] == "Deadlock: A → B → A" and seen["code"] == []
    assert "tag is 3, not 2" in seen["diagnosis"]["sentences"][0]
    ring = [edge for edge in seen["diagnosis"]["edges"] if edge["cycle"]]
    assert [(edge["from"], edge["to"]) for edge in ring] == [("A", "B"), ("B", "A")]
    processes = seen["snapshot"]["processes"]
    assert [process["where"]["line"] for process in processes[:2]] == [4, 4]
    book.interrupt()
    book.wait(cell)
    wait_for(lambda: page.state("Ada") == "idle", "the class sees that it goes on")
    # The other notebook's world is not known, nor is anything by which it could be reached.
    assert len(page.worlds()) == 1
    details = page.details("Ada")
    shared = details["snapshot"]["processes"]
    assert {process[field] for process in shared for field in ("pid", "host", "site")} == {None}
    text = json.dumps(details)
    assert not [start for start in ("key", "/tmp", os.sep + "dev") if f'"{start}' in text]


@keeps
def test_the_code_where_it_is_only_when_asked(book: Notebook, page: Page) -> None:
    text = book.text(f"{page.line} --name Ada --code")
    assert "the code around the lines where the processes are" in text
    cell = book.send(HANG)
    wait_for(lambda: page.state("Ada") == "stuck", "the class sees it")
    (listing,) = page.details("Ada")["code"]
    assert listing["at"] == [4] and [4, "recv(src=other, tag=2)"] in listing["lines"]
    book.interrupt()
    book.wait(cell)
    assert "with the code" in book.text("%sfm share")


RING = """\
def ring(word):
    send(dest=(rank + 1) % size, word=word)
    return recv(src=(rank - 1) % size).word"""
SWAPPED = """\
def ring(word):
    got = recv(src=(rank - 1) % size).word
    send(dest=(rank + 1) % size, word=word)
    return got"""


@keeps
def test_the_class_sees_checks_that_are_shared(book: Notebook, page: Page) -> None:
    def tried() -> dict[str, dict[str, Any]]:
        students = page.get("worlds")["progress"]["students"]
        return {student["name"]: student["of"] for student in students}

    book.run("def swap(word):\n    ...").ok()
    book.run("%sfm check swap").ok()  # not begun: no try
    book.run("def swap(word):\n    return word").ok()
    assert "✗ swap" in book.text("%sfm check swap")
    assert tried() == {}, "nothing is sent to a class unless its world is shared"
    text = book.text(f"{page.line} --name Ada")
    assert "which exercises `%sfm check` has tried in this notebook" in text
    assert {name: of["state"] for name, of in tried()["Ada"].items()} == {"swap": "tried"}
    book.run(SWAPPED).ok()
    assert "it hangs" in book.text("%sfm check ring")
    wait_for(lambda: tried()["Ada"].get("ring", {}).get("state") == "hangs", "the class sees it")
    book.run(RING).ok()
    assert "✓ ring" in book.text("%sfm check ring -n 3")
    book.run("%sfm check ring").ok()
    wait_for(lambda: tried()["Ada"]["ring"]["state"] == "passed", "the class sees it")
    assert tried()["Ada"]["ring"]["tries"] == 2, "a single good trial does not count"
    assert tried()["Ada"]["swap"]["tries"] == 1
    book.run("%sfm share off").ok()
    book.run("%sfm check swap").ok()
    assert page.state("Ada") == "left" and tried()["Ada"]["swap"]["tries"] == 1
    rows = page.get("exercises")["csv"].splitlines()
    assert rows[1:] == ["Ada,passed,tried"]


@keeps
def test_a_hand_is_raised_and_lowered(book: Notebook, page: Page) -> None:
    def hand() -> Any:
        (world,) = [world for world in page.worlds() if world["name"] == "Ada"]
        return world["hand"]

    assert "nothing is shared: `%sfm share URL` first" in book.run("%sfm hand").text
    book.run(f"{page.line} --name Ada").ok()
    assert hand() is None
    assert "your hand was not up" in book.text("%sfm hand down")
    assert "your hand is up" in book.text("%sfm hand")
    wait_for(lambda: hand() is not None, "the class sees it")
    since = hand()
    assert "takes nothing, or `down`, not 'up'" in book.run("%sfm hand up").text
    book.run("%sfm hand").ok()  # repeated: it stays where it is in the order
    assert "your hand is down" in book.text("%sfm hand down")
    wait_for(lambda: hand() is None, "the class sees that it is down")
    book.run("%sfm hand").ok()
    wait_for(lambda: hand() is not None, "it is up again")
    assert hand() > since
    book.run(RING).ok()
    assert "your hand is down again" in book.text("%sfm check ring")
    wait_for(lambda: hand() is None, "a check that passes lowers it")


@keeps
def test_off_ends_it(book: Notebook, page: Page) -> None:
    assert "nothing is shared" in book.text("%sfm share")
    book.run(f"{page.line} --name Ada").ok()
    assert book.text("%sfm share off").strip() == "no longer shared"
    assert page.state("Ada") == "left" and page.details("Ada")["snapshot"]["processes"] == []
    assert book.text("%sfm share off").strip() == "nothing was shared"


@keeps
def test_a_class_that_begins_anew_is_told_again(book: Notebook, page: Page) -> None:
    book.run(f"{page.line} --name Ada").ok()
    book.run(f"{page.line} --name Grace").ok()
    wait_for(lambda: page.state("Grace") == "idle", "the new name is there")
    assert page.state("Ada") == "left"


@keeps
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("http://127.0.0.1:1/#token", "no answer from http://127.0.0.1:1/share"),
        ("URL#wrong", "this is not the class's join token"),
        ("URL", "is not the address of a class"),
        ("ftp://127.0.0.1/#token", "is not the address of a class"),
        ("http://127.0.0.1:port/#token", "is no address"),
        ("URL#token more", "takes the address"),
        ("URL#token --name", "--name needs a value"),
    ],
)
def test_wrong_words(book: Notebook, page: Page, words: str, said: str) -> None:
    name = "" if words.endswith("--name") else " --name Ada"
    assert said in book.run(f"%sfm share {words.replace('URL', page.url)}{name}").text
    assert page.worlds() == []


@keeps
def test_a_shared_account_is_asked_for_a_name(book: Notebook, page: Page) -> None:
    book.run("import os; os.environ['JUPYTERHUB_USER'] = 'jovyan'").ok()
    assert "add your name" in book.run(page.line).text
    book.run("os.environ['JUPYTERHUB_USER'] = 'grace'").ok()
    book.run(page.line).ok()
    assert page.state("grace")


def test_it_ends_with_the_world(page: Page) -> None:
    with notebook("%sfm start A") as book:
        book.run(f"{page.line} --name Ada").ok()
        book.run("%sfm stop").ok()
        assert page.state("Ada") == "left"
        assert "no engines" in book.run(f"{page.line} --name Ada").text
        book.run("%sfm start A").ok()
        book.run(f"{page.line} --name Ada").ok()
        assert {world["state"] for world in page.worlds()} > {"left"}
    assert {world["state"] for world in page.worlds()} == {"left"}  # the kernel has ended


@pytest.mark.fault
def test_a_kernel_that_is_killed_is_gone(page: Page) -> None:
    with notebook("%sfm start A") as book:
        book.run(f"{page.line} --name Ada").ok()
        book.kill()
        wait_for(lambda: page.state("Ada") == "unseen", "it is missed")
        (world,) = page.worlds()
        assert (
            world["since"] == world["heard"] and page.get("worlds")["now"] - world["since"] > SILENT
        )


# ---- behind a Jupyter server


@keeps
def test_a_jupyter_server_shows_a_class_to_its_user_only(shared: Server, book: Notebook) -> None:
    url = f"{shared.url}sfm/classroom/"
    post = urllib.request.Request(
        f"{url}share", b"{}", {"Authorization": "Bearer x", "X-SFM-Share": "x" * 20}
    )
    with pytest.raises(urllib.error.HTTPError) as none_open:
        urllib.request.urlopen(post)
    assert none_open.value.code == 404 and b"no class is open" in none_open.value.read()
    page = Page(url, "token for-tests")
    book.run(f"{page.line} --name Ada").ok()  # the page has opened it
    assert page.state("Ada")
    with pytest.raises(urllib.error.HTTPError) as wrong:
        urllib.request.urlopen(post)
    assert wrong.value.code == 403 and b"join token" in wrong.value.read()
    join = page.line.partition("#")[2]
    for authorization in ("", f"Bearer {join}", f"token {join}"):
        for path in ("worlds", "session", ""):
            stranger = Page(url, authorization)
            try:
                answer = str(stranger.get(path)) if path else ""
            except (urllib.error.HTTPError, ValueError):
                answer = ""  # 403, or the page of the login
            assert "Ada" not in answer and join not in answer
    book.run("%sfm share off").ok()
    assert page.state("Ada") == "left"


@keeps
def test_a_jupyter_server_refuses_what_is_too_large(shared: Server) -> None:
    page = Page(f"{shared.url}sfm/classroom/", "token for-tests")
    join = page.line.partition("#")[2]
    headers = {"Authorization": f"Bearer {join}", "X-SFM-Share": "x" * 20}
    post = urllib.request.Request(f"{page.url}share", b" " * 300_000, headers)
    with pytest.raises((urllib.error.URLError, OSError)):
        urllib.request.urlopen(post)


@keeps
def test_the_page_is_where_its_files_are(shared: Server, tmp_path: Path) -> None:
    for name, begin in {"": b"<!DOCTYPE", "page.js": b"/*!", "page.css": b"/*"}.items():
        request = urllib.request.Request(
            f"{shared.url}sfm/classroom/{name}", headers={"Authorization": "token for-tests"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.read().startswith(begin)
            policies = answer.headers.get_all("Content-Security-Policy")
            assert policies[0].startswith("default-src 'none'")
