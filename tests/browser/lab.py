"""A JupyterLab server for the tests, with the extension of the repository."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfm_kernel.jupyter.controller import reserve_ports

REPOSITORY = Path(__file__).parents[2]
LABEXTENSIONS = REPOSITORY / "sfm_kernel/install/data/share/jupyter/labextensions"
LOCALHOST = "127.0.0.1"


@dataclass
class Lab:
    """A running server: its address, and the folder that it shows."""

    port: int
    token: str
    folder: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path) -> Lab:
        """Start one; it answers when this returns. Its log is ``folder/../lab.log``."""
        (port,) = reserve_ports(1)
        token = secrets.token_hex(16)
        settings = _first_settings(folder)
        options = {
            "ServerApp.ip": LOCALHOST,
            "ServerApp.port": port,
            "ServerApp.port_retries": 0,
            "ServerApp.open_browser": False,
            "ServerApp.allow_root": True,
            "ServerApp.root_dir": str(folder),
            # Jupyter Notebook, too: installed beside JupyterLab, it answers on the same server.
            "ServerApp.jpserver_extensions": {"sfm_kernel.jupyter.server": True, "notebook": True},
            "IdentityProvider.token": token,
            "LabApp.expose_app_in_browser": True,
            "LabApp.news_url": None,
            "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
            "LabApp.user_settings_dir": str(settings),
            "LabApp.workspaces_dir": str(folder.parent / "workspaces"),
            "LabApp.labextensions_path": LABEXTENSIONS,  # not what was installed
        }
        for name in ("expose_app_in_browser", "user_settings_dir", "labextensions_path"):
            options[f"JupyterNotebookApp.{name}"] = options[f"LabApp.{name}"]
        with open(folder.parent / "lab.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *(f"--{k}={v}" for k, v in options.items())],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ
                | {"PYTHONPATH": str(REPOSITORY), "XDG_CACHE_HOME": str(folder.parent / "cache")},
            )
        lab = cls(port, token, folder, process)
        while not lab._answers():
            if process.poll() is not None:
                raise RuntimeError((folder.parent / "lab.log").read_text())
            time.sleep(0.1)
        return lab

    def stop(self) -> None:
        """End it and its kernels."""
        self.end_kernels()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def clear(self) -> None:
        """End its kernels, and remove files, settings and layouts."""
        self.end_kernels()
        for place in (self.folder, self.folder.parent / "workspaces"):
            for path in place.glob("*"):  # the folder itself is where the server works
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self.folder.parent / "settings")
        shutil.rmtree(self.folder.parent / "cache/sfm-kernel/runs", ignore_errors=True)
        _first_settings(self.folder)

    def end_kernels(self) -> None:
        """End all kernels, and with them the engines that they have started."""
        for session in self.get("api/sessions"):
            self.request("DELETE", f"api/sessions/{session['id']}")

    def url(self, path: str = "") -> str:
        """The address of something below the server's root."""
        return f"http://{LOCALHOST}:{self.port}/{path}"

    def get(self, path: str) -> Any:
        """The server's answer to a GET, from JSON."""
        return self.request("GET", path)

    def request(self, method: str, path: str) -> Any:
        """The server's answer, from JSON; None if it is empty."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url(path), method=method, headers=headers)
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _answers(self) -> bool:
        try:
            self.get("api/status")
        except OSError:
            return False
        return True


def _first_settings(folder: Path) -> Path:
    """The folder of a server's settings, as a test finds them."""
    settings = folder.parent / "settings"
    news = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false"}')  # or it asks whether it may
    return settings


def notebook(folder: Path, name: str, *cells: str) -> str:
    """Write a notebook with these code cells; returns its path below the folder."""
    import nbformat.v4

    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    (folder / name).write_text(json.dumps(made))
    return name
