"""The files that say what sfm-kernel is agree with each other and with what is installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TESTED = re.findall(r"Python :: (3\.\d+)", "\n".join(PYPROJECT["project"]["classifiers"]))
"""The versions of Python that the package names as tested, the oldest first."""
DATA = ROOT / "sfm_kernel/install/data"
# In environment.yml alone:
TOOLCHAIN = {"python", "pip", "make", "rust", "c-compiler", "cxx-compiler", "mpich"}
COMPILES_THE_CORE = {"make", "rust"}
MOST_LINES = 400


def repository() -> list[Path]:
    """Every file that is, or would be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@pytest.fixture(scope="module")
def files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    return repository()


def texts(files: list[Path]) -> dict[str, str]:
    """The text files among them, by path within the repository."""
    found = {}
    for path in files:
        try:
            found[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
    return found


def requirements(lines: list[str]) -> dict[str, str]:
    """``["a >=1"]`` as ``{"a": ">=1"}``."""
    pairs = (re.fullmatch(r"([\w.-]+)(?:\[.*\])?\s*(.*)", line) for line in lines)
    return {pair[1].lower(): pair[2].replace(" ", "") for pair in pairs if pair}


def conda(path: str) -> dict[str, str]:
    listed = (ROOT / path).read_text().partition("dependencies:\n")[2]
    return requirements(re.findall(r"^  - ([^#\n]+?)\s*(?:#.*)?$", listed, re.M))


def test_conda_and_pip_install_the_same() -> None:
    wanted = requirements(PYPROJECT["project"]["dependencies"])
    environment = conda("environment.yml")
    assert {name: bound for name, bound in environment.items() if name not in TOOLCHAIN} == wanted
    assert environment["python"] == f"={TESTED[-1]}"  # the version that CI runs all tests on


def test_binder_has_the_same_environment_without_what_compiles_the_core() -> None:
    everything = conda("environment.yml")
    wanted = {name: bound for name, bound in everything.items() if name not in COMPILES_THE_CORE}
    assert conda("binder/environment.yml") == wanted


def test_condas_recipe_has_the_same() -> None:
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    wanted = requirements(PYPROJECT["project"]["dependencies"])
    assert requirements(recipe["requirements"]["run"]) == wanted | {"python": "", "mpich": ""}
    host = requirements(recipe["requirements"]["host"])
    assert host == requirements(PYPROJECT["build-system"]["requires"]) | {"python": "", "pip": ""}
    about, project = recipe["about"], PYPROJECT["project"]
    assert about["summary"] == project["description"] and about["license"] == project["license"]


def workspace() -> dict[str, str]:
    """The entries of the manifest that all crates share."""
    manifest = tomllib.loads((ROOT / "sfm_kernel/native/Cargo.toml").read_text())
    common: dict[str, str] = manifest["workspace"]["package"]
    return common


def test_conda_has_a_rust_that_compiles_the_core() -> None:
    assert conda("environment.yml")["rust"] == f">={workspace()['rust-version']}"


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("dependencies", PYPROJECT["project"]["dependencies"]),
        *PYPROJECT["project"]["optional-dependencies"].items(),
    ],
)
def test_every_dependency_has_a_lower_bound(kind: str, lines: list[str]) -> None:
    assert {name for name, bound in requirements(lines).items() if ">=" not in bound} == set()


def test_the_version_stands_in_one_place(files: list[Path]) -> None:
    version = workspace()["version"]
    assert metadata.version("sfm-kernel") == version, "installed from older sources: run make test"
    assert "version" in PYPROJECT["project"]["dynamic"]
    # A changelog names every version, a lock file repeats it; nothing else does. The front end
    # has a manifest of its own: test_labextension.py.
    named = re.compile(rf"(?i)version\W{{1,6}}{re.escape(version)}\b")
    python = {name: text for name, text in texts(files).items() if "labextension/" not in name}
    places = {name for name, text in python.items() if named.search(text)}
    elsewhere = {"CHANGELOG.md", "sfm_kernel/native/Cargo.lock"}
    assert places - elsewhere == {"sfm_kernel/native/Cargo.toml"}


def test_the_libraries_of_c_programs_are_packed() -> None:
    """git ignores them, and so maturin would; the crates beside its own are in the sdist."""
    included = PYPROJECT["tool"]["maturin"]["include"]
    by_format = {entry["path"]: entry["format"] for entry in included}
    assert by_format["sfm_kernel/c/lib/*.so*"] == "wheel"
    crates = [path.parent.name for path in (ROOT / "sfm_kernel/native").glob("*/Cargo.toml")]
    for crate in crates:
        assert by_format[f"sfm_kernel/native/{crate}/**/*"] == "sdist"
    for packed in (path for path in by_format if path.startswith("sfm_kernel/notebooks/")):
        assert by_format[packed] == ["sdist", "wheel"] and [*ROOT.glob(packed)], packed
    assert PYPROJECT["build-system"]["backend-path"] == ["tools"]
    assert by_format["tools/backend.py"] == "sdist"


def test_installed_data_is_that_of_the_sources() -> None:
    """An editable install copies it, too: the files under sys.prefix may be old."""
    sources = {path.relative_to(DATA) for path in DATA.rglob("*") if path.is_file()}
    sources = {name for name in sources if "__pycache__" not in name.parts}
    assert {Path(f"etc/ipython/{name}_config.py") for name in ("ipengine", "ipython")} <= sources
    for name in sources:
        installed = Path(sys.prefix) / name
        assert installed.is_file(), f"{name} is not installed under {sys.prefix}: run make test"
        assert installed.read_bytes() == (DATA / name).read_bytes(), f"{installed} is old"


def test_the_notebooks_stand_in_one_place(files: list[Path]) -> None:
    assert (ROOT / "sfm_kernel/notebooks").is_symlink()
    assert (ROOT / "sfm_kernel/notebooks").samefile(ROOT / "notebooks")
    assert {path.parent for path in files if path.suffix == ".ipynb"} == {ROOT / "notebooks"}


def test_types_are_shipped() -> None:
    assert (ROOT / "sfm_kernel/py.typed").is_file()
    assert (ROOT / "sfm_kernel/_native.pyi").is_file()


def test_files_are_short(files: list[Path]) -> None:
    lengths = {
        name: text.count("\n")
        for name, text in texts(files).items()
        # A stub is as long as its module's interface, and the panel's types as their schema.
        if name.endswith((".py", ".rs", ".ts")) and not name.endswith("/model/types.ts")
    }
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines >= MOST_LINES} == {}


# Hosts are written in two parts, so that this file names none.
HOSTS = [
    ("py", "pi.org"), ("python", "hosted.org"), ("static.", "crates.io"), ("index.", "crates.io"),
    ("registry.", "npmjs.org"), ("registry.", "yarnpkg.com"), ("deb.", "debian.org"),
    ("conda.", "anaconda.org"), ("proxy.", "golang.org"), ("repo.", "maven"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "pattern"),
    [
        ("a package registry's host", "|".join(re.escape(a + b) for a, b in HOSTS)),
        ("somebody's home folder", r"(?<![\w.])/(?:home/[a-z]|Users/\w|root\b)"),
    ],
)
def test_no_file_names(files: list[Path], subject: str, pattern: str) -> None:
    """Such a line works on one machine only. It often hides in a lock file."""
    searched = re.compile(pattern)
    here = str(Path(__file__).relative_to(ROOT))
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts(files).items()
        if name != here
        for number, line in enumerate(text.splitlines(), start=1)
        if searched.search(line)
    ]
    assert found == [], f"these name {subject}"


def test_what_pip_is_asked_for_is_there(files: list[Path]) -> None:
    """A release of this package is not; what it depends on is asked for with pyproject's bounds."""
    project = PYPROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    bounds = requirements([*project["dependencies"], *extras])
    asked = re.compile(r"""pip[ _]install[ (]f?["']?([a-z][\w-]*)(\[\w+\]|>=[\d.]+)""")
    found = []
    for name, text in texts(files).items():
        if name.startswith(("README", "docs/", "notebooks/", "sfm_kernel/", "benchmarks/")):
            found += [(name, package, bound) for package, bound in asked.findall(text)]
    assert {package for _, package, _ in found} >= {"ziglang", "mpich", "distributed", "mpi4py"}
    assert [one for one in found if bounds.get(one[1]) != one[2]] == []


def test_scripts_can_be_run(files: list[Path]) -> None:
    for name, text in texts(files).items():
        if text.startswith("#!") and not name.endswith(".rs"):
            assert (ROOT / name).stat().st_mode & 0o111, f"chmod +x {name}"
