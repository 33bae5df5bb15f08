"""The workflows of a repository's host: well formed, and their steps run as far as they can."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.test_packaging import PYPROJECT, ROOT, TESTED, workspace

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job["steps"]]


def step(name: str) -> dict[str, Any]:
    (found,) = [
        found for found in steps(ROOT / ".github/workflows/release.yml") if name in str(found)
    ]
    return found


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As the host runs it."""
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    known = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(shell, cwd=ROOT, env=known, capture_output=True, text=True)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_well_formed(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}, "a job says what it needs more"
    for step in steps(path):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", step["uses"]), step["uses"]
        else:
            script = re.sub(r"\$\{\{.*?\}\}", "value", step["run"])
            checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr
    if actionlint := shutil.which("actionlint"):
        linted = subprocess.run([actionlint, "-no-color", path], capture_output=True, text=True)
        assert linted.returncode == 0, linted.stdout


def test_only_the_tag_of_this_version_is_released() -> None:
    script = step("The tag is the version")["run"]
    version = workspace()["version"]
    assert run(script, GITHUB_REF_NAME=f"v{version}").returncode == 0
    wrong = run(script, GITHUB_REF_NAME=f"v{version}.1")
    assert wrong.returncode == 1 and f"Cargo.toml says {version}" in wrong.stderr


def test_a_release_was_tried_on_every_python() -> None:
    known = jobs(ROOT / ".github/workflows/release.yml")
    assert known["publish"]["needs"] == "try" and known["try"]["needs"] == "build"
    assert known["publish"]["if"] == "github.ref_type == 'tag'"
    lowest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    tried = known["try"]["strategy"]["matrix"]["python"]
    tested = jobs(ROOT / ".github/workflows/ci.yml")["ci"]["strategy"]["matrix"]["python"]
    assert TESTED == tested == tried[: len(tested)]
    assert tested[0] == lowest
    machines = known["build"]["strategy"]["matrix"]["machine"]
    assert machines == known["try"]["strategy"]["matrix"]["machine"]
    granted = known["publish"]["permissions"]
    assert granted["id-token"] == "write" and granted["attestations"] == "write"


def test_the_release_is_built_as_make_wheel_builds_it() -> None:
    makefile = (ROOT / "Makefile").read_text()
    glibc = re.search(r"^GLIBC \?= (\S+)$", makefile, re.M)
    assert glibc
    build = "-m build --outdir dist --config-setting glibc="
    assert build + glibc[1] in step("glibc=")["run"] and build + "$(GLIBC)" in makefile
