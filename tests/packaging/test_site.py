"""The documentation can be built, without a network, without a warning, and without solutions.

Notebooks are not executed here: ``tests/notebooks`` runs them, and ``make docs`` shows what they
print.
"""

from __future__ import annotations

import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sfm_kernel import errors
from sfm_kernel.jupyter.commands import HELP
from tests.observe.test_record import Reader

pytestmark = pytest.mark.timeout(600)  # beside other tests a build takes minutes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    folder = tmp_path_factory.mktemp("docs")
    build = [
        sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going",
        "-D", "nb_execution_mode=off", "-d", str(folder / "trees"),
        str(ROOT / "docs"), str(folder / "site"),
    ]  # fmt: skip
    environment = {**os.environ, "GITHUB_REPOSITORY": "owner/sfm-kernel"}
    built = subprocess.run(build, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr
    return folder / "site"


def extension(name: str) -> ModuleType:
    """A module of docs/_ext."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/_ext/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def text(page: Path) -> str:
    """The text of a page that a reader sees, in one line."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", page.read_text())))


def test_each_page_is_in_the_site(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {path.stem for path in (site / "notebooks").glob("*.html")} == notebooks


def test_a_notebook_that_was_not_run_says_so(site: Path) -> None:
    said = "This notebook is shown without outputs"
    found = {page.stem for page in (site / "notebooks").glob("*.html") if said in text(page)}
    assert found == {"10-sites"}


def test_a_notebook_can_be_taken_along_or_opened_on_binder(site: Path) -> None:
    for page in (site / "notebooks").glob("*.html"):
        links = re.findall(r'<a class="btn[^>]*href="([^"]+)"', page.read_text())
        opened = f"owner/sfm-kernel/HEAD?urlpath=lab/tree/notebooks/{page.stem}.ipynb"
        assert links == [f"{page.stem}.ipynb", f"https://mybinder.org/v2/gh/{opened}"]
        original = ROOT / "notebooks" / f"{page.stem}.ipynb"
        assert page.with_suffix(".ipynb").read_bytes() == original.read_bytes()
    assert "mybinder.org/v2" not in (site / "tour.html").read_text()


@pytest.mark.parametrize(
    ("environment", "origin", "address"),
    [
        ({"GITHUB_REPOSITORY": "a/b"}, "", "a/b/HEAD"),
        ({"GITHUB_REPOSITORY": "a/b", "GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1.2.3"}, "",
         "a/b/v1.2.3"),
        ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "x"}, "https://github.com/c/d.git",
         "c/d/HEAD"),
        ({}, "git@github.com:c/d.e.git", "c/d.e/HEAD"),
        ({}, "https://example.org/c/d.git", ""),
        ({}, "", ""),
    ],
)  # fmt: skip
def test_binders_address(environment: dict[str, str], origin: str, address: str) -> None:
    found = extension("buttons").binder(environment, origin)
    assert found == (f"https://mybinder.org/v2/gh/{address}" if address else "")


def test_what_is_typed_can_be_copied(site: Path) -> None:
    page = (site / "tour.html").read_text()
    scripts = re.findall(r'src="(_static/(?:copybutton|clipboard)[^"?]*)', page)
    assert scripts and all((site / script).is_file() for script in scripts)
    settings = (site / "_static/copybutton.js").read_text()
    assert ".highlight-text pre" in settings, "what is printed gets no button"


def test_a_recorded_run_stands_in_the_tour_alive(site: Path) -> None:
    (source,) = re.findall(r'<iframe[^>]* src="([^"]+)"', (site / "tour.html").read_text())
    shown = Reader(site / source)
    run = shown.data["timeline"]
    assert [process["name"] for process in run["processes"]] == [0, 1, 2, 3]
    assert len(run["flights"]) == 16
    assert "Deadlock: 0 → 3 → 2 → 1 → 0" in shown.text and "def ring(sfm):" in shown.text
    late = [flight for flight in run["flights"] if flight["late"] == "sender"]
    assert {run["processes"][2]["uid"]} <= {flight["src"] for flight in late}
    assert [*site.joinpath("recorded").iterdir()] == [site / source]


def test_the_reference_is_whole(site: Path) -> None:
    magics = text(site / "reference/magics.html")
    for typed in re.findall(r"^(%.*?)(?: {2,}|$)", HELP, re.M):
        assert typed in magics
    header = text(site / "reference/sfm-h.html")
    source = (ROOT / "sfm_kernel/c/include/sfm.h").read_text()
    functions = set(re.findall(r"^[a-z].*?\b(sfm_\w+)\(", source, re.M))
    assert len(functions) > 30
    assert {name for name in functions if f"{name}(" not in header} == set()
    classes = text(site / "reference/errors.html")
    names = [value.__name__ for value in vars(errors).values() if is_error(value)]
    assert {name for name in names if f"sfm_kernel.errors.{name}" not in classes} == set()


def test_no_solution_is_shown(site: Path) -> None:
    shown = "".join(text(page) for page in (site / "notebooks").glob("*.html"))
    for path in (ROOT / "notebooks/solutions").iterdir():
        solution = path.read_text().partition("BEGIN SOLUTION")[2].partition("END SOLUTION")[0]
        lines = [line.strip() for line in solution.splitlines()[1:-1] if line.strip()]
        assert lines and " ".join(lines) not in shown, path.name
    assert not [*site.rglob("*solution*")]


def test_pages_load_nothing_from_a_network(site: Path) -> None:
    """No script, style or picture: a reader without a network sees the same."""
    loads = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"\']?(?:https?:)?//[^>]*>")
    found = {page.name: loads.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: tags for name, tags in found.items() if tags} == {}


def test_docstrings_become_markup() -> None:
    said = """Take a message.

Blocks: until one is there;
    Stop ends it.
Raises:
    PeerLost, WouldBlock: none came.
    Nothing has changed.
Every call may raise
    PeerLost: a peer died,
        long ago.
one     a word
eleven  another one"""
    wanted = """Take a message.

**Blocks:** until one is there; Stop ends it.

Raises:
    PeerLost, WouldBlock: none came.
        Nothing has changed.

Every call may raise

* PeerLost: a peer died, long ago.

.. code-block:: text

   one     a word
   eleven  another one"""
    made = "\n".join(extension("docstrings").normalized(said.splitlines()))
    assert re.sub(r"\n{2,}", "\n\n", made).strip() == wanted


def test_a_missing_explanation_is_an_error() -> None:
    with pytest.raises(ValueError, match="without explanation: '%sfm dance'"):
        list(extension("commands").entries("%sfm start  start engines\n%sfm dance"))
    header = '/* h */\nextern "C" {\n#endif\nint f(\n#ifdef __cplusplus'
    with pytest.raises(ValueError, match="no declaration: 'int f"):
        list(extension("header").converted(header))
