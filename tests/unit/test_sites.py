"""A process's site: valid names, and their sources."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from IPython.core.error import UsageError

import sfm_kernel
from sfm_kernel import BadName, Endpoint, UnknownName
from sfm_kernel.directory import JoinRequest, Member, Table, check_site, site_of_host
from sfm_kernel.directory.sites import are_worth_showing
from sfm_kernel.jupyter.cluster_files import engine_site, notebook_site
from sfm_kernel.jupyter.starting import parse_site
from sfm_kernel.jupyter.tables import status_table
from sfm_kernel.observe import snapshot

BAD = ["", "two words", "tab\t", "line\n", "\x07", "x" * 65, "nothing\u200bseen", 7, b"lyon"]


Pair = tuple[Endpoint, Endpoint]


@pytest.fixture
def pair(world: str) -> Iterator[Pair]:
    with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "B", site="lyon") as b:
        yield a, b


def test_a_process_is_at_its_machine_or_at_the_given_site(pair: Pair) -> None:
    a, b = pair
    assert (a.site, b.site) == (site_of_host(socket.gethostname()), "lyon")
    assert (a.site_of("B"), a.site_of(1), b.site_of("A")) == ("lyon", "lyon", a.site)
    with pytest.raises(UnknownName, match="no process is named 'C'"):
        a.site_of("C")
    with pytest.raises(TypeError, match="a name or a rank"):
        a.site_of(["A"])  # type: ignore[arg-type]
    assert [member.site for member in a.members()] == [a.site, "lyon"]


def test_the_environment_tells_it(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_SITE", "Zürich-2")
    with sfm_kernel.join(world) as first, sfm_kernel.join(world, site="lyon") as second:
        assert (first.site, second.site) == ("Zürich-2", "lyon")
    monkeypatch.setenv("SFM_SITE", "two words")
    with pytest.raises(BadName, match=r"SFM_SITE is 'two words'.*in one word"):
        sfm_kernel.join(world)
    monkeypatch.setenv("SFM_SITE", "")
    with sfm_kernel.join(world) as sfm:
        assert sfm.site == site_of_host(socket.gethostname())


@pytest.mark.parametrize("site", BAD)
def test_invalid_names_of_sites_are_refused(world: str, site: str) -> None:
    with pytest.raises(BadName, match="site"):
        sfm_kernel.join(world, site=site)
    with pytest.raises(BadName, match="--site"):
        check_site(site, "--site")
    if site != "":  # which stands for the machine's own
        with pytest.raises(BadName):
            JoinRequest("0" * 32, 1, "here", "/s", "", site=site)


def test_every_machine_has_one() -> None:
    sites = {"node-7": "node-7", "a b\n": "ab", " ": "localhost", "x" * 100: "x" * 64}
    assert {host: site_of_host(host) for host in sites} == sites


def test_a_table_without_sites_is_read_as_machines() -> None:
    member = Member("0" * 32, 0, 0, 0, 1, "here", "/s", "")
    assert member.site == "here" and Member.from_json(member.to_json()) == member
    record = {key: value for key, value in member.to_json().items() if key != "site"}
    text = json.dumps({"next_slot": 1, "members": [record], "departed": []})
    assert Table.loads(text.encode()).members[0].site == "here"


def test_observers_see_it(pair: Pair) -> None:
    processes = snapshot(pair[0])["processes"]
    assert [process["site"] for process in processes] == [pair[0].site, "lyon"]
    assert status_table(processes).headings[:4] == ["name", "rank", "site", "state"]
    assert [row[2] for row in status_table(processes).rows] == [pair[0].site, "lyon"]
    alone = processes[:1]
    assert not are_worth_showing(alone) and "site" not in status_table(alone).headings
    assert are_worth_showing(processes[1:])  # somebody has named it


def test_magics_take_it_from_their_words() -> None:
    assert parse_site("start", ["4"]) == (["4"], None)
    assert parse_site("start", ["A", "--site", "lyon", "B"]) == (["A", "B"], "lyon")
    assert parse_site("start", ["--site=lyon"]) == ([], "lyon")
    for words in (["--site"], ["--site="], ["--site", "two words"]):
        with pytest.raises(UsageError, match="--site"):
            parse_site("start", words)


def test_engines_are_where_their_cluster_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here = {"location": socket.gethostname()}
    there = {"location": "elsewhere", "sfm_site": "lyon"}
    assert engine_site(here) is None and notebook_site(here, None) is None
    assert engine_site(there) == "lyon"
    assert notebook_site(there, None) is None  # it may be anywhere
    assert notebook_site(there | here, None) == "lyon"
    assert notebook_site(there | here, "oslo") == "oslo"
    with pytest.raises(BadName, match="controller's SFM_SITE"):
        engine_site({"sfm_site": "two words"})
    monkeypatch.setenv("SFM_SITE", "oslo")
    assert engine_site(there) == notebook_site(there | here, None) == "oslo"
