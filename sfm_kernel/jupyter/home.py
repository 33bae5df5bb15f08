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
from sfm_kernel.directory import Member, Name
from sfm_kernel.errors import UnknownName, WorldGone
from sfm_kernel.jupyter import cluster as clusters
from sfm_kernel.jupyter import engine
from sfm_kernel.jupyter.cluster_files import clusters_by_name, notebook_site
from sfm_kernel.jupyter.limits import limit_buffering
from sfm_kernel.jupyter.outputs import Outputs
from sfm_kernel.jupyter.settings import Settings
from sfm_kernel.jupyter.sites import LOOPBACK, Sites
from sfm_kernel.observe.record import ProvenDeadlock
from sfm_kernel.relay.view import RemoteView
from sfm_kernel.world import join

_MOST_DEADLOCKS = 20
"""Deadlocks that a notebook remembers, for `%sfm record`."""
_GONE = KeyError, NoEnginesRegistered
"""What ipyparallel's client raises if an engine has just died."""


class Home:
    """A notebook's membership in the world of a cluster that it started or connected to.

    Attributes:
        cluster: the engines' cluster. sfm: the notebook's endpoint.
        ran: the time at which each cell last ran on the engines (s since 1970), by number and id.
        deadlocks: the latest reports of deadlocks. outputs: what engines print, for `%sfm output`.
        failed: the time at which a cell on the engines last failed or was stopped (ns); or 0.
    """

    def __init__(self, engines: clusters.Engines, site: str | None = None) -> None:
        self.sfm: Any = None
        self.failed = 0
        self.outputs = Outputs()
        self._stopped = False
        self.ran: dict[tuple[int | None, str | None], float] = {}
        self.deadlocks: deque[ProvenDeadlock] = deque(maxlen=_MOST_DEADLOCKS)
        self.cluster, self._site = engines, site
        self._process = os.getpid()
        self._publish_waiting: Callable[[Sequence[Name]], None] | None = None
        self.is_observed = False  # see ``waiting``

    @classmethod
    def start(
        cls,
        names: Sequence[str],
        site: str | None = None,
        sites: Sites | None = None,
        settings: Settings | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Home:
        """Start engines on this machine and join their world; see ``Engines.starting``.

        Args:
            site: the site of the engines and this notebook; without it the machine's.
            sites: the sites of the engines, if there are several; this notebook joins the first.
            progress: called with the number of engines that have come, whenever it grows.

        Raises:
            LimitReached: the user has too many engines. Nothing was started.
            WorldError: an engine could not join. Nothing runs.
        """
        site = sites.first if sites else site
        return cls(clusters.Engines.starting(names, site, sites, settings), site)._join(progress)

    @classmethod
    def connect(cls, name: str | None = None, site: str | None = None) -> Home:
        """Join the world of a cluster that is already running.

        Args:
            name: the notebook that has started the cluster, with or without ``.ipynb``; or the
                cluster's id, which is necessary if several notebooks have that name.
            site: the site of this notebook; without it the engines' site, if the controller is on
                this machine, otherwise the machine's.

        Raises:
            UnknownName: there is no such cluster; or there are several, and none was named.
        """
        running = clusters_by_name()
        chosen = [
            cluster
            for known, cluster in running.items()
            if name in (None, known, known.removesuffix(".ipynb"), cluster.cluster_id)
        ]
        if len(chosen) != 1:
            raise UnknownName(name, list(running))
        return cls(clusters.Engines(chosen[0]), site)._join()

    def has_told(self, title: str, since: float) -> bool:
        """Whether the user has read about the deadlock with this title, since that time."""
        return any(found.time >= since and title in found.text for found in self.deadlocks)

    @property
    def client(self) -> Any:
        """ipyparallel's client."""
        return self.cluster.client

    def engines(self) -> list[Member]:
        """The living engines by rank."""
        return self.cluster.living()

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
        self.cluster.check_controller()
        if not self.engines():
            raise WorldGone("no engine is alive: `%sfm restart`, or `%sfm stop` and `%sfm start`")

    def check_running(self) -> None:
        """Raise WorldGone if this notebook has left the engines."""
        if self._stopped:
            raise WorldGone(
                "this cell's engines were stopped before it ended: `%sfm start`, and run it again"
            )

    def restart(self, words: Sequence[str] = ()) -> list[Member]:
        """End engines, if they live, and start them again with their ranks and names.

        Args:
            words: names and ranks, those of dead engines included; all if empty.

        Raises:
            UnknownName: a word names no engine that this notebook started.
        """
        self.cluster.check_controller()
        words = [word for text in words for word in text.split(",")]
        return self.cluster.restart(self.cluster.ranks(words))

    @property
    def view(self) -> RemoteView:
        """The view of the world's processes on other machines."""
        return self.cluster.view

    @contextmanager
    def waiting(self, observed: bool = False) -> Iterator[None]:
        """Publish to observers that this notebook waits for engines; see ``show_waiting``.

        Args:
            observed: the caller watches for deadlocks meanwhile, or the user wants nobody to do so.
        """
        if self._publish_waiting is not None:  # within another wait
            yield
            return
        with self.sfm.waiting_for_cell() as publish:
            self._publish_waiting, self.is_observed = publish, observed
            try:
                yield
            finally:
                self._publish_waiting = None

    def show_waiting(self, names: Sequence[Name]) -> None:
        """Publish which engines this notebook waits for, within ``waiting``."""
        if self._publish_waiting is not None:
            self._publish_waiting(names)

    def at_work(self) -> list[Name]:
        """The engines from which this notebook awaits an answer."""
        engines, outstanding = self.client._engines, self.client._outstanding_dict
        return [
            member.name
            for member in self.engines()
            if outstanding.get(engines.get(member.info.get("engine_id")))
        ]

    def stop(self) -> None:
        """Leave the world, and end an owned cluster: even blocked engines, all processes and files.

        A cluster that the notebook only connected to goes on. Harmless when repeated.
        """
        if os.getpid() != self._process:  # an exiting fork of the notebook's kernel
            return
        self._stopped = True
        atexit.unregister(self.stop)
        if self.sfm:
            self.sfm.close()
        self.cluster.close()

    def _join(self, progress: Callable[[int], None] | None = None) -> Home:
        """Join the world while owned engines start."""
        atexit.register(self.stop)
        try:
            self.cluster.open()
            self.sfm = _join_as_home(self.cluster, self._site)
            limit_buffering(self.sfm, self.cluster.settings.memory_limit)
            if url := self.cluster.url:  # observers on other machines then see this notebook
                relay.start(self.cluster.world, url, self.cluster.key, self.sfm.folder)
            self.cluster.settle(progress)
            serving.by_request(self.sfm, self._serve, self._interrupt)
        except BaseException:
            self.stop()
            raise
        return self

    def _serve(self, names: Sequence[Name]) -> None:
        """Ask engines to serve between cells; an engine that runs a cell begins when it ends."""
        for identity in self._identities(names):
            with suppress(*_GONE):
                self.client[[identity]].apply_async(engine.serve)

    def _interrupt(self, names: Sequence[Name]) -> None:
        """Send engines SIGINT, as Stop does."""
        for identity in self._identities(names):
            # One by one: ipyparallel sends nothing at all if one of them has died.
            with suppress(*_GONE):
                self.client.send_signal("SIGINT", targets=[identity], block=False)

    def _identities(self, names: Sequence[Name]) -> list[int]:
        """ipyparallel's ids of those of these engines that live."""
        return [member.info["engine_id"] for member in self.engines() if member.name in names]


def _join_as_home(engines: clusters.Engines, site: str | None) -> Any:
    options: dict[str, Any] = {"directory": engines.url, "key": engines.key}
    options["site"] = notebook_site(engines.connection, site)
    with _on_loopback(engines.sites is not None):
        return join(engines.world, guest=True, **options)


@contextmanager
def _on_loopback(enabled: bool) -> Iterator[None]:
    """Let an endpoint that joins meanwhile use the loopback address, unless the user sets one."""
    name = "SFM_HOST_IP"
    if not enabled or name in os.environ:
        yield
        return
    os.environ[name] = LOOPBACK
    try:
        yield
    finally:
        del os.environ[name]
