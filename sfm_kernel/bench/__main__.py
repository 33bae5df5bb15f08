"""``python -m sfm_kernel.bench NAME``: run a benchmark, print its table, keep its rows.

The summary table and the machine's facts go to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sfm_kernel.bench import BENCHMARKS, NAMED_OTHERWISE, machine, table
from sfm_kernel.bench.arguments import at_least
from sfm_kernel.bench.rows import Row, write_json
from sfm_kernel.errors import SFMError


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.benchmark is None:
        parser.print_help()
        return 0
    if options.benchmark == "demo":
        from sfm_kernel.bench.demo import run_demo

        return run_demo(options.notebooks, options.output, options.only, options.tables)
    try:
        return _run(options)
    except SFMError as error:
        print(f"{options.benchmark}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{options.benchmark}: interrupted", file=sys.stderr)
        return 130


def _module(name: str) -> Any:
    return import_module(f"sfm_kernel.bench.{NAMED_OTHERWISE.get(name, name)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sfm_kernel.bench",
        description="Run a benchmark: print its table and the machine's facts, keep its rows.",
    )
    benchmarks = parser.add_subparsers(dest="benchmark", metavar="NAME", title="benchmarks")
    for name in BENCHMARKS:
        module = _module(name)
        title = str(module.__doc__).partition("\n")[0]
        one = benchmarks.add_parser(name, help=title, description=title)
        one.add_argument("--repeat", type=at_least(1), metavar="R", help="rounds to measure")
        one.add_argument("--quick", action="store_true", help="few and small: does it work?")
        one.add_argument("--json", type=Path, metavar="FILE", help="write facts and rows there")
        if hasattr(module, "plot"):
            one.add_argument("--plot", type=Path, metavar="FILE", help="draw the rows (.png, .svg)")
        module.add_arguments(one)
    demo = benchmarks.add_parser("demo", help="Run the benchmark notebooks without a browser.")
    demo.add_argument("--notebooks", type=Path, default=Path("notebooks"), metavar="FOLDER")
    demo.add_argument("--output", type=Path, default=Path("build/demo"), metavar="FOLDER")
    demo.add_argument("--only", nargs="+", default=[], metavar="NOTEBOOK", help="01-cpi, say")
    demo.add_argument(
        "--tables",
        action=argparse.BooleanOptionalAction,
        help="print their tables (as where the output is no terminal)",
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    benchmark = _module(options.benchmark)
    plot_file = getattr(options, "plot", None)
    for file in (options.json, plot_file):  # not after minutes of measuring
        if file is not None and not file.parent.is_dir():
            raise SFMError(f"there is no folder {str(file.parent)!r} for {file.name!r}: make it")
    facts = machine()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    for line in benchmark.notes(options) if hasattr(benchmark, "notes") else ():
        print(line)
    print(flush=True)

    measured = list(_progress(benchmark.measure(options)))
    summary = benchmark.summary(measured)
    if hasattr(benchmark, "tables"):
        shown = [f"{title}\n{table(rows)}" for title, rows in benchmark.tables(measured).items()]
    else:
        shown = [table(summary)]
    print("\n\n".join(shown))

    if options.json is not None:
        contents = {"benchmark": options.benchmark, "machine": facts, "rows": measured}
        write_json(options.json, contents | {"summary": summary})
        print(f"\nrows written to {options.json}")
    if plot_file is not None:
        benchmark.plot(measured).savefig(plot_file)
        print(f"\nplot written to {plot_file}")
    return 0


def _progress(rows: Iterator[Row]) -> Iterator[Row]:
    watched = sys.stderr.isatty()
    for number, row in enumerate(rows, start=1):
        if watched:
            print(f"\r{number} measured", end="", file=sys.stderr, flush=True)
        yield row
    if watched:
        print("\r" + " " * 24 + "\r", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
