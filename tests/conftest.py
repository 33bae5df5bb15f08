"""Guards around every test, and the fixtures that all of them share.

* A watchdog: pytest-timeout (180 s, see pyproject.toml) prints all stacks and ends the run; a
  second one needs no GIL, for a test that holds it.
* After every test: no process, no thread named sfm-*, no segment or ring is left, and the
  environment's SFM_* are what they were.
* Each session has its own SFM_DIR and its own Jupyter folders: tests see nothing of the user's
  worlds, clusters and settings, and the user nothing of theirs.
* With SFM_CI=1 a test that must run there and is skipped has failed.
* SFM_LONG=1 (`make long`) asks for many examples and long stress.
"""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests import forks, leaks

IN_CI = os.environ.get("SFM_CI") == "1"
LONG = os.environ.get("SFM_LONG") == "1"
MUST_RUN = ("zmq", "fault", "notebook", "browser")
FOLDER_MARKS = {
    "fault": "fault",
    "jupyter": "jupyter",
    "notebooks": "notebook",
    "browser": "browser",
    "stress": "stress",
    "property": "property",
}
GRACE = 15.0  # s after the first watchdog, which needs the GIL, until the second

SLOW_BY_NATURE = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large)
"""Complaints that depend on the machine, or on the seed; packets are large."""

_either: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": SLOW_BY_NATURE,
}
hypothesis.settings.register_profile("fast", max_examples=60, derandomize=IN_CI, **_either)
hypothesis.settings.register_profile("slow", max_examples=5000, **_either)
hypothesis.settings.load_profile("slow" if LONG else "fast")


def crossed(rows: Iterable[Any], columns: Iterable[Any]) -> list[tuple[Any, Any]]:
    """All pairs with SFM_LONG=1; otherwise those of the first row or the first column."""
    (row, *_), (column, *_) = rows, columns = list(rows), list(columns)
    return [(left, right) for left in rows for right in columns
            if LONG or left == row or right == column]  # fmt: skip


# --- the session -------------------------------------------------------------------------------

_session: dict[str, Path] = {}
_stderr: int | None = None
_janitor: subprocess.Popen[bytes] | None = None  # held: a dropped Popen warns about its process


def pytest_configure(config: pytest.Config) -> None:
    """Make the session's own folders before any test module is imported."""
    global _stderr, _janitor
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started by nohup, or with "&"
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _stderr = os.dup(2)  # pytest is not capturing yet: the watchdog's words must reach people
    # A short path, since some of what is put there are socket names (at most 107 bytes).
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    _session["sfm"] = Path(tempfile.mkdtemp(prefix="sfmt-", dir=memory))
    _session["home"] = home = Path(tempfile.mkdtemp(prefix="sfm-test-"))
    for name in (
        "SFM_WORLD", "SFM_NAMES", "SFM_DIRECTORY", "SFM_KEY", "SFM_SITE", "SFM_GATEWAY_KEY",
        "SFM_RUNS",
    ):  # fmt: skip
        os.environ.pop(name, None)  # SFM_TRANSPORT stays: the suite can be run over ZeroMQ
    os.environ["SFM_DIR"] = str(_session["sfm"])
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        (home / name).mkdir(mode=0o700)
        os.environ[name] = str(home / name)
    # In a session of its own: Ctrl-C in the terminal is not meant for it.
    _janitor = subprocess.Popen(
        [sys.executable, "tests/janitor.py", str(os.getpid()), *map(str, _session.values())],
        cwd=config.rootpath,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def pytest_unconfigure() -> None:
    """Remove the session's folders."""
    for folder in _session.values():
        shutil.rmtree(folder, ignore_errors=True)


# --- several workers ---------------------------------------------------------------------------

ONE_WORKER = "tests/browser/"
"""Its files share a Lab server, and a browser, which compiles JupyterLab's scripts at its start."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """As ``--dist=loadfile`` does, but the files of ``ONE_WORKER`` are one."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ONE_WORKER if nodeid.startswith(ONE_WORKER) else super()._split_scope(nodeid)

    return Scheduling(config, log)


# --- the watchdog ------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the run with all stacks when even pytest-timeout's thread cannot run any more.

    In one of several workers, what pytest-timeout prints reaches nobody: this comes before it.
    """
    limit = _timeout(item)
    if limit and not item.config.getoption("usepdb"):
        late = -1.0 if hasattr(item.config, "workerinput") else GRACE
        faulthandler.dump_traceback_later(limit + late, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _timeout(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0] if mark.args else mark.kwargs["timeout"])
    chosen = item.config.getoption("timeout")
    return float(item.config.getini("timeout") if chosen is None else chosen)


# --- marks and skips ---------------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests get the mark of their folder."""
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0] if item.path.is_relative_to(here) else ""
        if folder in FOLDER_MARKS:
            item.add_marker(FOLDER_MARKS[folder])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI, a skip of what must run there is a failure."""
    report: pytest.TestReport = yield  # type: ignore[misc]
    marks = [mark for mark in MUST_RUN if item.get_closest_marker(mark)]
    if IN_CI and report.skipped and marks and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"marked {', '.join(marks)}, and skipped in CI: {report.longrepr}"
    return report  # type: ignore[return-value]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """In CI, a module that skips itself (importorskip) is a failure: its marks are unknown."""
    report: pytest.CollectReport = yield  # type: ignore[misc]
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a whole module is skipped in CI: {report.longrepr}"
    return report  # type: ignore[return-value]


# --- leaks -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="session")
def _nothing_left_by_the_session(sfm_dir: Path) -> Iterator[None]:
    yield from _checked("the session", sfm_dir)


@pytest.fixture(autouse=True, scope="module")
def _nothing_left_by_the_module(
    request: pytest.FixtureRequest, _nothing_left_by_the_session: None, sfm_dir: Path
) -> Iterator[None]:
    yield from _checked(request.node.name, sfm_dir)


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest, sfm_dir: Path) -> Iterator[None]:
    """Compare what is there before and after a test; what shared fixtures made stays."""
    if request.node.get_closest_marker("keeps"):
        yield  # what it starts belongs to a fixture of its module, and is checked when that ends
    else:
        killed = request.node.get_closest_marker("fault") is not None
        yield from _checked("the test", sfm_dir, killed=killed)


_reported = leaks.Left()  # a thread cannot be removed: its test is blamed, not its module as well


def _checked(culprit: str, root: Path, *, killed: bool = False) -> Iterator[None]:
    global _reported
    before, kept, named = leaks.look(root), leaks.worlds(root), leaks.environment()
    yield
    if killed:
        # Killed processes cannot tidy up; this also tests that clean() does it for them.
        from sfm_kernel import directory

        directory.clean()
    left = leaks.remaining(root, before | _reported)
    _reported |= left
    leaks.remove(root, left)
    leaks.remove_worlds(root, kept)
    if left:
        pytest.fail(f"{culprit} left behind:\n{left}", pytrace=False)
    if changed := leaks.restore(named):
        pytest.fail(f"{culprit} has changed the environment: {', '.join(changed)}", pytrace=False)


# --- fixtures ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def sfm_dir() -> Path:
    """The root of this session's worlds (SFM_DIR), below /dev/shm and removed at the end."""
    return _session["sfm"]


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """``sfm_kernel.run`` starts forks of one process: see ``tests.forks``."""
    monkeypatch.setattr("sfm_kernel.spawn.job.fresh", forks.Fork)


KINDS = ("shm", pytest.param("zmq", marks=pytest.mark.zmq))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transport under test; between gateways the processes choose it themselves."""
    if request.param != "gateway":
        monkeypatch.setenv("SFM_TRANSPORT", request.param)
    return str(request.param)


@pytest.fixture
def over_shm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "shm")


Spawn = Callable[..., subprocess.Popen[Any]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """``spawn(code, *arguments, **options)``: a Python that runs ``code``, killed at the end."""
    with contextlib.ExitStack() as stack:

        def start(code: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
            command = [sys.executable, "-c", code, *arguments]
            process = stack.enter_context(subprocess.Popen(command, **options))
            stack.callback(process.kill)
            return process

        yield start


_numbers = itertools.count()


@pytest.fixture
def world() -> str:
    """A world name that nothing else uses."""
    return f"t{next(_numbers)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def effort() -> int:
    """The factor for the length of stress tests: 1, or 50 with SFM_LONG=1."""
    return 50 if LONG else 1
