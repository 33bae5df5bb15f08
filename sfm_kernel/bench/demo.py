"""Run the benchmark notebooks without a browser: print their tables, keep their plots."""

from __future__ import annotations

import sys
import time
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CELL_SECONDS = 600


def run_demo(notebooks: Path, output: Path, only: Sequence[str] = ()) -> int:
    """Execute the numbered notebooks of a folder, apart from the welcome (00); or ``only`` these.

    Writes each with its outputs to ``output``, its plots beside it as PNG files, and prints its
    DataFrames. A notebook that fails is written as far as it came. Returns the exit status.
    """
    numbered = sorted(notebooks.glob("[0-9][0-9]-*.ipynb"))
    found = [path for path in numbered if (path.stem in only if only else path.name[:2] != "00")]
    if len(found) < max(len(only), 1):
        missing = set(only or ["01-cpi"]) - {path.stem for path in found}
        print(
            f"demo: no notebook such as {min(missing)}.ipynb in {notebooks.resolve()}",
            file=sys.stderr,
        )
        return 2
    output.mkdir(parents=True, exist_ok=True)
    failed = [path.name for path in found if not _run(path, output)]
    return 1 if failed else 0


def _run(path: Path, output: Path) -> bool:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}
    print(f"\n{path.name}\n{'=' * len(path.name)}", flush=True)
    started = time.monotonic()
    failure = None
    try:
        NotebookClient(notebook, timeout=CELL_SECONDS, resources=folder).execute()
    except CellExecutionError as error:
        failure = error
    nbformat.write(notebook, output / path.name)
    plots = _show(notebook, output / path.stem)
    if failure is not None:
        print(f"{path.name} failed:\n{failure}", file=sys.stderr)
        return False
    seconds = time.monotonic() - started
    print(f"\n{seconds:.1f} s; written: {output / path.name}, {', '.join(map(str, plots))}")
    return True


def _show(notebook: Any, stem: Path) -> list[Path]:
    """Print the notebook's DataFrames and write its pictures; return the pictures' files."""
    plots: list[Path] = []
    for cell in notebook.cells:
        for result in cell.get("outputs", ()):
            data = result.get("data", {})
            if 'class="dataframe"' in data.get("text/html", ""):
                print(f"\n{data['text/plain']}")
            if "image/png" in data:
                plots.append(stem.with_name(f"{stem.name}-{len(plots) + 1}.png"))
                plots[-1].write_bytes(b64decode(data["image/png"]))
    return plots
