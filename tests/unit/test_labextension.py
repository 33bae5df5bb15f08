"""The built front end in the repository is that of the sources beside it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def tool_named(name: str) -> ModuleType:
    """A module of tools/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """tools/labextension_hash.py."""
    return tool_named("labextension_hash")


def test_build_is_of_these_sources(tool: ModuleType) -> None:
    known = (tool.BUILT / tool.HASH).read_text().strip()
    assert known == tool.digest(), "labextension/ has changed: run `make labextension`, add both"


def test_the_shipped_files_are_those_that_were_built(tool: ModuleType) -> None:
    there = tool.hashes(tool.BUILT)
    changed = tool.differences(there, tool.known(tool.BUILT))
    assert not changed, f"not as they were built: {changed}. Run `make labextension`, add both"
    assert {"package.json", "install.json", tool.HASH, "static/style.js"} < there.keys()


def test_a_change_of_what_is_shipped_is_seen(tool: ModuleType, tmp_path: Path) -> None:
    built = tmp_path / "built"
    shutil.copytree(tool.BUILT, built)
    bundles = sorted(path.relative_to(built).as_posix() for path in built.glob("static/*.js"))
    for number, bundle in enumerate(bundles):
        text = (built / bundle).read_text()
        (built / bundle).write_text(text[:-1] + chr(ord(text[-1]) ^ 1))  # one character
        changed = tool.differences(tool.hashes(built), tool.known(built))
        assert changed == bundles[: number + 1]
    (built / "static/more.js").touch()
    (built / "schemas/@sfm/labextension/plugin.json").unlink()
    changed = tool.differences(tool.hashes(built), tool.known(built))
    assert changed[0] == "schemas/@sfm/labextension/plugin.json" and "static/more.js" in changed


def test_build_is_complete(tool: ModuleType) -> None:
    package = json.loads((tool.BUILT / "package.json").read_text())
    entry = package["jupyterlab"]["_build"]["load"]
    assert (tool.BUILT / entry).is_file()
    assert (tool.BUILT / "schemas/@sfm/labextension/plugin.json").is_file()
    assert json.loads((tool.BUILT / "install.json").read_text())["packageName"] == "sfm-kernel"


def test_hash_sees_each_source(tool: ModuleType) -> None:
    found = {path.relative_to(tool.SOURCES).as_posix() for path in tool.sources()}
    assert {"package.json", "yarn.lock", "src/index.ts", "style/index.css"} <= found
    assert {"schema/plugin.json", "src/model/types.ts"} <= found


def test_version_is_the_package_s(tool: ModuleType) -> None:
    cargo = (ROOT / "sfm_kernel/native/Cargo.toml").read_text()
    version = re.search(r'^version = "(.*)"', cargo, re.M)
    assert version is not None
    assert json.loads((tool.SOURCES / "package.json").read_text())["version"] == version[1]


def test_no_download_address(tool: ModuleType) -> None:
    built = [path for path in tool.BUILT.rglob("*") if path.is_file()]
    for path in [*tool.sources(), tool.SOURCES / ".yarnrc.yml", *built]:
        addresses = re.findall(r"https?://(?!www\.w3\.org/)[^\s\"']+", path.read_text())
        assert not addresses, f"{path} names {addresses}"


def test_types_are_those_of_the_schema() -> None:
    command = [sys.executable, str(ROOT / "tools/schema_types.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_new_field_of_the_schema_becomes_one_of_the_types() -> None:
    types = tool_named("schema_types")
    schema: Any = json.loads((ROOT / "sfm_kernel/observe/schema.json").read_text())["$defs"]
    before = types.page(schema)
    for name, shape, made in (
        ("text", {"type": ["string", "null"]}, "string | null"),
        ("ways", {"type": "array", "items": {"enum": ["a", None]}}, "ReadonlyArray<'a' | null>"),
        ("near", {"$ref": "#/$defs/live_state"}, "LiveState"),
    ):
        schema["process"]["properties"][name] = shape
        after = types.page(schema)
        assert f"readonly {name}?: {made};" in after and after != before
        before = after
    assert "Segment" not in before, "what only the core and relays know is none of the panel's"
