"""Binder's image: repo2docker accepts the folder, and its scripts do what they say.

`make binder` makes what the image holds, and runs every notebook in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_packaging import ROOT, workspace

INDEX_HAS_IT = "exit 0"
INDEX_HAS_NONE = 'case "$*" in *--only-binary*) exit 1;; esac'


def test_repo2docker_accepts_it() -> None:
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert 'env update -p ${NB_PYTHON_PREFIX} --file "binder/environment.yml"' in said
    assert "Building conda environment for python=3.13" in said
    assert "RUN ./binder/postBuild" in said
    assert 'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in said


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository, as far as the scripts look at it."""
    folder = tmp_path / "copy"
    (folder / "sfm_kernel/native").mkdir(parents=True)
    shutil.copy(ROOT / "sfm_kernel/native/Cargo.toml", folder / "sfm_kernel/native")
    shutil.copytree(ROOT / "binder", folder / "binder")
    return folder


def post_build(copy: Path, python: str, **environment: str) -> tuple[int, str, list[str]]:
    """Run it with commands that only note how they are called: status, stderr, and the calls."""
    commands, calls = copy.parent / "commands", copy.parent / "calls"
    commands.mkdir()
    for name, body in {"python": python, "jupyter": "exit 0"}.items():
        script = commands / name
        script.write_text(f'#!/bin/sh\necho "{name} $*" >>{calls}\n{body}\n')
        script.chmod(0o755)
    environment |= {"PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(copy.parent)}
    done = subprocess.run(
        [copy / "binder/postBuild"], env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stderr, calls.read_text().splitlines() if calls.exists() else []


def test_the_wheel_of_this_version_is_installed(copy: Path) -> None:
    status, said, calls = post_build(copy, INDEX_HAS_IT, REPO_DIR=str(copy))
    assert (status, said) == (0, "")
    wheel = f"--only-binary=:all: sfm-kernel=={workspace()['version']}"
    assert calls[0] == f"python -m pip install --no-cache-dir --no-deps {wheel}"
    assert not any(call.endswith("--no-deps .") for call in calls)
    assert not (copy / "sfm_kernel").exists(), "would be imported in place of what is installed"
    assert "jupyter execute notebooks/00-first-steps.ipynb" in calls


def test_without_a_wheel_it_says_so_and_compiles(copy: Path) -> None:
    status, said, calls = post_build(copy, INDEX_HAS_NONE, REPO_DIR=str(copy))
    assert status == 0
    assert "no wheel" in said and "compiled instead" in said and "tag of a release" in said
    assert calls[1] == "python -m pip install --no-cache-dir --no-deps ."
    assert not (copy / "sfm_kernel").exists()


@pytest.mark.parametrize("environment", [{}, {"REPO_DIR": "/somewhere/else"}])
def test_a_checkout_keeps_its_sources(copy: Path, environment: dict[str, str]) -> None:
    status, said, calls = post_build(copy, INDEX_HAS_IT, **environment)
    assert status == 1 and "make lab" in said and calls == []
    assert (copy / "sfm_kernel/native/Cargo.toml").exists()


def test_the_server_starts_with_what_is_small() -> None:
    command = [ROOT / "binder/start", "env"]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    shown = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert shown["OMP_NUM_THREADS"] == shown["OPENBLAS_NUM_THREADS"] == "1"


def test_the_first_notebook_is_there() -> None:
    """The one that the image is tried with."""
    assert "notebooks/00-first-steps.ipynb" in (ROOT / "binder/postBuild").read_text()
    assert (ROOT / "notebooks/00-first-steps.ipynb").is_file()
