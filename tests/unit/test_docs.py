"""Examples in docstrings and pages do what they show, and the pages leave nothing out."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import urllib.parse
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import errors
from sfm_kernel.lessons import CheckFailed

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    module.name
    for module in pkgutil.walk_packages(sfm_kernel.__path__, "sfm_kernel.")
    # Importing them runs a command, or begins MPI.
    if not module.name.endswith(("__main__", "lessons.ranks"))
]


@pytest.mark.parametrize("name", ["sfm_kernel", *MODULES])
def test_docstring_examples(name: str) -> None:
    names = {"sfm_kernel": sfm_kernel}  # as a reader who has imported it
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=FLAGS)
    assert failed == 0, "see the captured output"


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text()]


def test_there_are_pages_with_examples() -> None:
    assert {"processes.md", "mpi.md", "river.md"} <= {page.name for page in WITH_EXAMPLES}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
@pytest.mark.usefixtures("forked")  # `run` of the examples: a fresh Python for each costs more
def test_examples_of(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert tried > 0 and failed == 0, "see the captured output"


def test_each_error_is_explained() -> None:
    """In the order of their names, in the same three parts: what happened, why, what to do."""
    text = (ROOT / "docs/errors.md").read_text().partition("## Errors by name\n")[2]
    explained = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^### |\Z)", text, re.M | re.S))
    public = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.SFMError)
    }
    assert {*explained} == public | {CheckFailed.__name__}
    assert [*explained] == sorted(explained)
    for name, said in explained.items():
        parts = re.findall(r"\*\*(.+?)\.\*\*", said)
        assert parts == ["What happened", "Typical cause", "What to do"], name


def test_links_lead_somewhere() -> None:
    """On a repository's host, too, which knows files and nothing of Sphinx."""
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_each_notebook_has_its_place_in_an_order() -> None:
    text = (ROOT / "docs/notebooks.md").read_text().partition("## Which comes first")[2]
    orders = re.findall(r"^\| .* \| (\d\d-.*) \|$", text, re.M)
    assert all(order.startswith("00-first-steps, ") for order in orders)
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {name for order in orders for name in order.split(", ")} == notebooks


def test_links_have_texts() -> None:
    """Sphinx takes an empty one from the page's title; a repository's host shows nothing."""
    notebooks = (ROOT / "notebooks").glob("*.ipynb")
    for page in [*PAGES, *(ROOT / "docs/reference").glob("*.md"), ROOT / "SECURITY.md", *notebooks]:
        links = re.findall(r"\[([^\]]*)\]\(([^)]+)\)", page.read_text())
        assert [target for text, target in links if not text.strip()] == [], page.name


def test_the_link_for_nbgitpuller_opens_the_first_notebook() -> None:
    (link,) = re.findall(r"^https://\S+/git-pull\?(\S+)$", (ROOT / "docs/hub.md").read_text(), re.M)
    given = dict(urllib.parse.parse_qsl(link, strict_parsing=True))
    assert given.keys() == {"repo", "branch", "urlpath"}
    clone = given["repo"].rpartition("/")[2]
    begins = f"lab/tree/{clone}/"
    assert given["urlpath"].startswith(begins)
    assert (ROOT / given["urlpath"].removeprefix(begins)).is_file()


def test_readme_is_one_screen_and_has_the_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 70
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    for command in ("lab", "demo", "test", "docs", "wheel"):
        assert f"make {command}" in text and command in targets


def test_the_first_commands_are_those_of_a_clone() -> None:
    """No release is on PyPI: what asks an index for this package fails for everybody."""
    for page in (ROOT / "README.md", ROOT / "docs/install.md"):
        commands = re.findall(r"```bash\n(.*?)```", page.read_text(), re.S)
        assert re.findall(r"^make (\w+)", commands[0], re.M) == ["demo", "test", "lab"], page
