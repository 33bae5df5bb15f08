"""The import rule of CONTRIBUTING.md, as far as import-linter does not check it.

import-linter reads source files only: for it ``from sfm_kernel._native import x`` is an import of
the package ``sfm_kernel``. Nor does it look for circles.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Set
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, BENCHMARKS = ROOT / "sfm_kernel", ROOT / "benchmarks"
NATIVE = "sfm_kernel._native"
RULE = re.search(
    r"^## The import rule$(.*?)^## ",
    (ROOT / "CONTRIBUTING.md").read_text(),
    re.DOTALL | re.MULTILINE,
)
assert RULE is not None


def rows() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The table of the rule: what is imported by few, and by which modules."""
    for imported, importers in re.findall(r"^\| (`.*) \| (`.*) \|$", RULE[1], re.MULTILINE):
        yield tuple(re.findall(r"`(\S+?)`", imported)), tuple(re.findall(r"`(\S+?)`", importers))


ROWS = list(rows())
assert ROWS


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *BENCHMARKS.rglob("*.py")]):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[1] not in ("install", "native"):
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imported(source: str, package: str) -> Iterator[tuple[str, list[str]]]:
    """``(module, names)`` of every import that can run, wherever it stands."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []  # for mypy alone
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            module = (base + (node.module or "")).rstrip(".")
            yield module, [alias.name for alias in node.names]


def reaches(module: str) -> set[str]:
    """Modules that ``module`` imports; ``from package import module`` imports the module."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for target, names in imported(path.read_text(encoding="utf-8"), package):
        inner = {name: f"{target}.{name}" for name in names}
        are_modules = {name for name, path in inner.items() if path in MODULES or path == NATIVE}
        found |= {inner[name] for name in are_modules}
        if not names or set(names) - are_modules:
            found.add(target)
    return found - {module}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What each module imports. Not at the file's import, which every worker of a run pays for."""
    return {module: reaches(module) for module in MODULES}


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def fits(target: str, pattern: str) -> bool:
    """Whether an import of ``target`` is one of what the table calls ``pattern``."""
    if pattern == "sfm_kernel":
        return target == pattern
    return is_in(target, pattern) or fnmatchcase(target.partition(".")[0], pattern)


@pytest.mark.parametrize(
    ("patterns", "importers"), [pytest.param(*row, id=row[0][0]) for row in ROWS]
)
def test_only_the_listed_modules_import_these(
    patterns: tuple[str, ...], importers: tuple[str, ...], imports: dict[str, set[str]]
) -> None:
    found = {
        module.removeprefix("sfm_kernel.")
        for module, targets in imports.items()
        if any(fits(target, pattern) for target in targets for pattern in patterns)
        and not any(is_in(module, pattern) for pattern in patterns if pattern != "sfm_kernel")
    }
    others = {name for name in found if not any(is_in(name, importer) for importer in importers)}
    assert others == set(), f"CONTRIBUTING.md lets only {importers} import {patterns}"
    idle = {importer for importer in importers if not any(is_in(name, importer) for name in found)}
    assert idle == set(), f"CONTRIBUTING.md lists them, and they do not import {patterns}"


def test_the_order_of_the_modules_is_the_one_in_the_text() -> None:
    text = re.search(r"^```\n(.*?)^```$", RULE[1], re.DOTALL | re.MULTILINE)
    assert text is not None
    written = [set(line.split(", ")) for line in reversed(text[1].splitlines())]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    checked = [set(re.findall(r"\w+", layer)) for layer in contracts["contracts"][0]["layers"]]
    assert written == checked


def a_circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """Modules that import each other, each the one before it; none if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other(imports: dict[str, set[str]]) -> None:
    graph = {module: targets & MODULES.keys() for module, targets in imports.items()}
    assert a_circle(graph) == []


def test_a_circle_is_found() -> None:
    assert a_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert a_circle({"a": {"b"}, "b": set(), "d": {"a"}}) == []


def test_no_module_hides_one_of_python() -> None:
    """``import queue`` must give a program Python's module even if its path holds our folders."""
    ours = {name for name in MODULES if name.rpartition(".")[2] in sys.stdlib_module_names}
    assert {name for name in ours if not name.endswith(".__main__")} == set()


def test_it_sees_every_form() -> None:
    source = (
        "import sfm_kernel._native\n"
        "from sfm_kernel import _native\n"
        "def later():\n    from . import _native as core\n    from .transport import shm\n"
        "from ._native import Packet\n"
        "if TYPE_CHECKING:\n    import zmq\n"
    )
    assert list(imported(source, "sfm_kernel")) == [
        ("sfm_kernel._native", []),
        ("sfm_kernel", ["_native"]),
        ("sfm_kernel._native", ["Packet"]),
        ("sfm_kernel", ["_native"]),
        ("sfm_kernel.transport", ["shm"]),
    ]
