"""Builds the distribution (PEP 517): maturin's backend, after the libraries of C programs.

maturin compiles one crate, the Python module. libsfm.so, libmpi.so.12 and libmpi_abi.so.1 come from
others of the same workspace. They are put into the package before maturin looks at it: into a wheel
it packs them (``include`` in pyproject.toml), and an editable installation finds them in place.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
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

Settings = Mapping[str, Any] | None


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel; its file name."""
    build_libraries()
    return maturin.build_wheel(folder, settings, metadata)


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel that leads to this folder; its file name."""
    build_libraries()
    return maturin.build_editable(folder, settings, metadata)


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


def build_libraries() -> None:
    """Compile the libraries, as far as their sources have changed, and put them into the package.

    Each is replaced by a rename: a program that has the old one mapped keeps it.
    """
    if shutil.which("cargo") is None:
        from puccinialin import setup_rust  # as maturin does; it is among the requirements then

        os.environ.update(setup_rust())
    os.makedirs(PLACE, exist_ok=True)
    for crate, path in _compiled().items():
        place = os.path.join(PLACE, LIBRARIES[crate])
        shutil.copy2(path, f"{place}.new")
        os.replace(f"{place}.new", place)


def _compiled() -> dict[str, str]:
    """Where cargo has put the library of each crate."""
    command = ["cargo", "build", "--release", "--message-format=json-render-diagnostics"]
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
