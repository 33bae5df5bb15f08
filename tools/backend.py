"""Builds the distribution (PEP 517): maturin's backend, after the libraries of C programs.

maturin compiles one crate, the Python module. libsfm.so, libmpi.so.12 and libmpi_abi.so.1 come from
others of the same workspace. They are put into the package before maturin looks at it: into a wheel
it packs them (``include`` in pyproject.toml), and an editable installation finds them in place.

``pip wheel . -C glibc=2.28`` (``make wheel``) makes a wheel that runs wherever glibc is not older.
Zig links it: it knows which functions, in which versions, each glibc had, so that no old Linux is
needed. auditwheel then has to find the same in what came out, or there is no wheel.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
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
PLACE = os.path.join(ROOT, "sfm_kernel", "c", "lib")
LIBRARIES = {"sfm-c": "libsfm.so", "sfm-mpi": "libmpi.so.12", "sfm-mpi-abi": "libmpi_abi.so.1"}
"""A crate of the workspace, and what its library is called in the package."""

TWINS = "sfm_kernel/install/"
FOR_ANY_LINUX = ["ziglang>=0.14", "cargo-zigbuild>=0.20", "auditwheel>=6.8"]
"""What the setting ``glibc`` needs besides; auditwheel since 6.8 gives its findings as JSON."""

Settings = Mapping[str, Any] | None


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    """maturin's, and what links for an older glibc."""
    needed: list[str] = maturin.get_requires_for_build_wheel(settings)
    return needed + FOR_ANY_LINUX if _glibc(settings) else needed


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """What the wheel will say about itself, its tag among it."""
    return str(maturin.prepare_metadata_for_build_wheel(folder, _arguments(settings)))


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel; its file name. For this machine, or (``glibc=2.28``) for all since that glibc.

    With the setting ``libraries=keep`` it gets the libraries of C programs that an installation has
    left in the package: cargo would compile their crate again for them, and again for the module.
    """
    glibc = _glibc(settings)
    if (settings or {}).get("libraries") == "keep":
        _prepare()
    else:
        build_libraries(glibc)
    name: str = maturin.build_wheel(folder, _arguments(settings), metadata)
    remove_twins(os.path.join(folder, name))
    if glibc:
        check_tag(os.path.join(folder, name), glibc)
    return name


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel that leads to this folder; its file name."""
    build_libraries()
    return str(maturin.build_editable(folder, settings, metadata))


def _glibc(settings: Settings) -> str:
    """Which one the user has asked for, if any."""
    glibc = str((settings or {}).get("glibc", ""))
    if glibc and not re.fullmatch(r"2\.\d+", glibc):
        sys.exit(f"glibc={glibc}: a version of glibc looks like 2.28")
    return glibc


def _arguments(settings: Settings) -> dict[str, Any]:
    """The settings, with what maturin has to be told for the glibc among them."""
    told = dict(settings or {})
    if glibc := _glibc(settings):
        given = maturin.get_maturin_pep517_args(settings)
        tag = f"manylinux_{glibc.replace('.', '_')}"
        told["build-args"] = [*given, "--zig", "--target", host(), "--compatibility", tag]
    return told


def remove_twins(wheel: str) -> None:
    """Take out of the package what the wheel has for ``sys.prefix``; maturin packs it as both."""
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
    """Ends the build if some library in the wheel needs more than its name promises."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    needed = re.match(r"manylinux_2_(\d+)_", found.get("overall_tag", ""))
    if needed is None or int(needed[1]) > int(glibc.removeprefix("2.")):
        os.unlink(wheel)
        sys.exit(
            f"the wheel is not what its name promises, and was removed: it was to run with glibc "
            f"{glibc}, and auditwheel says {json.dumps(found, indent=1)}"
        )
    print(f"auditwheel: {found['overall_tag']}, at most glibc {glibc}", flush=True)


def build_sdist(folder: str, settings: Settings = None) -> str:
    """The sources; the file's name. ``include`` in pyproject.toml names the other crates'.

    maturin leaves only what its own crate needs in the workspace's manifest: it is put back.
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
    """Compile the libraries, as far as their sources have changed, and put them into the package.

    Each is replaced by a rename: a program that has the old one mapped keeps it.
    """
    _prepare()
    os.makedirs(PLACE, exist_ok=True)
    for crate, path in _compiled(glibc).items():
        place = os.path.join(PLACE, LIBRARIES[crate])
        shutil.copy2(path, f"{place}.new")
        os.replace(f"{place}.new", place)


def _prepare() -> None:
    """Have cargo, which says the same to rustc whoever calls it."""
    if shutil.which("cargo") is None:
        from puccinialin import setup_rust  # as maturin does; it is among the requirements then

        os.environ.update(setup_rust())
    os.environ["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(_flags())


def _flags() -> list[str]:
    """The user's flags for rustc, and those that keep this machine's folders out of the libraries.

    A panic's message names the file that it comes from.
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
    """The target that rustc compiles for: this machine."""
    said = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return next(line for line in said.splitlines() if line.startswith("host: "))[6:]


def _compiled(glibc: str) -> dict[str, str]:
    """Where cargo has put the library of each crate."""
    command = ["cargo", "build"]
    if glibc:
        import ziglang  # where pip has put it may not be where the first python on PATH looks

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
