"""The notebook in a cluster's world: "home"."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ipyparallel.error import NoEnginesRegistered

from sfm_kernel import relay, serving
from sfm_kernel.errors import NameInUse, UnknownName, WorldGone
from sfm_kernel.jupyter import cluster as clusters
from sfm_kernel.jupyter import engine
from sfm_kernel.jupyter.limits import limit_buffering
from sfm_kernel.jupyter.places import notebook_site, running_clusters
from sfm_kernel.jupyter.settings import Settings
from sfm_kernel.jupyter.sites import LOOPBACK, Sites
from sfm_kernel.observe.record import ProvenDeadlock
from sfm_kernel.relay.view import RemoteView
from sfm_kernel.transport.base import Member, Name
from sfm_kernel.world import join

_KEPT = 20
"""Deadlocks that are remembered, for `%sfm record`."""


class Home:
    """A notebook's cluster, started here or connected to, and its place in the world.

    Attributes:
        sfm: the notebook's endpoint.
        ran: when a cell was last run on its engines (s since 1970), by its number and id.
        told: what was said about deadlocks, the latest of it.
        failed: when a cell on its engines was last stopped or failed, in nanoseconds; or 0.
    """

    def __init__(self, engines: clusters.Engines, site: str | None = None) -> None:
        self.sfm: Any = None
        self.failed = 0
        self._stopped = False
        self.ran: dict[tuple[int | None, str | None], float] = {}
        self.told: deque[ProvenDeadlock] = deque(maxlen=_KEPT)
        self._engines, self._site = engines, site
        self._process = os.getpid()
        self._tell_waiting: Callable[[Sequence[Name]], None] | None = None

    @classmethod
    def start(
        cls,
        names: Sequence[str],
        site: str | None = None,
        sites: Sites | None = None,
        settings: Settings | None = None,
    ) -> Home:
        """Start engines on this machine and join their world.

        Args:
            names: the engines' names by rank; "0", "1", … for engines without names.
            site: where they and this notebook are, if that is not the machine's.
            sites: where engines are in several sites; this notebook is in the first one.
            settings: the administrator's limits; without them the environment's.

        Raises:
            LimitReached: the user has too many engines. Nothing was started.
            WorldError: an engine could not join. Nothing keeps running.
        """
        site = sites.first if sites else site
        return cls(clusters.Engines.starting(names, site, sites, settings), site)._join()

    @classmethod
    def connect(cls, cluster_id: str | None = None, site: str | None = None) -> Home:
        """Join the world of a cluster that runs already.

        Args:
            site: where this notebook is; without it the engines', if the controller is on this
                machine, else the machine's.

        Raises:
            UnknownName: no such cluster, or several and none was named.
        """
        running = running_clusters()
        chosen = [one for one in running if cluster_id in (None, one.cluster_id)]
        if len(chosen) != 1:
            raise UnknownName(cluster_id, [one.cluster_id for one in running])
        return cls(clusters.Engines(chosen[0]), site)._join()

    @property
    def client(self) -> Any:
        """ipyparallel's client."""
        return self._engines.client

    @property
    def names(self) -> list[str]:
        """The engines' names by rank; empty if somebody else started them."""
        return self._engines.names

    @property
    def cluster(self) -> clusters.Engines:
        """The engines' cluster."""
        return self._engines

    @property
    def url(self) -> str | None:
        """Of the world's directory server; None where all its processes are on this machine."""
        return self._engines.url

    @property
    def own(self) -> bool:
        """Whether this notebook started the engines."""
        return self._engines.own

    @property
    def sites(self) -> Sites | None:
        """The sites that were started here."""
        return self._engines.sites

    def engines(self) -> list[Member]:
        """The living engines by rank."""
        return self._engines.living()

    def ended(self) -> list[str]:
        """The names of engines that were started here and do not live."""
        return self._engines.ended()

    def resolve(self, words: Sequence[str]) -> list[Member]:
        """The engines that the words name: ``A``, ``0``, ``0,2``, ``A,B``, ``0:2``, ``all``.

        Raises:
            UnknownName: one of them is no living engine.
        """
        living = self.engines()
        known: dict[str, Member] = {}
        for member in living:
            known |= {str(member.rank): member, str(member.name): member}
        found: list[Member] = []
        named = [word.strip(" '\"") for word in ",".join(words).strip("[]").split(",")]
        for word in list(filter(None, named)) or ["all"]:
            if span := re.fullmatch(r"(\d*):(\d*)", word):
                ranks = range(int(span[1] or 0), int(span[2] or sys.maxsize))
                found += [member for member in living if member.rank in ranks]
            elif word == "all":
                found += living
            elif word in known:
                found.append(known[word])
            else:
                raise UnknownName(word, [member.name for member in living])
        return list(dict.fromkeys(found))

    def check(self) -> None:
        """Raise WorldGone if cells cannot run: the controller or all engines have ended."""
        self.check_controller()
        if not self.engines():
            raise WorldGone("no engine is alive: `%sfm restart`, or `%sfm stop` and `%sfm start`")

    def check_running(self) -> None:
        """Raise WorldGone if this notebook has left the engines, whatever they would show."""
        if self._stopped:
            raise WorldGone(
                "this cell's engines were stopped before its end: `%sfm start`, and run it again"
            )

    def check_controller(self) -> None:
        """Raise WorldGone if no answer can come from the engines any more."""
        self._engines.check_controller()

    def restart(self, words: Sequence[str] = ()) -> list[Member]:
        """End engines, if they live, and start them again with their ranks and names.

        Args:
            words: names and ranks, also of the dead; all if empty.

        Raises:
            UnknownName: one of them is no engine that was started here.
        """
        self.check_controller()
        words = [word for text in words for word in text.split(",")]
        return self._engines.restart(self._engines.ranks(words))

    def rescale(self, count: int) -> None:
        """Have that many engines; see ``cluster.Engines.rescale``."""
        self._engines.rescale(count)

    @property
    def view(self) -> RemoteView:
        """What is known here of the world's processes on other machines."""
        view: RemoteView = self._engines.view
        return view

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Observers see that this notebook waits for engines; see ``show_waiting``."""
        with self.sfm.waiting_for_cell() as tell:
            self._tell_waiting = tell
            try:
                yield
            finally:
                self._tell_waiting = None

    def show_waiting(self, names: Sequence[Name]) -> None:
        """Tell observers which engines this notebook waits for, in ``waiting``."""
        if self._tell_waiting is not None:
            self._tell_waiting(names)

    def at_work(self) -> list[Name]:
        """The engines of which this notebook awaits an answer."""
        return [one.name for one in self.engines() if self.has_work(one)]

    def has_work(self, member: Member) -> bool:
        """Whether this notebook awaits an answer of that engine."""
        client = self.client
        engine = client._engines.get(member.info.get("engine_id"))
        return bool(engine is not None and client._outstanding_dict.get(engine))

    def stop(self) -> None:
        """End what was started here, even blocked engines; leave no process and no file.

        A cluster that was connected to is only left. Harmless when repeated.
        """
        if os.getpid() != self._process:  # a fork of the notebook's kernel exits
            return
        self._stopped = True
        atexit.unregister(self.stop)
        if self.sfm:
            self.sfm.close()
        self._engines.close()

    def _join(self) -> Home:
        """Join the world; engines that are to be started start meanwhile."""
        atexit.register(self.stop)
        try:
            self._engines.open()
            self.sfm = _join_as_home(self._engines, self._site)
            limit_buffering(self.sfm, self._engines.settings.memory_limit)
            if url := self._engines.url:  # so that observers elsewhere see this notebook
                relay.start(self._engines.world, url, self._engines.key, self.sfm.folder)
            self._engines.settle()
            serving.by_request(self.sfm, self._serve, self._interrupt)
        except BaseException:
            self.stop()
            raise
        return self

    def _serve(self, names: Sequence[Name]) -> None:
        """Ask engines to serve between cells; those that run one do when it has ended."""
        if identities := self._identities(names):
            self.client[identities].apply_async(engine.serve)

    def _interrupt(self, names: Sequence[Name]) -> None:
        """Send engines what Stop sends."""
        for identity in self._identities(names):
            # One by one: ipyparallel sends nothing at all where one of them has died.
            with suppress(KeyError, NoEnginesRegistered):
                self.client.send_signal("SIGINT", targets=[identity], block=False)

    def _identities(self, names: Sequence[Name]) -> list[int]:
        """What ipyparallel calls these engines; those that live."""
        return [one.info["engine_id"] for one in self.engines() if one.name in names]


def _join_as_home(engines: clusters.Engines, site: str | None) -> Any:
    where: dict[str, Any] = {"directory": engines.url, "key": engines.key}
    where["site"] = notebook_site(engines.connection, site)
    with _on_loopback(engines.sites is not None):
        return _join_by_a_free_name(engines.world, where)


@contextmanager
def _on_loopback(wanted: bool) -> Iterator[None]:
    """What joins meanwhile is reached from this machine only, unless the user says otherwise."""
    name = "SFM_HOST_IP"
    if not wanted or name in os.environ:
        yield
        return
    os.environ[name] = LOOPBACK
    try:
        yield
    finally:
        del os.environ[name]


def _join_by_a_free_name(world: str, where: dict[str, Any]) -> Any:
    number = 1
    while True:
        name = "home" if number == 1 else f"home{number}"
        try:
            return join(world, name=name, guest=True, **where)
        except NameInUse:  # another notebook
            number += 1
