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

from tools.demo import run_demo

FOLDER = Path(__file__).parents[2] / "notebooks"


def demo(
    name: str, plots: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> tuple[Any, str]:
    """The notebook with its outputs, and what the demo printed. It must have made so many plots."""
    assert run_demo(FOLDER, tmp_path, only=[name]) == 0
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
