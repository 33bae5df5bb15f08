"""What all programs that measure have in common: engines that serve, and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sfm_kernel
from benchmarks import inbox
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import chunks, cpi, dot, pingpong, reductions
from sfm_kernel.lessons.__main__ import main
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row
from tests.lessons.engines import serving


@pytest.mark.parametrize("program", [chunks, cpi, dot])
def test_a_guest_cannot_serve(program: Any, world: str) -> None:
    with sfm_kernel.join(world, name="home", guest=True) as home:
        with pytest.raises(SFMError, match="'home' is not an engine"):
            program.serve(home)


@pytest.mark.parametrize(
    ("program", "options"),
    [(cpi, {}), (pingpong, {}), (reductions, {"processes": (2,)}), (inbox, {})],
)
def test_engines_that_do_not_serve_are_noticed(
    program: ModuleType, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setattr(program, "START_SECONDS", 0.2)
    name = program.__name__.rpartition(".")[2]
    with serving(world, 2) as home:
        with pytest.raises(SFMError, match=rf"{name}\.serve\(sfm\) first"):
            next(program.rows(home=home, **options))


def test_without_a_name_the_programs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert "cpi" in listed and "pi by numerical integration" in listed and "pingpong" in listed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("cpi --engines 0", "--engines: must be at least 1, not 0"),
        ("cpi --engines two", "'two' is not a whole number"),
        ("cpi --repeat 0", "--repeat: must be at least 1"),
        ("cpi --intervals 10,,20", "'' is not a whole number"),
        ("cpi --kernel fortran", "invalid choice: 'fortran'"),
        ("dot --engines 0", "--engines: must be at least 1, not 0"),
        ("dot --only telepathy", "no algorithm 'telepathy'; there are example 2"),
        ("dot --work sing", "invalid choice: 'sing'"),
        ("dot --lengths 10,0", "must be at least 1, not 0"),
        ("dot --tolerance 0", "must be above 0, not 0"),
        ("pingpong --engines 3", "invalid choice: 3"),
        ("pingpong --only pigeons", "no mechanism 'pigeons'; there are sockets, pickle"),
        ("pingpong --messages letter", "no message 'letter'; there are 3 attributes"),
        ("pingpong --seconds 0", "must be above 0, not 0"),
        ("pingpong --seconds soon", "'soon' is not a number"),
        ("reductions --processes 2,many", "'many' is not a whole number"),
        ("reductions --only guess", "no algorithm 'guess'"),
        ("reductions --transport pigeon", "invalid choice"),
        ("reductions --seconds 0", "must be above 0"),
        ("nonsense", "there is no 'nonsense', but cpi, pingpong"),
        ("targets", "need a checkout of sfm-kernel: `python -m benchmarks`"),
    ],
)
def test_bad_values_are_refused(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        main(line.split())
    assert status.value.code == 2
    assert says in capsys.readouterr().err


def test_a_missing_folder_is_noticed_before_measuring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cpi", "--json", str(tmp_path / "none/rows.json")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_an_error_while_measuring_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Iterator[Row]:
        yield {"us": 1.0}
        raise ValueError("a bug")

    monkeypatch.setattr(cpi, "plan", lambda options: [Part("wrong", fails, 1.0)])
    with pytest.raises(ValueError, match="a bug"):
        main(["cpi"])
