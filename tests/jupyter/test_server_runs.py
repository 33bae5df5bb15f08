"""Finished runs: the server lists them, serves their records, and removes them."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfm_kernel.finished_runs import keep
from tests.jupyter.server import TOKEN, Server, server

pytestmark = pytest.mark.keeps("one server for the whole module")


@pytest.fixture(scope="module")
def lister(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a user who has kept nothing yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with server(tmp_path_factory.mktemp("notebooks")) as running:
            yield running


def end(program: str) -> None:
    about = {"program": program, "ranks": 4, "time": 1.0, "end": "done"}
    keep(about, lambda path: Path(path).write_text(f"<p>{program}"), 10)


def test_panels_see_what_is_kept(lister: Server) -> None:
    with lister.stream() as first:
        assert first.until("runs") == []
        end("a.py")
        (a,) = first.until("runs")
        assert a["program"] == "a.py"
        end("b.py")
        with lister.stream() as second:
            for stream in (first, second):
                found = stream.until("runs", lambda runs: len(runs) == 2)
                assert [run["program"] for run in found] == ["b.py", "a.py"]
        assert lister.call(f"sfm/runs/{a['id']}", method="DELETE")[0] == 204
        (b,) = first.until("runs")
        assert b["program"] == "b.py"
        assert lister.call("sfm/runs", method="DELETE")[0] == 204
        assert first.until("runs") == []
        assert lister.get(f"sfm/runs/{b['id']}/record")[0] == 404


def test_a_record_has_an_origin_of_its_own(lister: Server) -> None:
    end("c.py")
    with lister.stream() as stream:
        run = stream.until("runs", bool)[0]
    request = urllib.request.Request(f"{lister.url}sfm/runs/{run['id']}/record?token={TOKEN}")
    with urllib.request.urlopen(request) as answer:
        assert answer.read() == b"<p>c.py"
        policy = answer.headers["Content-Security-Policy"].split("; ")
        assert "sandbox allow-scripts" in policy and "frame-ancestors 'self'" in policy
        assert answer.headers["Content-Type"] == "text/html; charset=UTF-8"


@pytest.mark.parametrize("name", ["..", "1-0", "..%2f..%2fetc", "0", "x", "%00"])
def test_other_names_lead_nowhere(lister: Server, name: str) -> None:
    end("d.py")
    assert lister.get(f"sfm/runs/{name}/record")[0] in (404, 400)
    assert lister.call(f"sfm/runs/{name}", method="DELETE")[0] in (204, 404, 400)
    with lister.stream() as stream:
        assert stream.until("runs", bool)[0]["program"] == "d.py"
