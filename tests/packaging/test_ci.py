"""What a change must pass: which Python runs which tests, and that no failure is passed over."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.test_packaging import ROOT

PYTHON = """#!/bin/sh
case "$2" in
  *ensurepip*) [ {minor} -ge 11 ];;
  *) echo {minor};;
esac
"""
MAKE = """#!/bin/sh
echo "$*" >>{calls}
case "$*" in {failing}) exit 2;; *" test"*) echo "1 passed of $1";; esac
"""


def run(folder: Path, versions: list[str], failing: str = "") -> tuple[int, list[str], list[str]]:
    """Run it with these versions in pyenv: its status, how it calls make, what it prints.

    Calls of make that match the shell's pattern ``failing`` fail.
    """
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    commands, calls = folder / "bin", folder / "calls"
    there = ("cc", "cargo", "node", "chromium", "apt-get")
    scripts = {commands / name: "#!/bin/sh" for name in there}
    scripts[commands / "make"] = MAKE.format(calls=calls, failing=failing or "never")
    scripts[commands / "pyenv"] = f"#!/bin/sh\necho {folder}/pyenv\n"
    scripts[commands / "python3"] = PYTHON.format(minor=12)
    for version in versions:
        python = PYTHON.format(minor=version.split(".")[1])
        scripts[folder / "pyenv/versions" / version / "bin/python"] = python
    for script, text in scripts.items():
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)
    environment = {"PATH": f"{commands}:/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    called = calls.read_text().replace(f"PYTHON={folder}/pyenv/versions/", "").splitlines()
    return done.returncode, called, done.stdout.splitlines()


def test_all_on_the_newest_and_a_part_on_the_oldest(tmp_path: Path) -> None:
    versions = ["3.9.18", "3.10.2", "3.11.7", "3.12.1", "3.13.0", "3.13.0t", "3.14.0a1"]
    status, called, printed = run(tmp_path, versions)
    newest, oldest = (
        f"3.{minor}/bin/python VENV=.venv-3.{minor.split('.')[0]}" for minor in ("13.0", "11.7")
    )
    assert status == 0 and printed[-1].startswith("1 passed of PYTHON=")
    beside = [  # from the beginning, and from the end of the installations
        f"{newest} --jobs=2 --output-sync=target rust loom",
        f"{newest} --jobs=2 --output-sync=target lint labextension-test",
        f"{newest} test WORKERS= ARGS=--collect-only --quiet --quiet",
    ]
    *first, dependent, last = (call for call in called if call not in beside)
    assert sorted(first) == [f"{oldest} .venv-3.11/.sfm-test", f"{newest} .venv-3.13/.sfm-test"]
    assert dependent.startswith(f"{oldest} test ARGS=tests/contract ")
    assert called[-1] == last == f"{newest} test"
    assert max(map(called.index, first)) < called.index(beside[1]) < called.index(beside[2])
    assert beside[0] in called


def test_without_pyenv_it_runs_on_what_is_there(tmp_path: Path) -> None:
    status, called, _ = run(tmp_path, [])
    assert status == 0 and len(called) == 5
    assert called[-1] == "PYTHON=python3 VENV=.venv-3.12 test"


@pytest.mark.parametrize(
    "failing",
    ["*3.11/.sfm*", "*3.13/.sfm*", "*loom*", "*lint*", "*collect*", "*ARGS=tests*", "*3.13?test"],
)
def test_each_failure_is_one_of_the_whole(failing: str, tmp_path: Path) -> None:
    status, called, _ = run(tmp_path, ["3.11.7", "3.13.0"], failing)
    assert status != 0
    assert called[-1].endswith("3.13 test") == (failing == "*3.13?test")
