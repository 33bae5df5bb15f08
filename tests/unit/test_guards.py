"""The guards of conftest.py catch the faults of wrong tests, which are run here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import pytest_xdist_make_scheduler

ROOT = Path(__file__).parents[2]

LEAKS = """
import os, subprocess, sys, threading
from tests import leaks

leaks.PATIENCE = 0.5  # these never go away

def test_process():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(50)"])

def test_detached_process():
    line = "import subprocess, sys; subprocess.Popen(['sleep', '51'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", line])

def test_fork():
    if not (pid := os.fork()):
        import time
        time.sleep(52)

def test_fork_of_the_fork_server():
    import multiprocessing, time
    multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(53,)).start()

def test_thread():
    threading.Thread(target=threading.Event().wait, name="sfm-x", daemon=True).start()

def test_segment(sfm_dir):
    (sfm_dir / "w").mkdir()
    (sfm_dir / "w" / "key").touch()
    (sfm_dir / "w" / "x.seg").touch()

def test_clean(sfm_dir, world):
    assert list(sfm_dir.iterdir()) == []
    (sfm_dir / world).mkdir()
    (sfm_dir / world / "key").touch()
    subprocess.run(["true"])
"""

SKIPS = """
import pytest

@pytest.mark.zmq
def test_needed():
    pytest.skip("no zmq")

@pytest.mark.fault
@pytest.mark.skipif(True, reason="not here")
def test_needed_as_well():
    pass

@pytest.mark.skip
def test_not_needed():
    pass

@pytest.mark.zmq
@pytest.mark.xfail(reason="known")
def test_expected():
    assert False
"""

HANGS = """
import subprocess, sys, threading, pytest

@pytest.mark.timeout(3)
def test_hang(sfm_dir):
    print(sfm_dir)
    subprocess.Popen(["sleep", "53"], start_new_session=True)
    threading.Event().wait()
"""

# A regular expression holds the GIL while it backtracks, for ages.
HOLDS_THE_GIL = """
import re, pytest
from tests import conftest

conftest.GRACE = 0.5

@pytest.mark.timeout(2)
def test_hang():
    re.match(r"(a+)+b", "a" * 60)
"""


def judge(folder: Path, source: str, *, ci: bool = False) -> subprocess.CompletedProcess[str]:
    """Run ``source`` as a test file under the guards, in a pytest of its own."""
    file = folder / "test_it.py"
    file.write_text(source)
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", str(ROOT)]
    command += ["-p", "tests.conftest", "-p", "no:cacheprovider", "-v", str(file)]
    # Without plugins that it does not need: each takes time to import.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **alone, "SFM_CI": "1" if ci else "0"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_every_leak_is_found(tmp_path: Path) -> None:
    run = judge(tmp_path, LEAKS)
    kinds = {
        "test_process": "process ",
        "test_detached_process": "process ",
        "test_fork": "process ",
        "test_fork_of_the_fork_server": "process ",
        "test_thread": "thread 'sfm-x'",
        "test_segment": "file w/x.seg",
    }
    for test, kind in kinds.items():
        section = run.stdout.partition(f"ERROR at teardown of {test} _")[2].partition("\n___")[0]
        assert f"the test left behind:\n{kind}" in section, run.stdout
    # Between the two, newer Pythons warn that a fork copies no threads.
    summary = run.stdout.splitlines()[-1]
    assert "7 passed" in summary and "6 errors" in summary, run.stdout
    for seconds in (50, 51, 52):
        assert f"sleep({seconds})" not in running() and f"sleep {seconds} " not in running()


def test_skips_that_ci_does_not_take(tmp_path: Path) -> None:
    assert "3 skipped, 1 xfailed" in judge(tmp_path, SKIPS).stdout
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in judge(tmp_path, SKIPS, ci=True).stdout


def test_a_module_that_skips_itself(tmp_path: Path) -> None:
    source = "import pytest\npytest.importorskip('no_such_module')\ndef test_x(): pass\n"
    assert "1 skipped" in judge(tmp_path, source).stdout
    assert "a whole module is skipped in CI" in judge(tmp_path, source, ci=True).stdout


def test_a_hung_test_is_killed_with_all_it_started(tmp_path: Path) -> None:
    run = judge(tmp_path, HANGS)
    assert run.returncode != 0
    assert "Timeout" in run.stdout
    assert "threading.Event().wait()" in run.stdout
    folder = Path(next(line for line in run.stdout.splitlines() if line.startswith("/")))
    while "sleep 53 " in running() or folder.exists():  # the watchdog decides that it never comes
        time.sleep(0.1)


def test_a_test_that_holds_the_gil_is_killed(tmp_path: Path) -> None:
    run = judge(tmp_path, HOLDS_THE_GIL)
    assert run.returncode != 0
    assert "in test_hang" in run.stdout


def test_tests_of_the_browser_share_a_worker() -> None:
    options = {"dist": "loadfile", "tx": ["popen"]}
    config: Any = SimpleNamespace(getoption=options.get, getvalue=options.get)
    scheduling = pytest_xdist_make_scheduler(config, None)
    tests = ["browser/test_card.py::a", "browser/test_real.py::b[c::d]", "unit/test_run.py::e"]
    units = [scheduling._split_scope(f"tests/{test}") for test in tests]
    assert units == ["tests/browser/", "tests/browser/", "tests/unit/test_run.py"]
    options["dist"] = "load"
    assert pytest_xdist_make_scheduler(config, None) is None


def running() -> str:
    """The command lines of all processes that run, with a space after each word."""
    lines = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        lines.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(lines)
