"""The parsing of the words after %sfm and %%sfm; no process is started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError

from sfm_kernel.directory import Member
from sfm_kernel.errors import UnknownName, WorldAccess
from sfm_kernel.jupyter.cell import options
from sfm_kernel.jupyter.cluster import Engines
from sfm_kernel.jupyter.cluster_files import world_key, world_name
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.lessons import notebooks
from sfm_kernel.jupyter.starting import parse_engines

CONNECTION = {"key": "secret", "location": "here", "registration": 4711}


def member(rank: int, name: str | int) -> Member:
    return Member(f"{rank:032x}", rank, rank, name, 1, "host", "", "", {"engine_id": rank})


class Directory:
    """A notebook and three engines; the engine with rank 1 is dead."""

    def members(self) -> list[Member]:
        home = Member("f" * 32, 9, None, "home", 1, "host", "", "", {})
        return [home, member(2, 2), member(1, "B"), member(0, "A")]

    def alive(self, member: Member) -> bool:
        return member.rank != 1


@pytest.fixture
def home() -> Home:
    cluster: Any = SimpleNamespace(n=3)
    engines = Engines(cluster, ["A", "B", "2"])
    engines.directory = Directory()
    return Home(engines)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["0", "1", "2", "3"]),
        (["2"], ["0", "1"]),
        (["A", "B"], ["A", "B"]),
        (["worker_1"], ["worker_1"]),
    ],
)
def test_start_parses_names_and_numbers(words: list[str], names: list[str]) -> None:
    assert parse_engines(words) == (names, None, None)


def test_start_parses_sites() -> None:
    names, site, sites = parse_engines(["--sites", "X=1,Y=2", "A", "B", "C"])
    assert (names, site) == (["A", "B", "C"], None) and sites is not None and sites.total == 3
    assert parse_engines(["--sites=X=1,Y=2"])[0] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["3", "--sites", "X=1,Y=1"], "give only --sites"),
        (["--site", "X", "--sites", "X=1,Y=1"], "not both"),
        (["--sites", "X=200,Y=200"], "from 1 to 256"),
        (["--sites", "X"], "has no number"),
    ],
)
def test_start_refuses_wrong_sites(words: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_engines(words)


@pytest.mark.parametrize(
    "words",
    [["0"], ["-1"], ["100000"], ["2", "3"], ["A", "A"], ["A", "7"], ["A,B"], ["home"], ["all"]],
)
def test_start_refuses_and_says_what_it_takes(words: list[str]) -> None:
    with pytest.raises(UsageError, match="takes a number"):
        parse_engines(words)


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ([], [0, 2]),
        (["all"], [0, 2]),
        (["A"], [0]),
        (["0"], [0]),
        (["2,0"], [2, 0]),
        (["2", "A", "0"], [2, 0]),
        (["[0, 2]"], [0, 2]),
        (["1:"], [2]),
        ([":2"], [0]),
        ([":"], [0, 2]),
    ],
)
def test_words_that_name_engines(home: Home, words: list[str], ranks: list[int]) -> None:
    assert [engine.rank for engine in home.resolve(words)] == ranks


@pytest.mark.parametrize("word", ["B", "1", "C", "7", "home", "A:B", "-1"])
def test_a_dead_engine_is_no_target(home: Home, word: str) -> None:
    with pytest.raises(UnknownName) as caught:
        home.resolve([word])
    assert caught.value.known == ["A", 2]


def test_ended_engines_are_known(home: Home) -> None:
    assert home.cluster.ended() == ["B"]


def test_options_are_those_of_ipyparallel_between_names() -> None:
    args = options("A --noblock B --out result --progress-after 3 --group-outputs order")
    assert args.names == ["A", "B"]
    assert (args.block, args.save_name, args.groupby) == (False, "result", "order")
    assert args.progress_after_seconds == 3.0


def test_the_option_targets_names_engines_too() -> None:
    assert options("--targets 0,2").names == ["0,2"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--nonsense", "unrecognized arguments: --nonsense. `%sfm help` shows how to run cells"),
        ("--out", "expected one argument. `%sfm help`"),
        ("'A", "No closing quotation. `%sfm help`"),
        ("--progress-after soon", "invalid float value: 'soon'"),
        ("--out 3x", "--out takes the name of a variable, not '3x'"),
        ("--signal-on-interrupt STOP", "no signal STOP; SIGINT is what Stop sends"),
    ],
)
def test_a_wrong_option_is_told(line: str, said: str) -> None:
    with pytest.raises(UsageError, match="%%sfm: ") as caught:
        options(line)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_comma_too_many_names_nobody_else(home: Home) -> None:
    assert [engine.rank for engine in home.resolve(["A,"])] == [0]
    assert [engine.rank for engine in home.resolve([","])] == [0, 2]


def test_an_option_of_start_that_there_is_none_of_is_told() -> None:
    with pytest.raises(UsageError, match=r"no option --fast: it has --site, .*`%sfm help`"):
        parse_engines(["4", "--fast"])


def test_engines_and_clients_find_the_same_world() -> None:
    client = CONNECTION | {"registration": "tcp://127.0.0.1:4711", "ssh": ""}
    assert world_name(client) == world_name(CONNECTION)
    assert world_key(client) == world_key(CONNECTION)
    assert len(world_key(client)) == 32


@pytest.mark.parametrize("other", [{"key": "other"}, {"location": "there"}, {"registration": 1}])
def test_each_cluster_has_its_own_world(other: dict[str, object]) -> None:
    assert world_name(CONNECTION | other) != world_name(CONNECTION)


@pytest.mark.parametrize("more", [{}, {"curve_serverkey": "known to nobody"}])
def test_without_a_session_key_there_is_no_world(more: dict[str, str]) -> None:
    """The world would be open to all users."""
    with pytest.raises(WorldAccess, match="IPP_SESSION_KEY"):
        world_key(CONNECTION | {"key": ""} | more)


def test_notebooks_are_copied_and_nothing_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    notebooks([])
    first = "sfm-notebooks/00-first-steps.ipynb"
    assert capsys.readouterr().out.endswith(f" notebooks in sfm-notebooks: begin with {first}\n")
    assert Path(first).is_file()
    notebooks(["~/learn"])
    Path("learn/mine.txt").write_text("mine")
    Path("file").write_text("mine")
    for words, says in (
        (["a", "b"], "takes one folder, which may be new, not 'a b'"),
        (["--help"], "takes one folder, which may be new, not '--help'"),
        (["learn"], r"learn has other files or changed notebooks \(mine.txt\): name a folder"),
        (["."], r"other files or changed notebooks \(file, learn, sfm-notebooks\): name a folder"),
        (["file"], "file is a file: name a folder"),
        (["file/below"], r"file/below cannot be read or written \(Not a directory\): name another"),
    ):
        with pytest.raises(UsageError, match=f"^%sfm notebooks:? .*{says}"):
            notebooks(words)
    assert Path("learn/mine.txt").read_text() == Path("file").read_text() == "mine"
    assert not Path("a").exists()
