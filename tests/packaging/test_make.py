"""The Makefile: an environment is made once, and again when what it was made of has changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.test_packaging import ROOT

LIBRARIES = re.findall(r'"sfm-[a-z-]+": "(lib.+?)"', (ROOT / "tools/backend.py").read_text())
"""Those of C programs, by the backend."""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A checkout whose environment is newer than what it was made of."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    sources = ["pyproject.toml", "tools/setup.sh", "tools/backend.py"]
    sources += ["sfm_kernel/native/Cargo.toml", "sfm_kernel/native/src/lib.rs"]
    compiled = ["sfm_kernel/_native.abi3.so", *(f"sfm_kernel/c/lib/{name}" for name in LIBRARIES)]
    for name in [*sources, *compiled, "sfm_kernel/install/data/kernel.json", "venv/.sfm-base"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 1 if name in sources else 2))
    return tmp_path


def would_install(checkout: Path) -> bool:
    """Whether ``make`` finds the environment out of date."""
    command = ["make", "--question", "VENV=venv", "venv/.sfm-base"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 1


def test_a_second_call_installs_nothing(installed: Path) -> None:
    assert len(LIBRARIES) == 3
    assert not would_install(installed)


@pytest.mark.parametrize("name", ["_native.abi3.so", *(f"c/lib/{name}" for name in LIBRARIES)])
def test_what_is_not_compiled_is_installed(name: str, installed: Path) -> None:
    (installed / "sfm_kernel" / name).unlink()
    assert would_install(installed)


def test_a_changed_source_is_installed(installed: Path) -> None:
    os.utime(installed / "sfm_kernel/native/src/lib.rs", (0, 3))
    assert would_install(installed)


def test_the_address_that_is_printed_leads_to_the_first_notebook(installed: Path) -> None:
    """Where no browser can be opened, a user has nothing else."""
    command = ["make", "--dry-run", "VENV=venv", "lab"]
    shown = subprocess.run(command, cwd=installed, capture_output=True, text=True, check=True)
    (folder,) = re.findall(r"--ServerApp.root_dir=(\S+)", shown.stdout)
    (page,) = re.findall(r"--LabApp.default_url=/lab/tree/(\S+)", shown.stdout)
    first = f"{folder}/{page}"
    assert (ROOT / first).is_file() and first in (ROOT / "README.md").read_text()
