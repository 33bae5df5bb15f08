"""What ``demo`` has written as one page: each notebook with its pictures, and the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfm_kernel.bench.machine import machine

if TYPE_CHECKING:
    from sfm_kernel.bench.demo import Run

PAGE = "index.html"

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --good: #4ac26b; --bad: #ff7b72; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid var(--line); padding: .6rem 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: .4rem 0; }
p { margin: .3rem 0; }
.passed { color: var(--good); } .failed, .interrupted { color: var(--bad); }
.plots { display: flex; flex-wrap: wrap; gap: .6rem; margin-top: .6rem; }
.plots img { height: 150px; background: #fff; border: 1px solid var(--line); border-radius: 4px; }
table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
td:first-child { opacity: .7; }
"""


def write_page(path: Path, runs: Sequence[Run]) -> None:
    """Write the page as things stand; it replaces the one before as a whole."""
    passed = sum(run.state == "passed" for run in runs)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
        for name, value in machine().items()
    )
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>sfm-kernel: demo</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>sfm-kernel: {passed} of {len(runs)} notebooks passed</h1>\n"
        + "\n".join(map(_section, runs))
        + f"\n<section><h2>The machine</h2><table>{rows}</table></section>\n</body>\n</html>\n"
    )
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def _section(run: Run) -> str:
    name = escape(run.path.stem)
    title = escape(run.title or run.path.stem)
    facts = f"{run.cells} cells, {run.seconds:.1f} s"
    if run.state in ("waits", "runs"):
        since = time.strftime("%H:%M:%S")
        return f'<section id="{name}"><h2>{title}</h2><p>{run.state}, at {since}</p></section>'
    told = f"{run.state}: {run.failure}" if run.failure else run.state
    plots = "".join(
        f'<a href="{escape(plot.name)}"><img src="{escape(plot.name)}" loading="lazy" '
        f'alt="picture {number} of {name}"></a>'
        for number, plot in enumerate(run.plots, 1)
    )
    return (
        f'<section id="{name}"><h2><a href="{name}.html">{title}</a></h2>'
        f'<p><strong class="{run.state}">{escape(told)}</strong> · {facts} · '
        f'<a href="{name}.ipynb">notebook</a></p><div class="plots">{plots}</div></section>'
    )


def write_notebook(notebook: Any, path: Path) -> None:
    """Write a notebook with its outputs as a page of HTML."""
    from nbconvert.exporters import HTMLExporter

    exporter: Any = HTMLExporter()  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": path.stem}})
    path.write_text(text, encoding="utf-8")
