"""Makes the quick-reference card: one page, from the help texts and docstrings.

python tools/quick_reference.py           writes notebooks/quick-reference.html
python tools/quick_reference.py --check   fails if the file differs from that
"""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import sfm_kernel
from sfm_kernel import errors
from sfm_kernel.jupyter.commands import HELP

TARGET = Path(__file__).parents[1] / "notebooks" / "quick-reference.html"

CALLS = ("send", "recv", "recv_nb", "peek", "regcb")
EXAMPLES = {
    "send": "send(dest=1, tag='x', data=a)",
    "recv": "m = recv(tag='x')",
    "recv_nb": "m = recv_nb(src=0)",
    "peek": "peek(tag='x')",
    "regcb": "cb = regcb(f, tag='x')",
}
RECEIVES = {
    "recv()": "the oldest message",
    "recv(src=0)": "from a sender, by name or rank; 'home' is the notebook",
    "recv(a=1, b='x')": "with all of these values",
    "recv(a=lambda a: a > 1)": "whose value fulfils this condition",
    "recv(2.5, a=1)": "within 2.5 seconds, or RecvTimeout",
    "m.a, m['a'], m.src": "a message's values, and its sender",
}
ABOUT = ("rank", "size", "name", "buffering", "site", "c")
COLLECTIVES = (
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall",
    "scan", "exchange",
)  # fmt: skip
ERRORS = (
    "DeadlockDetected", "RecvTimeout", "WouldBlock", "PeerLost", "UnknownName", "AddressError",
    "EncodeError", "MatchError", "CollectiveMismatch", "MessageTooLarge", "SegmentFull",
)  # fmt: skip
MPI_AND_C = {
    "from mpi4py import MPI": "in a cell of engines: MPI, on the same queue",
    "MPI.COMM_WORLD": "all engines; send, recv, Bcast, Allreduce, windows, …",
    "sfm_kernel.mpi.buffering(0)": "MPI's sends wait for their receives",
    "sfm.c.f(x)": "a function of a `%%sfm c` cell; arrays are pointers",
}
HANGS = {
    "the cell ends with DeadlockDetected": "read its title, then each sentence to its end",
    "it does not end": "<i>Stop</i>; or see the panel: which engine computes?",
    "a message <i>nearly fits</i>": "compare the lines of its send and its recv",
    "it is not clear why one waits": "%sfm timeline: the last arrow of each row",
    "it hangs on some days": "a recv that fits any sender's message",
    "it hangs with large data": "try sfm.buffering = 0; in MPI Ssend",
    "an engine goes on after Stop": "%sfm restart NAME",
}

STYLE = """\
@page { size: A4; margin: 9mm; }
body { font: 9.1px/1.28 "DejaVu Sans", Verdana, sans-serif; margin: 0 auto; max-width: 192mm;
  color: #000; background: #fff; }
h1 { font-size: 18px; margin: 0 0 1.4mm; }
h1 small { font-size: 9.4px; font-weight: normal; }
main { columns: 2; column-gap: 6mm; }
section { break-inside: avoid; margin: 0 0 1.9mm; }
h2 { font-size: 10.4px; margin: 0 0 .5mm; border-bottom: .3mm solid #1f5fa8; color: #1f5fa8; }
table { border-collapse: collapse; width: 100%; }
td { vertical-align: top; padding: .12mm 1.6mm .12mm 0; }
td:first-child { white-space: nowrap; }
code { font: 8.4px "DejaVu Sans Mono", Consolas, monospace; }
"""


def page() -> str:
    """The card."""
    commands = [line for line in HELP.split("\n\n")[0].splitlines() if line.startswith("%sfm")]
    cells = [line for line in HELP.splitlines() if line.startswith("%%sfm")]
    sections = [
        _section("Commands", map(_command, commands)),
        _section("Cells", map(_command, cells)),
        _section("Calls, in cells of engines and of the notebook",
                 ((EXAMPLES[name], _summary(sfm_kernel.Endpoint, name)) for name in CALLS)),
        _section("Which message", RECEIVES.items()),
        _section("Who am I", (_about(name) for name in ABOUT)),
        _section("Together: group = sfm_kernel.Group(sfm)",
                 ((f"group.{name}", _summary(sfm_kernel.Group, name)) for name in COLLECTIVES)),
        _section("MPI and C", MPI_AND_C.items()),
        _section("When it hangs", HANGS.items(), raw=True),
        _section("Errors", ((name, _plain(getattr(errors, name).__doc__)) for name in ERRORS)),
    ]  # fmt: skip
    title = "sfm-kernel: quick reference"
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
            f"<h1>{title} <small>%load_ext sfm_kernel · %sfm help · send? · Tab</small></h1>",
            "<main>",
            *sections,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _section(title: str, rows: Iterable[tuple[str, str]], *, raw: bool = False) -> str:
    def shown(text: str) -> str:
        text = text if raw else html.escape(text, quote=False)
        return re.sub(r"(`{1,2})(.+?)\1", r"<code>\2</code>", text)

    first = "<td>{}</td>" if raw else "<td><code>{}</code></td>"
    lines = [f"<tr>{first.format(shown(key))}<td>{shown(text)}</td></tr>" for key, text in rows]
    table = "\n".join(lines)
    return f"<section>\n<h2>{html.escape(title)}</h2>\n<table>\n{table}\n</table>\n</section>"


def _command(line: str) -> tuple[str, str]:
    """A command, and its description after the last two or more spaces of the line."""
    typed, _, does = line.rpartition("  ")
    return " ".join(typed.split()), does.strip()


def _about(name: str) -> tuple[str, str]:
    shown = name if name in ("rank", "size") else f"sfm.{name}"
    return shown, _summary(sfm_kernel.Endpoint, name)


def _summary(owner: type, name: str) -> str:
    return _plain(inspect.getdoc(getattr(owner, name)))


def _plain(text: str | None) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join((text or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.;])\s|; see ", paragraph)[0].rstrip(".;")


def main() -> int:
    """Write the card, or compare it; the exit status."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{TARGET} does not match the code: run python tools/quick_reference.py")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
