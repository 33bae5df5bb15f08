"""Builds the distribution (PEP 517): maturin's backend, after the libraries of C programs.

maturin compiles one crate, the Python module. libsfm.so, libmpi.so.12 and libmpi_abi.so.1 come from
other crates of the same workspace. This backend puts them into the package before maturin reads it:
maturin packs them into a wheel (``include`` in pyproject.toml), and an editable installation finds
them in the package.

``pip wheel . -C glibc=2.28`` (``make wheel``) makes a wheel for any glibc that is not older. Zig
links it: Zig knows the functions of each glibc, with their versions, so that no old Linux is
needed. Then auditwheel must find the same in the wheel, otherwise the build fails.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKSPACE = os.path.join(ROOT, "sfm_kernel", "native")
LIBRARY_FOLDER = os.path.join(ROOT, "sfm_kernel", "c", "lib")
LIBRARIES = {"sfm-c": "libsfm.so", "sfm-mpi": "libmpi.so.12", "sfm-mpi-abi": "libmpi_abi.so.1"}
"""Crate of the workspace -> the name of its library in the package."""

TWINS = "sfm_kernel/install/"
STABLE_ABI = os.path.join(WORKSPACE, "python", "pyo3.txt")
"""What pyo3 should know about Python: the same whichever Python installs the package."""

FOR_ANY_LINUX = ["ziglang>=0.14", "cargo-zigbuild>=0.20", "auditwheel>=6.8"]
"""Further requirements of the setting ``glibc``; auditwheel prints JSON since 6.8."""

Settings = Mapping[str, Any] | None


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """maturin's requirements, and the linker for an older glibc."""
    needed: list[str] = maturin.get_requires_for_build_wheel(settings)
    return needed + FOR_ANY_LINUX if _glibc(settings) else needed


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """The metadata of the wheel, including its tag."""
    return str(maturin.prepare_metadata_for_build_wheel(folder, _arguments(settings)))


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build a wheel for this machine, or for any since ``glibc=2.28``; return its file name."""
    glibc = _glibc(settings)
    with alone():
        build_libraries(glibc)
        name: str = maturin.build_wheel(folder, _arguments(settings), metadata)
    remove_twins(os.path.join(folder, name))
    if glibc:
        check_tag(os.path.join(folder, name), glibc)
    return name


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """Build a wheel that refers to this folder; return its file name."""
    with alone():
        build_libraries()
        return str(maturin.build_editable(folder, settings, metadata))


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keep other builds of this folder out: two environments may be installed at a time.

    Between cargo's lock and the end of its own work maturin moves the compiled module away for a
    moment: another maturin would not find it.
    """
    folder = os.open(WORKSPACE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _glibc(settings: Settings) -> str:
    """The version of glibc that the user has asked for; empty if none."""
    glibc = str((settings or {}).get("glibc", ""))
    if glibc and not re.fullmatch(r"2\.\d+", glibc):
        sys.exit(f"glibc={glibc}: a version of glibc looks like 2.28")
    return glibc


def _arguments(settings: Settings) -> dict[str, Any]:
    """The settings, with maturin's options for the glibc."""
    arguments = dict(settings or {})
    if glibc := _glibc(settings):
        given = maturin.get_maturin_pep517_args(settings)
        tag = f"manylinux_{glibc.replace('.', '_')}"
        arguments["build-args"] = [*given, "--zig", "--target", host(), "--compatibility", tag]
    return arguments


def remove_twins(wheel: str) -> None:
    """Remove the files for ``sys.prefix`` from the package; maturin packs them twice."""
    with zipfile.ZipFile(wheel) as former, zipfile.ZipFile(f"{wheel}.new", "w") as new:
        for member in former.infolist():
            data = former.read(member)
            if member.filename.endswith(".dist-info/RECORD"):
                lines = data.splitlines(keepends=True)
                data = b"".join(line for line in lines if not line.startswith(TWINS.encode()))
            if not member.filename.startswith(TWINS):
                new.writestr(member, data)
    os.replace(f"{wheel}.new", wheel)


def check_tag(wheel: str, glibc: str) -> None:
    """End the build if a library in the wheel needs a newer glibc than its name promises."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    needed = re.match(r"manylinux_2_(\d+)_", found.get("overall_tag", ""))
    if needed is None or int(needed[1]) > int(glibc.removeprefix("2.")):
        os.unlink(wheel)
        sys.exit(
            f"the wheel needs more than its name promises, and was removed: it should run with "
            f"glibc {glibc}, and auditwheel says {json.dumps(found, indent=1)}"
        )
    print(f"auditwheel: {found['overall_tag']}, at most glibc {glibc}", flush=True)


def build_sdist(folder: str, settings: Settings = None) -> str:
    """Pack the sources; return the file name. ``include`` in pyproject.toml adds other crates.

    maturin removes other crates from the workspace's manifest: this function puts the original in.
    """
    name = maturin.build_sdist(folder, settings)
    path = os.path.join(folder, name)
    with tarfile.open(path) as former, tarfile.open(f"{path}.new", "w:gz") as new:
        for member in former:
            data = former.extractfile(member)
            if member.name.endswith("/sfm_kernel/native/Cargo.toml"):
                data = io.BytesIO(_read(os.path.join(WORKSPACE, "Cargo.toml")))
                member.size = len(data.getbuffer())
            new.addfile(member, data)
    os.replace(f"{path}.new", path)
    return name


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def build_libraries(glibc: str = "") -> None:
    """Compile the libraries whose sources have changed, and put them into the package.

    Each is replaced by a rename: a program that has mapped the old library keeps it.
    """
    _prepare()
    os.makedirs(LIBRARY_FOLDER, exist_ok=True)
    for crate, path in _compiled(glibc).items():
        target = os.path.join(LIBRARY_FOLDER, LIBRARIES[crate])
        new = f"{target}.{os.getpid()}"
        shutil.copy2(path, new)
        os.replace(new, target)


def _prepare() -> None:
    """Install cargo if it is missing, and set the same conditions for all its calls.

    Whatever is compiled is compiled once, also if a second Python installs the package.
    """
    if shutil.which("cargo") is None:
        from puccinialin import setup_rust  # as maturin does, whose requirements include it then

        os.environ.update(setup_rust())
    os.environ["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(_flags())
    os.environ["PYO3_CONFIG_FILE"] = STABLE_ABI


def _flags() -> list[str]:
    """The user's flags for rustc, and flags that keep this machine's folders out of the libraries.

    A panic's message names its source file.
    """
    cargo = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    known = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    flags = known.split("\x1f") if known else os.environ.get("RUSTFLAGS", "").split()
    for folder, name in {
        os.path.join(cargo, "registry", "src"): "crates",
        os.path.join(cargo, "git", "checkouts"): "crates",
        ROOT: "sfm-kernel",
    }.items():
        flag = f"--remap-path-prefix={folder}={name}"
        flags += [] if flag in flags else [flag]
    return flags


def host() -> str:
    """rustc's target for this machine."""
    shown = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return next(line for line in shown.splitlines() if line.startswith("host: "))[6:]


def _compiled(glibc: str) -> dict[str, str]:
    """Compile the libraries; return the file of each crate's library."""
    command = ["cargo", "build"]
    if glibc:
        import ziglang  # the first python on PATH may not find the one that pip has installed

        zig = os.path.join(os.path.dirname(ziglang.__file__), "zig")
        os.environ["CARGO_ZIGBUILD_ZIG_PATH"] = zig
        command = ["cargo", "zigbuild", "--target", f"{host()}.{glibc}"]
    command += ["--release", "--message-format=json-render-diagnostics"]
    command += ["--manifest-path", os.path.join(WORKSPACE, "Cargo.toml")]
    for crate in LIBRARIES:
        command += ["--package", crate]
    print(f"Running `{' '.join(command)}`", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit("the libraries of C programs could not be compiled; the reason is above")
    found = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        # "path+file:///…/c#sfm-c@0.1.0"; older: "sfm-c 0.1.0 (path+file:///…/c)"
        words = message.get("package_id", "").replace("#", " ").replace("@", " ").split()
        crate = next((name for name in LIBRARIES if name in words), None)
        if message["reason"] == "compiler-artifact" and crate is not None:
            for name in message["filenames"]:
                if name.endswith(".so"):
                    found[crate] = name
    missing = LIBRARIES.keys() - found.keys()
    if missing:
        sys.exit(f"cargo has compiled no library of {', '.join(sorted(missing))}")
    return found
