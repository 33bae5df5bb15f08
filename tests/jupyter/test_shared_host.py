"""Other users of the machine, and files in the folder, cannot harm a notebook's cluster."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import zmq

from tests.jupyter.notebook import Notebook, descendants, notebook

pytestmark = pytest.mark.keeps("one cluster for the whole module")

CONFIGURED = Path(os.environ["IPYTHONDIR"], "profile_default", "ipcontroller_config.py")
"""The file in which a user sets the addresses of controllers."""

IMPOSTORS = ("queue", "heapq", "socketserver", "numpy", "zmq")
"""Modules of Python and of packages that also exist in the notebook's folder."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's folder."""
    made = tmp_path_factory.mktemp("notebooks")
    (made / "mine.py").write_text("answer = 42\n")
    for name in IMPOSTORS:
        (made / f"{name}.py").write_text("raise SystemExit(f'{__name__} is an impostor')\n")
    return made


@pytest.fixture(scope="module")
def book(folder: Path) -> Iterator[Notebook]:
    """A notebook of that folder with two engines, whose user lets others read what they write."""
    # Imports of the user's notebook from the folder are not tested.
    begin = f"import os, numpy, zmq, ipyparallel; os.umask(0o022); os.chdir({str(folder)!r})"
    with notebook(begin, "%sfm start A B") as made:
        yield made


def files(kind: str = "") -> list[Path]:
    """The files that the clusters have written."""
    return [*Path(os.environ["IPYTHONDIR"]).glob(f"profile_default/*/*sfm-*{kind}")]


def known() -> list[dict[str, Any]]:
    """The content of the clusters' connection files."""
    return [json.loads(path.read_text()) for path in files("-client.json")]


def connections(book: Notebook) -> set[Any]:
    """The TCP and UDP sockets of the cluster's processes."""
    found: set[Any] = set()
    for process in descendants(book.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {*process.net_connections("inet")}
    return found


def test_a_stranger_hears_nothing_of_cells_and_their_output(book: Notebook) -> None:
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(zmq.Context())
        poller = zmq.Poller()
        sockets = [f"ipc://{path}" for path in Path(os.environ["SFM_DIR"]).glob(".sfm-*/*")]
        assert {f"{connection['interface']}:{connection['iopub']}" for connection in known()} <= {
            *sockets
        }
        for url in sockets:  # as if others could reach them
            for wrong in (None, zmq.curve_keypair()[0]):
                stranger = stack.enter_context(context.socket(zmq.SUB))
                stranger.linger = 0
                if wrong is not None:
                    stranger.curve_serverkey = wrong
                    stranger.curve_publickey, stranger.curve_secretkey = zmq.curve_keypair()
                stranger.subscribe(b"")
                stranger.connect(url)
                poller.register(stranger, zmq.POLLIN)
        for _ in range(5):  # in the meantime they are connected
            assert "said aloud" in book.text("%%sfm\nprint('said', 'aloud')")
            heard = [socket.recv_multipart() for socket, _ in poller.poll(100)]
            assert not heard, heard


def test_one_machine_needs_no_tcp(book: Notebook) -> None:
    for line in ("%sfm restart A", "%sfm scale 3", "%sfm scale 2"):
        book.run(line).ok()
        assert not connections(book)
    (folder,) = Path(os.environ["SFM_DIR"]).glob(".sfm-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o700}


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("os.environ['SFM_DIR'] += '/' + 'long' * 25", "%sfm start 2"),
        (f"open('{CONFIGURED}', 'w').write('c.IPController.ip = \"127.0.0.1\"')", "%sfm start 2"),
        ("", "%sfm start --sites A=1,B=1"),
    ],
    ids=["a path that is too long for a socket", "a user's configuration", "sites"],
)
def test_a_configuration_may_choose_tcp(before: str, line: str) -> None:
    try:
        with notebook(f"import os; {before}", line) as another:
            assert {found.laddr.ip for found in connections(another)} == {"127.0.0.1"}
            assert another.text("%%sfm\nprint('rank', rank)").count("rank") == 2
    finally:
        CONFIGURED.unlink(missing_ok=True)
        shutil.rmtree(f"{os.environ['SFM_DIR']}/{'long' * 25}", ignore_errors=True)


def test_no_key_stands_in_the_environment(book: Notebook) -> None:
    book.run("%sfm restart A").ok()  # by another process
    keys = [connection[name] for connection in known() for name in ("key", "curve_serverkey")]
    assert all(len(key) >= 40 for key in keys)
    lines: list[str] = []
    for process in descendants(book.pid):
        with contextlib.suppress(psutil.Error):  # some end meanwhile
            lines += process.cmdline()
    assert lines
    assert not [key for key in keys if key in "\n".join(lines)], "everybody may read those"
    show = """
import os
print('its own:', dict(os.environ))
get_ipython().system('env')
print('at its start:', open('/proc/self/environ').read())
"""
    for text in (book.text(f"%%sfm\n{show}"), book.text(show)):
        assert text.count("IPYTHONDIR") >= 3 and "at its start" in text
        assert not [key for key in keys if key in text]
        assert not [name for name in ("IPP_CONNECTION", "IPP_SESSION", "IPP_CURVE") if name in text]


def test_a_key_of_the_user_s_leaves_the_environment_of_cells() -> None:
    given = "import os; os.environ |= dict(IPP_SESSION_KEY='a long text', IPP_ENABLE_CURVE='1')"
    with notebook(given, "%sfm start 1") as another:
        assert "a long text" not in [connection["key"] for connection in known()]
        cell = another.run(
            "%%sfm\nimport os; print(os.environ.get('IPP_SESSION_KEY', 'none'))"
        ).ok()
        assert "none" in cell.text


def test_only_the_user_reads_what_is_written_about_a_cluster(book: Notebook, folder: Path) -> None:
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in files()}
    assert {name.split("-")[0] for name in modes} == {"ipcontroller", "ipengine", "cluster"}
    assert set(modes.values()) == {"0o600"}, modes
    # Files that cells write belong to the user.
    book.run("%%sfm A\nopen('shown', 'w').close()").ok()
    assert oct((folder / "shown").stat().st_mode & 0o777) == "0o644"


def test_a_file_of_the_folder_is_no_module_of_ours(book: Notebook) -> None:
    """The engines run: the processes that start them imported nothing from the folder."""
    text = book.text("%%sfm\nimport mine, queue, numpy\nprint(mine.answer, queue.Queue)")
    assert text.count("42 <class 'queue.Queue'>") == 2
