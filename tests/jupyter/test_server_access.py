"""Who may see worlds, and which ones."""

from __future__ import annotations

import http.cookiejar
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket

import sfm_kernel
from sfm_kernel.jupyter.server.worlds import UnknownWorld, Worlds
from tests.jupyter.server import TOKEN, Server, Stream, programs, server

pytestmark = [pytest.mark.keeps("one server for the whole module"), pytest.mark.fault]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("notebooks")) as running:
        yield running


def cookies(one: Server) -> str:
    """Those of a browser that has logged in."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(f"{one.url}api/status?token={TOKEN}").read()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


CALLS = {
    "sfm/worlds": ("GET", "POST"),
    "sfm/worlds/w/interrupt": ("POST",),
    "sfm/worlds/w/stop": ("POST",),
    "sfm/worlds/w/restart": ("POST",),
    "sfm/worlds/w/rescale": ("POST",),
    "sfm/worlds/w/trace": ("GET",),
}


@pytest.mark.parametrize("headers", [{}, {"Authorization": "token wrong"}], ids=["none", "wrong"])
@pytest.mark.parametrize(
    ("path", "method"), [(path, method) for path, methods in CALLS.items() for method in methods]
)
def test_no_call_without_the_token(
    one: Server, path: str, method: str, headers: dict[str, str]
) -> None:
    assert one.call(path, {}, method=method, headers=headers)[0] == 403


@pytest.mark.parametrize("query", ["", "?token=wrong"])
def test_no_stream_without_the_token(one: Server, query: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Stream(one.url.replace("http", "ws", 1) + "sfm/stream" + query)
    assert refused.value.status_code == 403


def test_another_site_cannot_use_the_cookies_of_a_browser(one: Server) -> None:
    url, cookie = one.url.replace("http", "ws", 1) + "sfm/stream", cookies(one)
    stream = Stream(url, cookie=cookie)  # the origin that the client sends is the server's own
    assert stream.next()["type"] == "worlds"
    stream.socket.close()
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Stream(url, cookie=cookie, origin="http://elsewhere.example")
    assert refused.value.status_code == 403
    # A form of another site brings the cookies, and not what only our pages can read of them.
    started = one.call("sfm/worlds", {"engines": 1}, method="POST", headers={"Cookie": cookie})
    assert started[0] == 403 and not one.worlds()


@pytest.mark.parametrize(
    "name", ["nowhere", "..", "%2e%2e", "..%2f..%2fetc", ".hidden", "a%00b", "x" * 65]
)
def test_a_name_that_is_no_world(one: Server, name: str) -> None:
    assert one.post(f"sfm/worlds/{name}/interrupt", {"uids": None})[0] in (400, 404)
    assert one.post(f"sfm/worlds/{name}/stop", {"uids": None})[0] in (400, 404)


def test_the_error_says_which_world(one: Server) -> None:
    status, answer = one.post("sfm/worlds/nowhere/interrupt", {})
    assert status == 404 and "no world 'nowhere'" in answer["message"]


def test_a_world_is_listed_while_somebody_lives_in_it(one: Server, world: str) -> None:
    with programs(world, A="sfm.recv(never=1)"):
        entry = one.worlds()[world]
        assert entry["title"] == world and entry["owner"] == "other" and entry["cluster"] is None
        assert entry["engines"] == 1 and entry["kernels"] == []
    assert world not in one.worlds()


def test_worlds_of_others_are_not_shown(monkeypatch: pytest.MonkeyPatch, world: str) -> None:
    worlds, real = Worlds(), os.lstat
    with sfm_kernel.join(world, "A") as sfm:
        folder = sfm.folder
        assert worlds.names() == [world] and worlds.find(world).folder == folder

        def foreign(path: Any, **options: Any) -> Any:
            status = real(path, **options)
            if path == folder:
                fields = list(status)
                fields[4] += 1  # st_uid
                return os.stat_result(fields)
            return status

        monkeypatch.setattr(os, "lstat", foreign)
        assert worlds.names() == []
        with pytest.raises(UnknownWorld):
            worlds.find(world)


def test_a_world_that_is_open_to_others_is_not_shown(world: str) -> None:
    worlds = Worlds()
    with sfm_kernel.join(world, "A") as sfm:
        os.chmod(sfm.folder, 0o755)
        assert worlds.names() == []
        with pytest.raises(UnknownWorld):
            worlds.find(world)
        os.chmod(sfm.folder, 0o700)
        assert worlds.names() == [world]


def test_a_link_is_no_world(world: str, sfm_dir: Path) -> None:
    worlds, link = Worlds(), sfm_dir / "link"
    with sfm_kernel.join(world, "A") as sfm:
        link.symlink_to(sfm.folder)
        try:
            assert worlds.names() == [world]
            with pytest.raises(UnknownWorld):
                worlds.find("link")
        finally:
            link.unlink()
