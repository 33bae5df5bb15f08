"""The part of the import rule that import-linter cannot see (the rest is in pyproject.toml).

It reads source files only, so that for it ``from sfm_kernel._native import x`` is an import of
the package ``sfm_kernel``; and such imports it has to ignore.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sfm_kernel"
BENCHMARKS = PACKAGE.with_name("benchmarks")

NATIVE = {
    "sfm_kernel.lessons.sites.enter",
    "sfm_kernel.lessons.sites.hold",
    "sfm_kernel.lessons.sites.namespaces",
    "sfm_kernel.transport.inproc",
    "sfm_kernel.transport.shm",
    "sfm_kernel.transport.tcp_info",
    "sfm_kernel.transport.tcp",
    "sfm_kernel.message",
    "sfm_kernel.endpoint.bystanders",
    "sfm_kernel.endpoint.messaging",
    "sfm_kernel.endpoint.seen",
    "sfm_kernel.gateway.service",
    "sfm_kernel.mpi.engines",
    "sfm_kernel.mpi.library",
    "sfm_kernel.observe.events",
    "sfm_kernel.observe.code_locations",
    "sfm_kernel.observe.snapshot",
    "sfm_kernel.observe.deadlocks",
}
"""Who may import the compiled core."""

USERS = ("benchmarks", "sfm_kernel.lessons", "sfm_kernel.jupyter", "sfm_kernel.plots",
         "sfm_kernel.__main__", "sfm_kernel.collectives", "sfm_kernel.mpi",
         "sfm_kernel.speedes")  # fmt: skip
"""Who may import the package's public names, as its users do; all others are what it is made of."""

FRONT_END = re.compile(r"IPython|ipy\w+|jupyter\w*|traitlets|comm")
"""Only ``jupyter`` imports these; import-linter takes a name only once something imports it."""


MEASURED = (
    "sfm_kernel.lessons.c.kernel", "sfm_kernel.lessons.pingpong.ipyparallel", "benchmarks.pools",
)  # fmt: skip
"""But for these, which measure the front end itself."""


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted([*PACKAGE.rglob("*.py"), *BENCHMARKS.rglob("*.py")]):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[1] not in ("install", "native"):
            yield ".".join(parts).removesuffix(".__init__"), path


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


def reaches(module: str, path: Path) -> set[str]:
    """Modules that ``module`` imports, with ``sfm_kernel`` for the package's public names."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for target, names in imported(path.read_text(encoding="utf-8"), package):
        if target != "sfm_kernel":
            found.add(target)
        # `from sfm_kernel import errors` imports a module, `from sfm_kernel import join` does not
        for name in names:
            part = PACKAGE / name
            is_module = name == "_native" or part.is_dir() or part.with_suffix(".py").is_file()
            if target == "sfm_kernel":
                found.add(f"sfm_kernel.{name}" if is_module else "sfm_kernel")
        if target == "sfm_kernel" and not names:
            found.add("sfm_kernel")
    return found


@pytest.mark.parametrize(("module", "path"), [pytest.param(*one, id=one[0]) for one in modules()])
def test_import_rule(module: str, path: Path) -> None:
    targets = reaches(module, path)
    if module not in NATIVE:
        assert "sfm_kernel._native" not in targets, f"only {sorted(NATIVE)} import the core"
    if not module.startswith(("sfm_kernel.jupyter", *MEASURED)):
        front_end = {target for target in targets if FRONT_END.fullmatch(target.partition(".")[0])}
        assert front_end == set(), "only jupyter imports the front end"
    if module != "sfm_kernel" and not module.startswith(USERS):
        assert "sfm_kernel" not in targets, "what the package is made of does not import its names"


def test_no_module_hides_one_of_python() -> None:
    """Where a program's path holds a folder of ours, ``import queue`` must still give Python's."""
    ours = {name for name, _ in modules() if name.rpartition(".")[2] in sys.stdlib_module_names}
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
