"""Observers say the line of the call in which a program in C waits."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel import directory
from sfm_kernel._native import resolve
from sfm_kernel.observe import explain
from sfm_kernel.observe.code_locations import code_location, source, words
from sfm_kernel.observe.events import events
from tests.c.building import PROGRAMS, needs_cc, variant
from tests.waiting import wait_until

SOURCE = PROGRAMS.parent / "lines" / "exchange.c"
LINES = SOURCE.read_text().splitlines()
IN_RECEIVE, IN_MAIN = (
    nth for nth, line in enumerate(LINES, 1) if "sfm_recv(self, wanted, SFM_FOREVER" in line
)

pytestmark = needs_cc


@contextlib.contextmanager
def running(*commands: tuple[Any, ...]) -> Iterator[None]:
    """Processes, killed at the end; what they leave is removed."""
    with contextlib.ExitStack() as stack:
        stack.callback(directory.clean)
        for words in commands:
            process = stack.enter_context(subprocess.Popen(words))
            stack.callback(process.kill)
        yield


def stuck(folder: Path, *names: str) -> dict[str, Any]:
    """The diagnosis, once these processes wait."""

    def found() -> dict[str, Any] | None:
        with contextlib.suppress(FileNotFoundError):
            diagnosis = explain(str(folder))
            waiting = [
                judged["name"] for judged in diagnosis["processes"] if judged["verdict"] == "waits"
            ]
            senders = {edge["from"] for edge in diagnosis["edges"]}
            if set(names) <= senders and set(names) <= {*waiting, *diagnosis["stuck"]}:
                return diagnosis
        return None

    return dict(wait_until(found))


@pytest.mark.parametrize("flags", [("-g", "-O0"), ("-g", "-O2"), ("-g", "-O2", "-no-pie")])
def test_two_that_wait_for_each_other_are_told_with_their_lines(
    flags: tuple[str, ...], world: str, sfm_dir: Path
) -> None:
    program = variant(SOURCE, *flags)
    with running((program, world, "A", "B"), (program, world, "B", "A")):
        diagnosis = stuck(sfm_dir / world, "A", "B")
    said = " ".join(diagnosis["sentences"])
    assert f"A waits for sfm_recv(src='B') in exchange.c, line {IN_RECEIVE} (receive)." in said
    assert f"B waits for sfm_recv(src='A') in exchange.c, line {IN_MAIN} (main)." in said


@pytest.mark.parametrize("flags", [(), ("-no-pie",)])
def test_without_debug_information_the_function_is_told(
    flags: tuple[str, ...], world: str, sfm_dir: Path
) -> None:
    program = variant(SOURCE, *flags)
    with running((program, world, "A", "B"), (program, world, "B", "A")):
        diagnosis = stuck(sfm_dir / world, "A", "B")
    places = {judged["name"]: judged["where"] for judged in diagnosis["processes"]}
    assert [places[name]["function"] for name in "AB"] == ["receive", "main"]
    assert [places[name]["line"] for name in "AB"] == [0, 0]


PYTHON = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1], name="P") as sfm:
    sfm.wait_for("A")
    sfm.recv(src="A")
"""


def test_python_and_c_in_one_deadlock(world: str, sfm_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PYTHON)
    in_c = (variant(SOURCE, "-g"), world, "A", "P")
    with running(in_c, (sys.executable, tmp_path / "prog.py", world)):
        diagnosis = stuck(sfm_dir / world, "A", "P")
    said = " ".join(diagnosis["sentences"])
    assert f"A waits for sfm_recv(src='P') in exchange.c, line {IN_RECEIVE} (receive)." in said
    assert "P waits for recv(src='A') in prog.py, line 5." in said
    assert {frozenset((edge["from"], edge["to"])) for edge in diagnosis["edges"]} == {
        frozenset("AP")
    }


def test_the_timeline_names_lines(world: str, sfm_dir: Path) -> None:
    folder = sfm_dir / world
    program = variant(SOURCE, "-g")
    with running((program, world, "A", "B"), (program, world, "B", "A")):
        stuck(folder, "A", "B")
        blocked = [event for event in events(str(folder)) if event["what"] == "blocked in recv"]
        assert {event["where"]["line"] for event in blocked} >= {IN_RECEIVE, IN_MAIN}
        assert {event["where"]["file"] for event in blocked} == {str(SOURCE)}


# ---- addresses ----


def address_of(program: Path, function: str) -> int:
    """The address at which a function begins, by nm."""
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    (found,) = (line.split()[0] for line in listed.splitlines() if line.endswith(f" {function}"))
    return int(found, 16)


def build(folder: Path, text: str, *flags: str) -> Path:
    path = folder / "prog.c"
    path.write_text(text)
    words = ["cc", *flags, "-Wl,--build-id", str(path), "-o", str(folder / "prog")]
    subprocess.run(words, check=True)
    return folder / "prog"


def test_a_function_in_a_header_of_the_system_s_is_told_as_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    header = tmp_path / "include" / "wrap.h"
    header.write_text(
        "void work(int);\nstatic inline __attribute__((always_inline)) void wrapped(void)"
        " {\n    work(1);\n}\n"
    )
    (tmp_path / "work.c").write_text("volatile int n;\nvoid work(int one) { n = one; }\n")
    text = '#include "include/wrap.h"\nint main(void)\n{\n    wrapped();\n    return 0;\n}\n'
    program = build(tmp_path, text, "-g", "-O0", str(tmp_path / "work.c"))
    start = address_of(program, "main")
    found = {resolve(program, address) for address in range(start, start + 24)}
    assert {location[1] for location in found if location} <= {3, 4, 5, 6}
    assert {location[0] for location in found if location} == {str(tmp_path / "prog.c")}


def test_a_newly_compiled_program_is_not_taken_for_the_running_one(tmp_path: Path) -> None:
    program = build(tmp_path, "int main(void) { return 0; }\n", "-g")
    address = address_of(program, "main")
    listed = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    build_id = listed.stdout.partition("Build ID: ")[2].split()[0][:16]
    code = f"\t\t0\t@{build_id}\t{program}"
    assert words(code_location(code, address)) == "prog.c, line 1 (main)"
    program.unlink()  # as compilers do: somebody may run it
    build(tmp_path, "\n\nint main(void) { return 1; }\n", "-g")
    assert words(code_location(code, address)) == "prog"
    assert words(source(str(program), address_of(program, "main"))) == "prog.c, line 3 (main)"


def test_cells_by_the_name_of_their_source(tmp_path: Path) -> None:
    def at(name: str, cell: str) -> Any:
        program = build(tmp_path, f'#line 3 "{name}"\nint main(void) {{ return 0; }}\n', "-g")
        found = code_location(f"{cell}\t0\t@\t{program}", address_of(program, "main"))
        assert found is not None
        return words(found), found["cell_id"]

    assert at("cell", "4\tabc") == ("cell 4, line 3 (main)", "abc")
    assert at("cell 4", "4\tabc") == ("cell 4, line 3 (main)", "abc")
    assert at("cell 2", "4\tabc") == ("cell 2, line 3 (main)", None)
    assert at("helpers.c", "4\tabc") == ("helpers.c, line 3 (main)", None)


def test_a_file_that_is_no_binary_has_no_lines(tmp_path: Path) -> None:
    for text in (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + b"\xff" * 500, b"text"):
        (tmp_path / "file").write_bytes(text)
        assert resolve(tmp_path / "file", 5) is None
    assert resolve(tmp_path, 5) is None and resolve("/nowhere", 5) is None
    assert words(code_location("\t\t0\t@\t/nowhere", 5)) == "nowhere"
    assert code_location("\t\t0\t@\t/usr/lib/nothing.so", 5) is None


def test_a_damaged_binary_harms_nobody(tmp_path: Path) -> None:
    program = build(
        tmp_path, "static int f(int n) { return n; }\nint main(void) { return f(0); }\n", "-g"
    )
    whole = program.read_bytes()
    for nth in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[nth : nth + 8] = b"\xff" * 8
        program.write_bytes(damaged)
        resolve(program, 16)
        program.write_bytes(whole[:nth])
        resolve(program, 16)
