"""The notebook in a cluster's world: "home"."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from ipyparallel.error import CompositeError

import sfm_kernel
from sfm_kernel.directory import open_directory, remove_world
from sfm_kernel.errors import NameInUse, SFMError, UnknownName, WorldError, WorldGone
from sfm_kernel.jupyter import cluster as clusters
from sfm_kernel.jupyter import engine
from sfm_kernel.jupyter.places import DIRECTORY, world_key, world_name
from sfm_kernel.transport.base import Member


class Home:
    """A notebook's cluster, started here or connected to, and its place in the world.

    Attributes:
        sfm: the notebook's endpoint.
        client: ipyparallel's client.
        names: the engines' names by rank; empty if somebody else started them.
    """

    def __init__(self, cluster: Any, names: Sequence[str] = ()) -> None:
        self.cluster, self.names = cluster, list(names)
        self.client: Any = None
        self.sfm: Any = None
        self._directory: Any = None
        self._world = ""
        self._process = os.getpid()

    @classmethod
    def start(cls, names: Sequence[str]) -> Home:
        """Start engines on this machine and join their world.

        Args:
            names: the engines' names by rank; "0", "1", … for engines without names.

        Raises:
            WorldError: an engine could not join. Nothing keeps running.
        """
        home = cls(clusters.start_controller(len(names)), names)
        return home._join(range(len(names)))

    @classmethod
    def connect(cls, cluster_id: str | None = None) -> Home:
        """Join the world of a cluster that runs already.

        Raises:
            UnknownName: no such cluster, or several and none was named.
        """
        running = clusters.running_clusters()
        chosen = [one for one in running if cluster_id in (None, one.cluster_id)]
        if len(chosen) != 1:
            raise UnknownName(cluster_id, [one.cluster_id for one in running])
        return cls(chosen[0])._join([])

    @property
    def own(self) -> bool:
        """Whether this notebook started the engines."""
        return bool(self.names)

    def engines(self) -> list[Member]:
        """The living engines by rank."""
        ranked = {one.rank: one for one in self._directory.members() if one.rank is not None}
        return [ranked[rank] for rank in sorted(ranked) if self._directory.alive(ranked[rank])]

    def ended(self) -> list[str]:
        """The names of engines that were started here and do not live."""
        living = {member.rank for member in self.engines()}
        return [name for rank, name in enumerate(self.names) if rank not in living]

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
        for word in ",".join(words).strip("[]").split(","):
            word = word.strip(" '\"")
            if span := re.fullmatch(r"(\d*):(\d*)", word):
                ranks = range(int(span[1] or 0), int(span[2] or sys.maxsize))
                found += [member for member in living if member.rank in ranks]
            elif word in ("", "all"):
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

    def check_controller(self) -> None:
        """Raise WorldGone if no answer can come from the engines any more."""
        controller = self.cluster.controller
        # For a cluster of another notebook, ipyparallel learns of its end between our cells only.
        process = getattr(controller, "process", None)
        if controller.state == "after" or (process is not None and not process.is_running()):
            raise WorldGone("the cluster's controller has ended: `%sfm stop`, then `%sfm start`")

    def restart(self, words: Sequence[str] = ()) -> list[Member]:
        """End engines, if they live, and start them again with their ranks and names.

        Args:
            words: names and ranks, also of the dead; all if empty.

        Raises:
            UnknownName: one of them is no engine that was started here.
        """
        self.check_controller()
        known = {name: rank for rank, name in enumerate(self.names)}
        known |= {str(rank): rank for rank in range(len(self.names))}
        words = [word for text in words for word in text.split(",")]
        for word in words:
            if word not in known:
                raise UnknownName(word, self.names)
        ranks = sorted({known[word] for word in words or known})
        living = [member for member in self.engines() if member.rank in ranks]
        clusters.end_engines(self.cluster, self.client, ranks, living)
        clusters.wait_for_engines(self.client, ranks, self._launch(ranks))
        self._verify(ranks)
        return [member for member in self.engines() if member.rank in ranks]

    def stop(self) -> None:
        """End what was started here, even blocked engines; leave no process and no file.

        A cluster that was connected to is only left. Harmless when repeated.
        """
        if os.getpid() != self._process:  # a fork of the notebook's kernel exits
            return
        atexit.unregister(self.stop)
        deserted = self._is_deserted()
        if self.sfm:
            self.sfm.close()
        if self._directory:
            self._directory.close()
        if self.client:
            self.client.close(linger=0)
        if self.own:
            clusters.end_cluster(self.cluster)
        if self._world and deserted:
            remove_world(self._world)

    def _is_deserted(self) -> bool:
        """Whether no engine lives, or none will after this notebook has left."""
        try:
            return self.own or not self._directory or not self.engines()
        except SFMError:  # the directory's server has ended
            return True

    def _join(self, ranks: Sequence[int]) -> Home:
        """Start engines if there are ``ranks``, and join their world."""
        atexit.register(self.stop)
        try:
            if ranks:
                launcher = self._launch(ranks)
            self.client = self.cluster.connect_client_sync()
            connection = clusters.connection(self.cluster)
            self._world, key = world_name(connection), world_key(connection)
            url = connection.get(DIRECTORY)
            self._directory = open_directory(self._world, create=True, url=url, key=key)
            self.sfm = _join_as_home(self._world, url, key)
            if ranks:
                clusters.wait_for_engines(self.client, ranks, launcher)
                self._verify(ranks)
            else:
                # Only those: an engine that runs a cell would not answer before its end.
                known = {one.info.get("engine_id") for one in self._directory.members()}
                self._verify([identity for identity in self.client.ids if identity not in known])
        except BaseException:
            self.stop()
            raise
        return self

    def _launch(self, ranks: Sequence[int]) -> Any:
        named = [name for name in self.names if not name.isdigit()]
        return clusters.start_engines(self.cluster, ranks, {"SFM_NAMES": ",".join(named)})

    def _verify(self, identities: Sequence[int]) -> None:
        """Ask engines whether they joined; IPython would only log that one did not."""
        if not identities:
            return
        try:
            for _ in range(5):
                answers = self.client[list(identities)].apply_async(engine.report)
                reports = answers.get(timeout=clusters.PATIENCE)
                if answers.wait_for_output(1):
                    break  # or the first cell's output might be lost: its way is not there yet
        except CompositeError as failed:
            name, value, _, where = failed.elist[0]
            raise WorldError(
                f"engine {where.get('engine_id')} has not joined the world. There: {name}: {value}"
            ) from failed
        here = {(one.info.get("engine_id"), one.rank) for one in self._directory.members()}
        for identity, rank in set(reports) - here:
            raise WorldError(
                f"engine {identity} joined with rank {rank} on a machine that cannot be reached "
                f"from here. Start the controller for other machines too: ipcluster start --ip=*"
            )


def _join_as_home(world: str, url: str | None, key: bytes) -> Any:
    number = 1
    while True:
        name = "home" if number == 1 else f"home{number}"
        try:
            return sfm_kernel.join(world, name=name, guest=True, directory=url, key=key)
        except NameInUse:  # another notebook
            number += 1
