"""What `pip install` makes of the wheel on a machine without a compiler, cargo and node.

SFM_WHEEL and SFM_SDIST name what is tested (`make wheel-test`). Without them a wheel is packed from
what the installation has compiled: in a checkout that is installed nothing is compiled again.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from tests.jupyter.notebook import notebook
from tests.unit.test_packaging import ROOT, repository

pytestmark = pytest.mark.timeout(900)  # a changed crate is compiled here

COMPILED = {
    "sfm_kernel/_native.abi3.so",
    "sfm_kernel/c/lib/libsfm.so",
    "sfm_kernel/c/lib/libmpi.so.12",
    "sfm_kernel/c/lib/libmpi_abi.so.1",
}
DATA = "sfm_kernel/install/data"
SOLUTIONS = "notebooks/solutions"
FORBIDDEN = ("cc", "c++", "gcc", "clang", "ld", "rustc", "cargo", "node", "npm", "zig", "mpiexec")
ORDINARY = ("sh", "env", "cat", "ls", "cp", "mv", "rm", "mkdir", "uname", "sleep", "true")


def build(what: str, folder: Path) -> Path:
    """The wheel or the sdist of this checkout, by its own build system."""
    if what == "wheel":
        command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "-w", str(folder)]
    else:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is tested."""
    given = os.environ.get("SFM_WHEEL")
    return Path(given).absolute() if given else build("wheel", tmp_path_factory.mktemp("wheel"))


@dataclass
class Bare:
    """An environment into which the wheel was installed, and nothing else.

    The wheel's dependencies come from the environment of the tests. The package itself, its
    commands, and the files under ``sys.prefix`` do not.
    """

    folder: Path
    home: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin/python"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{self.folder / 'ordinary'}"
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        return kept | {"PATH": path, "HOME": str(self.home), "LC_ALL": "C.UTF-8"}

    def run(self, *words: str | Path, timeout: float = 120) -> str:
        """The output of one of the environment's commands, which must succeed."""
        command = [str(word) for word in words]
        command[0] = str(self.folder / "bin" / command[0])
        done = subprocess.run(
            command, env=self.environment, cwd=self.home, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout


KEPT = ("SFM_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "TMPDIR", "OPENBLAS")


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """The wheel, installed."""
    folder, home = tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("home")
    venv.create(folder, symlinks=True, with_pip=False)
    installed = Bare(folder, home)
    pip = [sys.executable, "-m", "pip", "--python", str(installed.python), "install", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--quiet", str(wheel)], check=True)
    places = installed.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(places.strip(), "dependencies.pth").write_text("\n".join(sorted(shared)))
    (folder / "ordinary").mkdir()
    for name in ORDINARY:
        (folder / "ordinary" / name).symlink_to(Path("/bin", name))
    return installed


def names(archive: Path) -> set[str]:
    """The files in a wheel or an sdist; of an sdist below its only folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            return {name for name in file.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as tar:
        return {member.name.partition("/")[2] for member in tar if member.isfile()}


def tracked(*folders: str) -> set[str]:
    """Files of the repository below these folders."""
    listed = {path.relative_to(ROOT) for path in repository()}
    return {str(path) for path in listed if any(path.is_relative_to(folder) for folder in folders)}


def notebooks() -> set[str]:
    """The notebooks and what they link to, in the package: solutions are not for students."""
    return {f"sfm_kernel/{name}" for name in tracked("notebooks") - tracked(SOLUTIONS)}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_the_wheel_has_what_a_checkout_has_and_nothing_else(wheel: Path) -> None:
    """All but the Rust sources: also a wheel that was built from the sdist."""
    head = "-".join(wheel.name.split("-")[:2])
    files = tracked("sfm_kernel") - tracked("sfm_kernel/native", "sfm_kernel/install")
    files |= notebooks()
    data = {f"{head}.data/data{name.removeprefix(DATA)}" for name in tracked(DATA)}
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    wanted = files | data | COMPILED | {f"{head}.dist-info/{name}" for name in about}
    assert names(wheel) == wanted
    with zipfile.ZipFile(wheel) as file:
        old = [name for name in sorted(files) if file.read(name) != (ROOT / name).read_bytes()]
    assert old == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_the_sdist_has_all_that_is_compiled(tmp_path: Path) -> None:
    given = os.environ.get("SFM_SDIST")
    sdist = Path(given) if given else build("sdist", tmp_path)
    others = {"pyproject.toml", "README.md", "LICENSE", "tools/backend.py"}
    made = {"PKG-INFO", "sfm_kernel/native/Cargo.lock"}
    assert names(sdist) == tracked("sfm_kernel") | notebooks() | others | made


def test_the_wheel_tells_nothing_about_who_built_it(wheel: Path) -> None:
    """No folder of the building machine: neither in the libraries nor beside them."""
    cargo = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    folders = {str(ROOT), cargo, sys.prefix, os.path.expanduser("~/.rustup")}
    searched = re.compile(
        b"|".join(re.escape(os.fsencode(folder)) + b"/" for folder in sorted(folders))
    )
    with zipfile.ZipFile(wheel) as file:
        found = {name: searched.search(file.read(name)) for name in file.namelist()}
    assert {name: hit[0] for name, hit in found.items() if hit} == {}


def test_one_wheel_is_for_all_pythons(wheel: Path) -> None:
    assert re.fullmatch(
        r"sfm_kernel-[\w.]+-cp311-abi3-(?:manylinux_2_\d+|linux)_\w+\.whl", wheel.name
    )
    assert ".abi3.so" in importlib.machinery.EXTENSION_SUFFIXES
    if os.environ.get("SFM_WHEEL"):
        assert "-manylinux_" in wheel.name, "an index refuses what may run on one machine only"


def test_there_is_nothing_to_compile_with(bare: Bare) -> None:
    code = f"import shutil; print([name for name in {FORBIDDEN!r} if shutil.which(name)])"
    assert bare.run("python", "-c", code) == "[]\n"


def test_the_package_comes_from_the_wheel(bare: Bare) -> None:
    code = """
        import sfm_kernel, sfm_kernel._native, sfm_kernel.c, importlib.metadata
        print(sfm_kernel.__file__, sfm_kernel._native.__file__, sfm_kernel.c.LIBMPI)
        print(importlib.metadata.distribution("sfm-kernel").locate_file(""))
    """
    for path in bare.run("python", "-c", textwrap.dedent(code)).split():
        assert Path(path).is_relative_to(bare.folder), path
    said = bare.run("sfm-config", "--cflags", "--libs")
    assert str(bare.folder) in said and str(ROOT) not in said


def test_the_notebooks_come_with_the_package(bare: Bare) -> None:
    """Without a checkout: for somebody who learns, for a class, and none of the solutions."""
    numbered = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    wanted = numbered | {"quick-reference.html"}
    lessons = ("python", "-m", "sfm_kernel.lessons")
    for command in ("copy", "students"):
        said = bare.run(*lessons, command, f"{command}-1")
        assert said == f"{len(numbered)} notebooks in {command}-1\n"
        found = {path.name: path for path in (bare.home / f"{command}-1").rglob("*")}
        assert found.keys() == wanted
        for name, path in found.items():
            assert path.read_bytes() == (ROOT / "notebooks" / name).read_bytes()
    assert not [*(bare.folder / "lib").rglob("*solution*")]
    with pytest.raises(AssertionError, match="the installed package is without solutions"):
        bare.run(*lessons, "solved", "solved")
    assert not (bare.home / "solved").exists()


def test_processes_of_a_program(bare: Bare) -> None:
    program = """
        import sfm_kernel
        def ring(sfm):
            sfm.send(dest=(sfm.rank + 1) % sfm.size, hello=sfm.rank)
            return sfm.recv().hello
        if __name__ == "__main__":
            print(sfm_kernel.run(ring, n=3))
    """
    (bare.home / "ring.py").write_text(textwrap.dedent(program))
    assert bare.run("python", "ring.py") == "[2, 0, 1]\n"


def test_mpi(bare: Bare) -> None:
    code = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1), MPI.Get_library_version())"
    said = bare.run("python", "-m", "sfm_kernel.mpi", "-n", "2", "-c", code)
    lines = [line for line in said.splitlines() if line]
    assert len(lines) == 2 and all(line.startswith("2 sfm-kernel") for line in lines), said


CELLS = [
    "%load_ext sfm_kernel",
    "%sfm notebooks learn",
    "%sfm start 2",
    "%%sfm\nimport shutil\nsend(dest=1 - rank, tag='input', data=[rank])\n"
    "print(recv(tag='input').data, shutil.which('cc'), size)",
    "%%sfm 0\nsend(dest='home', result=42)",
    "recv(src=0).result",
    "%%sfm\nfrom mpi4py import MPI\nprint('sum', MPI.COMM_WORLD.allreduce(rank + 1))",
    "%sfm status",
    "%sfm stop",
]
EXECUTE = """
    import sys, nbformat, nbclient
    notebook = nbformat.read(sys.argv[1], as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    nbformat.write(notebook, sys.argv[1])
"""


@pytest.mark.jupyter
def test_a_notebook(bare: Bare) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS]
    )
    path = bare.home / "first.ipynb"
    nbformat.write(notebook, path)
    bare.run("python", "-c", textwrap.dedent(EXECUTE), path, timeout=600)
    shown = path.read_text()
    assert "notebooks in learn: begin with learn/00-first-steps.ipynb" in shown
    for text in ("[1] None 2", "[0] None 2", "sum 3", '"42"', "home"):
        assert text in shown, json.dumps(json.loads(shown)["cells"], indent=1)


@pytest.mark.jupyter
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_cells_of_the_page_about_colab(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook whose kernel does not have the package, after the cell that installs it."""
    text = (ROOT / "docs/colab.md").read_text()
    install, *cells = re.findall(r"^```ipython3\n(.*?)^```$", text, re.M | re.S)
    assert "virtualenv --quiet /content/sfm\n" in install and len(cells) == 5
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with notebook(f"%cd {bare.home}") as book:
        shown = [book.text(cell.replace("/content/sfm", str(bare.folder))) for cell in cells]
    for said, wanted in ((shown[2], "hello from {} of 4"), (shown[4], "hello from {}")):
        lines = said.replace("\r", "").splitlines()
        assert sorted(lines) == [wanted.format(rank) for rank in range(4)], said


@pytest.mark.jupyter
def test_jupyter_finds_the_panel_and_its_server(bare: Bare) -> None:
    panel = bare.run("python", "-m", "jupyterlab.labextensions", "list")
    assert re.search(r"@sfm/labextension v\S+ .*enabled.*OK", panel), panel
    server = bare.run("python", "-m", "jupyter_server.extension.serverextension", "list")
    assert re.search(r"sfm_kernel\.jupyter\.server .*enabled", server), server
    assert (
        "OK" in server.partition("Validating sfm_kernel.jupyter.server")[2].split("Validating")[0]
    )
