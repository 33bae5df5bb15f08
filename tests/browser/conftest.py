"""A Lab server and a browser for all modules, a page for each test."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.lab import REPOSITORY, Lab

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
OPTIONS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOTS = REPOSITORY / "build/screenshots"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A Lab server: it takes longer to start than most tests to run."""
    folder = tmp_path_factory.mktemp("lab") / "notebooks"
    folder.mkdir()
    lab = Lab.start(folder)
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def lab(server: Lab) -> Iterator[Lab]:
    """The Lab server as it was at first: with an empty folder, and no kernel."""
    yield server
    server.clear()


@pytest.fixture
def own_kernels(lab: Lab) -> Iterator[None]:
    """The test's kernels end with it, so that no other test sees its worlds."""
    yield
    lab.end_kernels()


@pytest.fixture(scope="package")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """Debian's Chromium, without a window. It has a profile, since without one it compiles
    JupyterLab's scripts for every page, which takes as long as everything else."""
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium: apt-get install chromium")
    api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright: pip install playwright"
    )
    with api.sync_playwright() as started:
        browser = started.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("chromium"),
            executable_path=CHROMIUM,
            chromium_sandbox=False,
            args=OPTIONS,
            viewport={"width": 1400, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
        )
        browser.set_default_timeout(30_000)
        yield browser
        browser.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page for one test."""
    with new_page(context) as opened:
        yield opened


@contextlib.contextmanager
def new_page(context: BrowserContext) -> Iterator[Page]:
    """A new page; an exception of ours that nothing catches in it fails the test.

    JupyterLab has its own: it removes its splash twice when themes change in quick succession.
    """
    errors: list[str] = []
    page = context.new_page()
    page.bring_to_front()
    page.on("pageerror", lambda error: errors.append(error.stack or str(error)))
    yield page
    page.close()
    ours = [error for error in errors if "/labextensions/@sfm/" in error]
    assert not ours, ours


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """The folder of screenshots for people."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS
