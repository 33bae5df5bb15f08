"""Every configuration in docs/hub.md is valid, and does what the text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from sfm_kernel.jupyter.server.handlers import SFMPanel
from sfm_kernel.jupyter.settings import SFM, Settings
from tests.jupyter.notebook import notebook
from tests.jupyter.server import server

PAGE = Path(__file__).parents[2] / "docs/hub.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
OURS = {"SFM": SFM, "SFMPanel": SFMPanel}
PYTHON = {
    text.partition("\n")[0].removeprefix("# "): text for kind, text in BLOCKS if kind == "python"
}
VALUES = [yaml.safe_load(text) for kind, text in BLOCKS if kind == "yaml"]
VARIABLES = {f"SFM_{name.upper()}" for name in SFM.class_trait_names(config=True)}


def loaded(name: str, folder: Path) -> Config:
    """The configuration that Jupyter reads from the file of this name."""
    (folder / name).write_text(PYTHON[name])
    found: Config = PyFileConfigLoader(name, path=str(folder)).load_config()
    return found


def test_nothing_on_the_page_goes_untested() -> None:
    assert {kind for kind, _ in BLOCKS} == {"bash", "dockerfile", "python", "yaml", ""}
    assert set(PYTHON) == {
        "jupyterhub_config.py", "ipython_kernel_config.py", "jupyter_server_config.py",
    }  # fmt: skip
    assert len(VALUES) == 1


@pytest.mark.parametrize("name", ["ipython_kernel_config.py", "jupyter_server_config.py"])
def test_configurations(name: str, tmp_path: Path) -> None:
    config = loaded(name, tmp_path)
    assert set(config) <= set(OURS)
    for section, said in config.items():
        assert set(said) <= set(OURS[section].class_trait_names(config=True))
    settings = Settings(config, {})
    assert (settings.max_engines, settings.memory_limit, settings.idle) == (8, 1 << 30, 3600)


def test_environments(tmp_path: Path) -> None:
    update: Any = loaded("jupyterhub_config.py", tmp_path).Spawner.environment
    for said in (update.get_value({}), VALUES[0]["singleuser"]["extraEnv"]):
        assert set(said) <= VARIABLES
        assert all(isinstance(text, str) for text in said.values()), "YAML takes 8 for a number"
        settings = Settings(environment=said)
        assert (settings.max_engines, settings.memory_limit) == (8, 512 << 20)
        assert settings.idle == 1800


def test_the_spawner_takes_its_part(tmp_path: Path) -> None:
    spawner = pytest.importorskip("jupyterhub.spawner", reason="JupyterHub is not installed")
    configured = spawner.Spawner(config=loaded("jupyterhub_config.py", tmp_path))
    assert configured.environment["SFM_MAX_ENGINES"] == "8"


def test_shared_memory_is_mounted() -> None:
    storage = VALUES[0]["singleuser"]["storage"]
    (volume,), (mount,) = storage["extraVolumes"], storage["extraVolumeMounts"]
    assert volume["name"] == mount["name"] and mount["mountPath"] == "/dev/shm"
    assert volume["emptyDir"]["medium"] == "Memory"


def test_the_table_of_limits_names_all() -> None:
    rows = re.findall(r"^\| `(SFM_\w+)` \| `c\.SFM\.(\w+)` \|", PAGE.read_text(), re.M)
    assert {variable for variable, _ in rows} == VARIABLES
    assert all(variable == f"SFM_{name.upper()}" for variable, name in rows)


def test_a_notebook_and_a_server_obey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = tmp_path / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text(PYTHON["ipython_kernel_config.py"])
    (tmp_path / "jupyter_server_config.py").write_text(PYTHON["jupyter_server_config.py"])
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    with notebook() as book, server(tmp_path) as panel:
        started = book.text("%sfm start 4")
        assert "they end after 1 hour without use" in started
        shown = BLOCKS[[text.startswith("LimitReached") for _, text in BLOCKS].index(True)][1]
        status, answer = panel.post("sfm/worlds", {"engines": 5})
        assert status == 500 and f"LimitReached: {answer['message']}" == shown.strip()
        limit = "%%sfm 0\nimport resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20)"
        assert book.text(limit).split()[-1] == "1024"
