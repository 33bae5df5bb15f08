"""Runs the notebooks without a browser (`make demo`), and makes one page of their plots.

python tools/demo.py [--only 01-cpi 10-sites] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TextIO

from sfm_kernel.directory.unix import can_listen
from sfm_kernel.lessons import machine

CELL_SECONDS = 600
ALL_TAKE = "about 8 minutes on 2 cores"

PAGE = "index.html"


@dataclass
class Run:
    """A notebook, and the state of its run.

    Attributes:
        cells, done: the number of code cells, and of those that have ended.
        cell: the source of the cell that began last.
        seconds: the time of the run.
        plots: the files of its plots.
        failure: where and why it failed, in one line; None if it has not.
    """

    path: Path
    state: str = "waits"  # then "runs", then "passed", "failed" or "interrupted"
    title: str = ""
    cells: int = 0
    done: int = 0
    cell: str = ""
    seconds: float = 0.0
    plots: list[Path] = field(default_factory=list)
    failure: str | None = None


def run_demo(
    notebooks: Path, output: Path, only: Sequence[str] = (), tables: bool | None = None
) -> int:
    """Execute the numbered notebooks of a folder, apart from the welcome (00); or ``only`` these.

    Writes each with its outputs to ``output``, also as HTML, its plots beside it as PNG files, and
    ``index.html``, a page with all of them. A notebook that fails is written with its outputs so
    far, and the others still run.

    Args:
        tables: whether to print their DataFrames; None: if the output is not a terminal.

    Says first how many there are and how long all of them take, and after each how many have ended.

    Returns the exit status: 0, 1 if a notebook failed, 2 if there is none, 130 after Ctrl-C.
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
    page = (output / PAGE).resolve().as_uri()
    how_many = f"{len(found)} notebook{'s' * (len(found) != 1)}"
    print(f"demo: runs {how_many}; all of this repository's take {ALL_TAKE}")
    print(f"Those that have ended are on this page: {page}\n", flush=True)
    tables = not sys.stdout.isatty() if tables is None else tables
    runs = [Run(path) for path in found]
    width = max(len(path.name) for path in found)
    status = 0
    for number, run in enumerate(runs, 1):
        write_page(output / PAGE, runs)  # users may open it during the run
        notebook = _run(run, output, width, f"{number:{len(str(len(runs)))}} of {len(runs)}")
        if tables:
            _print_tables(notebook)
        if run.state == "interrupted":
            status = 130
            break
        status |= run.state != "passed"
    write_page(output / PAGE, runs)
    passed = sum(run.state == "passed" for run in runs)
    print(f"\n{passed} of {len(runs)} passed; all on one page: {page}")
    return status


def _run(run: Run, output: Path, width: int, where: str) -> Any:
    """Run a notebook, print its progress in one line, write its outputs; return the notebook."""
    import nbformat

    notebook = nbformat.read(run.path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    text = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    heading = text[0].partition("\n")[0] if text else ""
    run.title, run.cells = heading.lstrip("# ") or run.path.stem, len(code)
    run.state = "runs"
    with _progress(run, width, where):
        try:
            _execute(notebook, run)
            run.state = "passed"
        except KeyboardInterrupt:
            run.state, run.failure = "interrupted", "interrupted"
        except Exception as problem:  # noqa: BLE001 - the other notebooks run after any error
            run.state, run.failure = "failed", _described(problem, run.cell)
        nbformat.write(notebook, output / run.path.name)
        run.plots = _write_plots(notebook, output / run.path.stem)
        write_notebook(notebook, output / run.path.with_suffix(".html").name)
    if run.failure is not None:
        print(f"{run.path.name}: {run.failure}", file=sys.stderr, flush=True)
    return notebook


def _execute(notebook: Any, run: Run) -> None:
    """Execute the notebook in a new kernel; raises nbclient's errors, or KeyboardInterrupt."""
    from nbclient import NotebookClient

    def note(cell: Any, **_: Any) -> None:
        run.cell = cell.source

    def count(**_: Any) -> None:
        run.done += 1

    with tempfile.TemporaryDirectory(prefix="sfm-demo-") as folder:
        settings = {"connection_file": os.path.join(folder, "kernel.json")}
        if can_listen(os.path.join(folder, "kernel-ipc-9")):  # other users cannot connect
            settings["transport"] = "ipc"
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            resources={"metadata": {"path": str(run.path.parent)}},
            on_cell_execute=note,
            on_cell_executed=count,
        )
        client.config.KernelManager.update(settings)
        try:
            client.execute()
        except Exception:
            if hasattr(client, "_async_cleanup_kernel_future"):  # what nbclient does on Ctrl-C
                raise KeyboardInterrupt from None
            raise


def _described(problem: Exception, cell: str) -> str:
    """An error and its cell, in one line."""
    name, value = getattr(problem, "ename", None), getattr(problem, "evalue", None)
    text = f"{name}: {value}" if name else f"{type(problem).__name__}: {problem}"
    beginning, error = (lines.strip().partition("\n")[0] for lines in (cell, text))
    return f"{error} (in the cell that begins with {beginning!r})"


@contextmanager
def _progress(run: Run, width: int, where: str) -> Iterator[None]:
    """Print the progress of the notebook in one line: live in a terminal, otherwise at its end."""
    began = time.monotonic()
    ended = threading.Event()
    shown: TextIO = sys.stdout

    def line() -> str:
        cells = f"{run.done:3} of {run.cells:3} cells"
        return f"{where}  {run.path.name:{width}}  {cells}  {run.seconds:6.1f} s"

    def show() -> None:
        while not ended.wait(0.5):
            run.seconds = time.monotonic() - began
            print(f"\r{line()}", end="", file=shown, flush=True)

    ticker = threading.Thread(target=show, name="sfm-demo", daemon=True)
    if shown.isatty():
        ticker.start()
    try:
        yield
    finally:
        ended.set()
        if ticker.ident is not None:
            ticker.join()
            print("\r", end="", file=shown)
        run.seconds = time.monotonic() - began
        print(f"{line()}  {run.state}", file=shown, flush=True)


def _print_tables(notebook: Any) -> None:
    for cell in notebook.cells:
        for result in cell.get("outputs", ()):
            data = result.get("data", {})
            if 'class="dataframe"' in data.get("text/html", ""):
                print(f"\n{data['text/plain']}\n")


def _write_plots(notebook: Any, stem: Path) -> list[Path]:
    """Write the notebook's plots; return their files."""
    plots: list[Path] = []
    for cell in notebook.cells:
        for result in cell.get("outputs", ()):
            if "image/png" in (data := result.get("data", {})):
                plots.append(stem.with_name(f"{stem.name}-{len(plots) + 1}.png"))
                plots[-1].write_bytes(b64decode(data["image/png"]))
    return plots


# The page

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
    """Write the page of all runs so far; it replaces the earlier page atomically."""
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
    outcome = f"{run.state}: {run.failure}" if run.failure else run.state
    plots = "".join(
        f'<a href="{escape(plot.name)}"><img src="{escape(plot.name)}" loading="lazy" '
        f'alt="picture {number} of {name}"></a>'
        for number, plot in enumerate(run.plots, 1)
    )
    return (
        f'<section id="{name}"><h2><a href="{name}.html">{title}</a></h2>'
        f'<p><strong class="{run.state}">{escape(outcome)}</strong> · {facts} · '
        f'<a href="{name}.ipynb">notebook</a></p><div class="plots">{plots}</div></section>'
    )


def write_notebook(notebook: Any, path: Path) -> None:
    """Write a notebook with its outputs as a page of HTML."""
    from nbconvert.exporters import HTMLExporter

    exporter: Any = HTMLExporter()  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": path.stem}})
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Run the notebooks of the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the notebooks without a browser.")
    parser.add_argument("--notebooks", type=Path, default=Path("notebooks"), metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[], metavar="NOTEBOOK", help="01-cpi, say")
    parser.add_argument(
        "--tables",
        action=argparse.BooleanOptionalAction,
        help="print their tables (default if the output is not a terminal)",
    )
    options = parser.parse_args()
    return run_demo(options.notebooks, options.output, options.only, options.tables)


if __name__ == "__main__":
    sys.exit(main())
