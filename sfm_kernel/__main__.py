"""SFM from a shell: ``python -m sfm_kernel clean | worlds | queues WORLD | why WORLD | record WORLD
FILE``."""

from __future__ import annotations

import argparse
import sys

from sfm_kernel import directory
from sfm_kernel.errors import SFMError, limits_named, printable
from sfm_kernel.lessons.measure.machine import machine
from sfm_kernel.observe import record
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.snapshot import message_text, snapshot


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m sfm_kernel", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("clean", help="remove the files of dead processes from shared memory")
    commands.add_parser("worlds", help="list your worlds on this machine")
    queues = commands.add_parser("queues", help="show what the processes of a world are doing")
    queues.add_argument("world")
    why = commands.add_parser("why", help="say why a world does not go on")
    why.add_argument("world")
    record = commands.add_parser("record", help="write a world's last run into an HTML file")
    record.add_argument("world")
    record.add_argument("file")
    record.add_argument("--title", default="", help="the run's title")
    record.add_argument("--name", default="", help="the author's name")
    options = parser.parse_args(arguments)
    try:
        with limits_named():
            _run(options)
    except (SFMError, OSError) as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.command == "clean":
        removed = directory.clean()
        print("\n".join(removed) if removed else "nothing to remove")
    elif options.command == "worlds":
        print("\n".join(directory.worlds()) or "no worlds")
    elif options.command == "queues":
        _queues(options.world)
    elif options.command == "record":
        _record(options)
    else:
        _why(options.world)


def _queues(world: str) -> None:
    with directory.LocalDirectory(world, create=False) as found:
        processes = snapshot(found.folder)["processes"]
    for process in processes:
        state, waits, depth = process["state"], process["waits"] or "", process["depth"]
        print(f"{process['name']!s:>8}  {state:16} {waits}  {depth} queued")
        for message in process["messages"]:
            print(f"{'':10}{message_text(message)}")


def _why(world: str) -> None:
    with directory.LocalDirectory(world, create=False) as found:
        diagnosis = explain(found.folder, patience=1.0)
    print("\n".join([diagnosis["title"], *diagnosis["sentences"]]))


def _record(options: argparse.Namespace) -> None:
    with directory.LocalDirectory(options.world, create=False) as found:
        notes = record(
            found.folder,
            options.file,
            title=options.title,
            name=options.name,
            facts=machine(),
            patience=1.0,
        )
    print("\n".join([options.file, *notes]))


if __name__ == "__main__":
    sys.exit(main())
