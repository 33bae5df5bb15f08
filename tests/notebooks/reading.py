"""Runs a notebook as `make demo` does, and reads what it shows."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from tests.conftest import LONG
from tools.demo import run_demo

FOLDER = Path(__file__).parents[2] / "notebooks"

SHORTER: dict[str, dict[str, str]] = {
    "01-cpi": {"repeat=5": "repeat=2"},
    "02-ping-pong": {"repeat=3, seconds=0.05": "repeat=1, seconds=0.01"},
    "03-dot-product": {
        "repeat=3, seconds=0.03": "repeat=1, seconds=0.01",
        "m=100, repeat=2": "m=100, repeat=1",
    },
    "04-chunked-mpi": {"repeat=2, count=2": "repeat=1, count=1"},
    "05-reduction-scaling": {
        "[2, 4, 6, 8, 12, 16]": "[2, 4, 8]",
        "repeat=2, seconds=0.02": "repeat=1, seconds=0.01",
        "[2, 4, 8, 12]": "[2, 4, 8]",
        "repeat=3, seconds=0.02": "repeat=1, seconds=0.01",
        "model_sizes=reductions.MODEL_SIZES)": "model_sizes=reductions.MODEL_SIZES[:3])",
    },
    "06-speedes": {"repeat=3": "repeat=1"},
    "09-c": {
        "repeat=2, seconds=0.05": "repeat=1, seconds=0.01",
        "range(1, most + 1)": "range(most, most + 1)",
    },
    "10-sites": {
        "{'names': ['BT', 'FT'], 'count': 1}": "{'names': ['BT'], 'count': 1}",
        "['tcp silence'], ['direct', 'direct bbr']": "['tcp silence'], ['direct']",
        "['direct heartbeat', 'direct bbr', 'gateway']": "['direct bbr', 'gateway']",
        "ways = ['direct', 'direct heartbeat', 'direct bbr', 'gateway']": "ways = ['gateway']",
        "['direct heartbeat', 'direct bbr', 'gateway cubic']": "['gateway cubic']",
        "ways = ['direct', 'direct bbr', 'gateway']": "ways = ['gateway']",
    },
}
"""Notebook -> what its cells say -> what they say in tests: they measure less, in the same way."""


def shortened(name: str, folder: Path) -> None:
    """Write a notebook that measures less into a folder; with SFM_LONG=1, the notebook as it is."""
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    if not LONG:
        for whole, part in SHORTER.get(name, {}).items():
            assert whole in text, f"{name} does not say {whole} any more"
            text = text.replace(whole, part)
    (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")


def demo(
    name: str, plots: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[Any, str]:
    """The notebook with its outputs, and what the demo printed. It must have made so many plots."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    shortened(name, folder)
    assert run_demo(folder, tmp_path, only=[name]) == 0
    for number in range(1, plots + 1):
        assert (tmp_path / f"{name}-{number}.png").read_bytes().startswith(b"\x89PNG")
    return nbformat.read(tmp_path / f"{name}.ipynb", as_version=4), capfd.readouterr().out


def outputs(notebook: Any, source: str) -> list[Any]:
    """The outputs of the only code cell that contains ``source``."""
    (cell,) = [
        cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source
    ]
    return list(cell.outputs)


def text(notebook: Any, source: str) -> str:
    """All text of these outputs, without labels of engines and colours."""
    parts = []
    stream = None
    for output in outputs(notebook, source):
        if stream is not None and output.get("name") == stream:
            parts[-1] += output["text"]  # a message may end anywhere: in the middle of a line
        else:
            parts.append(output.get("text", "") + output.get("data", {}).get("text/plain", ""))
        stream = output.get("name")
        parts.extend(output.get("traceback", ()))
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))


def pictures(notebook: Any, source: str) -> list[Image.Image]:
    return [
        Image.open(io.BytesIO(b64decode(output.data["image/png"])))
        for output in outputs(notebook, source)
        if "image/png" in output.get("data", {})
    ]


def kind(output: Any) -> str:
    return str(output.output_type)


def has_curves(notebook: Any, source: str) -> None:
    """The plot that was live is one picture in the end, and more than empty pairs of axes."""
    (plot,) = pictures(notebook, source)
    assert plot.width > 800 and len(plot.convert("RGB").getcolors(1 << 24)) > 100


def is_shown(notebook: Any, source: str, printed: str) -> None:
    """The table that this cell displays is what the demo has printed."""
    (result,) = outputs(notebook, source)
    assert 'class="dataframe"' in result.data["text/html"]
    assert result.data["text/plain"] in printed
