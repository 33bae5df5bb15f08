"""The users who may see worlds, and the worlds that they may see."""

from __future__ import annotations

import contextlib
import http.client
import http.cookiejar
import json
import os
import sys
import urllib.request
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
import websocket
import zmq
import zmq.asyncio
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from traitlets.config import Config

import sfm_kernel
from sfm_kernel.jupyter.server import kernels
from sfm_kernel.jupyter.server.sampler import UnknownWorld, Worlds
from sfm_kernel.jupyter.server.stream import PARTS, BadSubscription, Subscription
from tests.jupyter.notebook import PATIENCE, descendants
from tests.jupyter.server import TOKEN, Server, Stream, programs

pytestmark = [pytest.mark.keeps("one server for the whole module"), pytest.mark.fault]


def cookies(shared: Server) -> str:
    """The cookies of a browser that has logged in."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(f"{shared.url}api/status?token={TOKEN}").read()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def lists(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    names = st.sampled_from(("type", "world", "parts", "rate", "watch", ""))
    return st.lists(children, max_size=5) | st.dictionaries(names, children, max_size=5)


CALLS = {
    "sfm/worlds": ("GET", "POST"),
    "sfm/worlds/w/interrupt": ("POST",),
    "sfm/worlds/w/stop": ("POST",),
    "sfm/worlds/w/restart": ("POST",),
    "sfm/worlds/w/rescale": ("POST",),
    "sfm/worlds/w/trace": ("GET",),
    "sfm/programs": ("POST",),
    "sfm/runs": ("DELETE",),
    "sfm/runs/1-0": ("DELETE",),
    "sfm/notebooks": ("POST",),
    "sfm/classroom/worlds": ("GET",),
    "sfm/classroom/session": ("GET",),
    "sfm/classroom/exercises": ("GET",),
}


@pytest.mark.parametrize("headers", [{}, {"Authorization": "token wrong"}], ids=["none", "wrong"])
@pytest.mark.parametrize(
    ("path", "method"), [(path, method) for path, methods in CALLS.items() for method in methods]
)
def test_no_call_without_the_token(
    shared: Server, path: str, method: str, headers: dict[str, str]
) -> None:
    assert shared.call(path, {}, method=method, headers=headers)[0] == 403


def test_no_record_without_the_token(shared: Server) -> None:
    status, page = shared.call("sfm/runs/1-0/record", headers={})
    assert status == 200 and b"login" in page.lower() and b"no longer kept" not in page


@pytest.mark.parametrize("query", ["", "?token=wrong"])
def test_no_stream_without_the_token(shared: Server, query: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Stream(shared.url.replace("http", "ws", 1) + "sfm/stream" + query)
    assert refused.value.status_code == 403


def test_another_site_cannot_use_the_cookies_of_a_browser(shared: Server) -> None:
    url, cookie = shared.url.replace("http", "ws", 1) + "sfm/stream", cookies(shared)
    stream = Stream(url, cookie=cookie)  # the origin that the client sends is the server's own
    assert stream.next()["type"] == "worlds"
    stream.socket.close()
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Stream(url, cookie=cookie, origin="http://elsewhere.example")
    assert refused.value.status_code == 403
    # A form of another site brings the cookies, and not what only our pages can read of them.
    started = shared.call("sfm/worlds", {"engines": 1}, method="POST", headers={"Cookie": cookie})
    assert started[0] == 403 and not shared.worlds()


def test_a_name_that_leads_here_meanwhile_is_not_served(shared: Server) -> None:
    """DNS rebinding: to the browser, the server belongs to another site, without cookies."""
    headers = {"Authorization": f"token {TOKEN}", "Host": "rebound.example"}
    assert shared.call("sfm/worlds", headers=headers)[0] == 403
    url = shared.url.replace("http", "ws", 1) + f"sfm/stream?token={TOKEN}"
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Stream(url, host="rebound.example", origin="http://rebound.example")
    assert refused.value.status_code == 403


VALUES = [None, True, 0, -1, 257, 10**30, 1.5, 1e300, "", "A", "\ud800", "\0", [], {}, [[]], [None]]
VALUES += [["A", "A"], ["A;B"], ["home"], ["x" * 100_000 + "!"], {"uids": None}, "y" * 100_000]
FIELDS = ("engines", "names", "uids", "do", "\0", "")
RAW = [b"", b"{", b"[" * 200_000, b'{"a":' * 100_000, b"\xff\xfe", b"NaN", b"\0" * 1000, b"null"]
WORLDS = ("nowhere", "..", "%2e%2e", "a%00b", "%ff", "x" * 65, "a%0ab", "*", "")
ACTIONS = ("interrupt", "stop", "restart", "rescale", "trace", "start", "..%2f", "")


def malformed(random: Random) -> tuple[str, str, bytes]:
    """Method, path and body of a meaningless request with the right token."""
    method = random.choice(("GET", "POST", "POST", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
    path = "sfm/worlds"
    if random.random() < 0.8:
        path += f"/{random.choice(WORLDS)}/{random.choice(ACTIONS)}"
    sent: object = {name: random.choice(VALUES) for name in random.sample(FIELDS, 3)}
    if random.random() < 0.2:
        sent = random.choice(VALUES)
    body = json.dumps(sent).encode() if random.random() < 0.8 else random.choice(RAW)
    if random.random() < 0.1:
        body = body[: random.randrange(len(body) + 1)]
    return method, path, body


def test_requests_that_mean_nothing_are_refused(shared: Server, effort: int) -> None:
    random, there = Random(13), urlsplit(shared.url)
    for _ in range(300 * effort):
        method, path, body = malformed(random)
        connection = http.client.HTTPConnection(there.netloc, timeout=PATIENCE)
        with contextlib.closing(connection):
            headers = {"Authorization": f"token {TOKEN}"}
            connection.request(method, there.path + path, body, headers)
            status = connection.getresponse().status
        seen = (method, path) == ("GET", "sfm/worlds") or method == "OPTIONS"
        done = status < 300 and not seen  # there are redirections, too
        assert not done and status < 500, (method, path, body[:200], status)
    assert not shared.worlds() and not descendants(shared.process.pid)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lists))
def test_any_text_to_the_stream_is_a_subscription_or_an_error(sent: object) -> None:
    for text in (json.dumps(sent), json.dumps({"type": "watch", "world": None, "parts": sent})):
        with contextlib.suppress(BadSubscription):
            assert Subscription.parse(text).parts <= set(PARTS)


@pytest.mark.parametrize(
    "name", ["nowhere", "..", "%2e%2e", "..%2f..%2fetc", ".hidden", "a%00b", "x" * 65]
)
def test_a_name_that_is_no_world(shared: Server, name: str) -> None:
    assert shared.post(f"sfm/worlds/{name}/interrupt", {"uids": None})[0] in (400, 404)
    assert shared.post(f"sfm/worlds/{name}/stop", {"uids": None})[0] in (400, 404)


def test_the_error_says_which_world(shared: Server) -> None:
    status, answer = shared.post("sfm/worlds/nowhere/interrupt", {})
    assert status == 404 and "no world 'nowhere'" in answer["message"]


def test_a_stranger_hears_nothing_of_a_notebook_s_cells(shared: Server) -> None:
    """Outputs show what engines print: no other user reaches the sockets, which also use CURVE."""
    kernel = shared.done("api/kernels", {"name": "python3"})["id"]
    client = client_of(kernel)
    assert client.transport == "ipc"
    assert not os.stat(os.path.dirname(client.ip)).st_mode & 0o077
    with zmq.Context() as context, context.socket(zmq.SUB) as stranger:
        stranger.subscribe(b"")
        stranger.connect(f"ipc://{client.ip}-{client.iopub_port}")
        said: list[Any] = []
        for number in range(1, 6):  # in the meantime it is connected
            client.execute_interactive(
                "print('said', 'aloud')",
                allow_stdin=False,
                timeout=PATIENCE,
                output_hook=lambda message: said.append(message["content"]),
            )
            assert said.count({"name": "stdout", "text": "said aloud\n"}) == number
            assert not stranger.poll(100), stranger.recv_multipart()
    client.stop_channels()
    assert shared.call(f"api/kernels/{kernel}", method="DELETE")[0] == 204


def test_a_kernel_on_unix_sockets_is_interrupted_and_restarted(shared: Server) -> None:
    kernel = shared.done("api/kernels", {"name": "python3"})["id"]
    client = client_of(kernel)
    before = shared.get(f"api/kernels/{kernel}")[1]["id"]
    # In steps: Python notices no signal that comes when it has begun to sleep, but does not yet.
    rests = "while True: time.sleep(0.1)"
    asked = client.execute(f"import time\nprint('rests', flush=True)\n{rests}")
    # The cell's own words: the debugger's, at the start, are no sign that the cell runs.
    while client.get_iopub_msg(timeout=PATIENCE)["content"].get("text") != "rests\n":
        pass
    assert shared.post(f"api/kernels/{kernel}/interrupt", {})[0] == 204
    while (answer := client.get_shell_msg(timeout=PATIENCE))["parent_header"]["msg_id"] != asked:
        pass
    assert answer["content"]["ename"] == "KeyboardInterrupt"
    for _ in range(2):
        assert shared.done(f"api/kernels/{kernel}/restart", {})["id"] == before
        client.stop_channels()
        client = client_of(kernel)
        said = client.execute_interactive("1 / 0", timeout=PATIENCE, output_hook=lambda _: None)
        assert said["content"]["ename"] == "ZeroDivisionError"
    client.stop_channels()
    assert shared.call(f"api/kernels/{kernel}", method="DELETE")[0] == 204
    assert not [name for name in os.listdir(os.path.dirname(client.ip)) if kernel in name]


def client_of(kernel: str) -> Any:
    """A client of a server's kernel, once that answers. ``wait_for_ready`` takes it for dead if it
    does not within a second or two, which a busy machine needs to start one."""
    client = BlockingKernelClient()
    client.load_connection_file(f"{os.environ['JUPYTER_RUNTIME_DIR']}/kernel-{kernel}.json")
    client.start_channels()
    while not client.iopub_channel.msg_ready():  # until what it publishes comes, too
        client.kernel_info(reply=True, timeout=PATIENCE)
    return client


@pytest.mark.parametrize(
    ("settings", "spec", "transport"),
    [
        ({}, {}, "ipc"),
        ({"KernelManager": {"transport": "tcp"}}, {}, "tcp"),
        ({"ServerKernelManager": {"ip": "127.0.0.1"}}, {}, "tcp"),
        ({}, {"argv": ["R", "-e", "IRkernel::main()"]}, "tcp"),
        ({}, {"argv": ["docker", "run", "image", "python", "-m", "ipykernel_launcher"]}, "tcp"),
        ({}, {"metadata": {"kernel_provisioner": {"provisioner_name": "far"}}}, "tcp"),
    ],
)
def test_which_kernels_get_unix_sockets(
    tmp_path: Path, settings: dict[str, Any], spec: dict[str, Any], transport: str
) -> None:
    context = zmq.asyncio.Context.instance()
    manager = AsyncMappingKernelManager(config=Config(settings), context=context)
    kernels.protect(manager)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    folder = tmp_path / "specs" / "one"
    folder.mkdir(parents=True)
    content = {"argv": argv, "display_name": "one", "language": "any"} | spec
    (folder / "kernel.json").write_text(json.dumps(content))
    specs = KernelSpecManager(kernel_dirs=[str(folder.parent)])

    def make(name: str = "kernel") -> Any:
        path = str(tmp_path / f"{name}.json")
        return manager.kernel_manager_factory(
            parent=manager, kernel_name="one", connection_file=path, kernel_spec_manager=specs
        )

    tmp_path.chmod(0o700)
    assert make().transport == transport
    assert make("x" * 100).transport == "tcp", "the path is too long"
    tmp_path.chmod(0o755)
    assert make().transport == "tcp", "others could connect"


def test_a_world_is_listed_while_somebody_lives_in_it(shared: Server, world: str) -> None:
    with programs(world, A="sfm.recv(never=1)"):
        entry = shared.worlds()[world]
        assert entry["title"] == world and entry["owner"] == "other" and entry["cluster"] is None
        assert entry["engines"] == 1 and entry["kernels"] == []
    assert world not in shared.worlds()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_worlds_of_others_are_not_shown(world: str) -> None:
    worlds = Worlds()
    with sfm_kernel.join(world, "A") as sfm:
        folder = sfm.folder
        assert worlds.names() == [world] and worlds.find(world).folder == folder
        os.chown(folder, 4242, 4242)
        assert worlds.names() == []
        with pytest.raises(UnknownWorld):
            worlds.find(world)
        os.chown(folder, 0, 0)
        assert worlds.names() == [world]


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
