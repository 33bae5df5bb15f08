"""ipyparallel clusters: starts, ends and restarts the engines of this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ipyparallel.error import CompositeError

from sfm_kernel.directory import Member, open_directory, remove_world
from sfm_kernel.directory.sites import SITE
from sfm_kernel.errors import BadName, SFMError, UnknownName, WorldAccess, WorldError, WorldGone
from sfm_kernel.jupyter import engine
from sfm_kernel.jupyter.cluster_files import (
    DIRECTORY,
    connection,
    remove_files,
    world_key,
    world_name,
)
from sfm_kernel.jupyter.ending import end_cluster, end_engines, wait_until
from sfm_kernel.jupyter.launching import PATIENCE, start_controller, wait_for_engines
from sfm_kernel.jupyter.limits import MEMORY, StartPermit, check_descriptors
from sfm_kernel.jupyter.names import engine_names
from sfm_kernel.jupyter.settings import Settings
from sfm_kernel.jupyter.sites import SITES_VARIABLE, Gateways, Sites
from sfm_kernel.relay.view import RemoteView

_END_SECONDS = 5.0
"""Seconds that an engine which the controller no longer sees has to end."""

_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Engines:
    """The engines of a cluster, started by this process or by another, and their world.

    This class does not join the world: ``home`` joins it for the notebook.

    Attributes:
        cluster, client: ipyparallel's.
        names: the engines' names by rank; empty if another process started them.
        directory: the world's directory. view: the processes on other machines.
        world, key, url: the world's name and secret, and the url of its directory server, if any.
        connection: the content of the clients' connection file.
        settings: the administrator's limits.
    """

    def __init__(
        self,
        cluster: Any,
        names: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        sites: Sites | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.cluster, self.names, self._environment = cluster, list(names), dict(environment or {})
        self.sites, self.settings = sites, settings or Settings()
        self._permit = StartPermit(self.settings)
        self._gateways: Gateways | None = None
        self.connection: dict[str, Any] = {}
        self.client: Any = None
        self.directory: Any = None
        self.view = RemoteView(None)
        self.world, self.key = "", b""
        self.url: str | None = None
        self._launcher: Any = None

    @classmethod
    def starting(
        cls,
        names: Sequence[str],
        site: str | None = None,
        sites: Sites | None = None,
        settings: Settings | None = None,
    ) -> Engines:
        """Begin to start engines of a new cluster on this machine; ``open`` and ``settle`` go on.

        Args:
            names: by rank; "0", "1", … for engines without names.
            site: the engines' site; without it ``SFM_SITE``, or their machine's site.
            sites: the sites of the engines, each as if on a machine of its own.
            settings: the administrator's limits; without them the environment's.

        Raises:
            LimitReached: the user has too many engines; nothing runs.
            SystemLimit: the controller may not have enough files open; nothing runs.
        """
        check_descriptors(len(names))
        environment = {} if site is None else {SITE: site}
        environment |= sites.environment() if sites else {}
        fresh = cls(None, names, environment, sites, settings)
        fresh._permit.acquire(len(names))
        try:
            fresh.cluster = start_controller(len(names), environment)
        except BaseException:
            fresh._permit.release()
            raise
        return fresh

    @property
    def owned(self) -> bool:
        """Whether this process started the engines."""
        return bool(self.names)

    def open(self) -> None:
        """Connect to the cluster and the world's directory, while owned engines start."""
        if self.owned:
            self._launcher = self._launch(range(len(self.names)))
            if self.sites:
                self._gateways = Gateways(self.cluster, self._environment[SITES_VARIABLE])
        self.client = self.cluster.connect_client_sync()
        self.connection = known = connection(self.cluster)
        self.world, self.key = world_name(known), world_key(known)
        if self.owned and not known.get("curve_serverkey"):  # see ``start_controller``
            raise WorldAccess(
                "any user of this machine could read the cells of this cluster and their output: "
                "a setting turns IPController.enable_curve off. Remove it from "
                "ipcontroller_config.py, in the folder that `ipython locate profile` prints"
            )
        self.url = known.get(DIRECTORY)
        if self.sites and not self.url:
            raise WorldError("the controller could not start the directory server that sites need")
        self.directory = open_directory(self.world, create=True, url=self.url, key=self.key)
        self.view = RemoteView.of(self.directory)

    def settle(self, progress: Callable[[int], None] | None = None) -> None:
        """Return when all engines are in the world.

        Args:
            progress: as for ``wait_for_engines``.

        Raises:
            WorldError: an engine could not join.
        """
        if self.owned:
            ranks = range(len(self.names))
            wait_for_engines(self.client, ranks, self._launcher, progress)
            self._verify(ranks)
            self._permit.release()
        else:
            # Only the unknown engines: one that runs a cell would not answer before its end.
            known = {member.info.get("engine_id") for member in self.directory.members()}
            self._verify([identity for identity in self.client.ids if identity not in known])

    def living(self) -> list[Member]:
        """The living engines by rank."""
        members = self.directory.members()
        ranked = {member.rank: member for member in members if member.rank is not None}
        return [ranked[rank] for rank in sorted(ranked) if self.directory.alive(ranked[rank])]

    def ended(self) -> list[str]:
        """The names of owned engines that have ended."""
        living = {member.rank for member in self.living()}
        return [name for rank, name in enumerate(self.names) if rank not in living]

    def check_controller(self) -> None:
        """Raise WorldGone if the engines can no longer answer."""
        controller = self.cluster.controller
        # ipyparallel notices the end of another notebook's cluster only between cells.
        process = getattr(controller, "process", None)
        if controller.state == "after" or (process is not None and not process.is_running()):
            raise WorldGone("the cluster's controller has ended: `%sfm stop`, then `%sfm start`")

    def ranks(self, words: Sequence[str]) -> list[int]:
        """The ranks of owned engines, dead ones included, by names and ranks; all if empty.

        Raises:
            UnknownName: a word names no owned engine.
        """
        known = {name: rank for rank, name in enumerate(self.names)}
        known |= {str(rank): rank for rank in range(len(self.names))}
        for word in words:
            if word not in known:
                raise UnknownName(word, self.names)
        return sorted({known[word] for word in words or known})

    def restart(self, ranks: Sequence[int]) -> list[Member]:
        """End owned engines, if they live, and start them again with their ranks and names.

        Raises:
            LimitReached: the user would have too many engines; none has ended.
        """
        self.check_controller()
        with self._permit_for(ranks):
            end_engines(self.cluster, self.client, ranks, self._listed(ranks))
            return self._start(ranks)

    def end(self, ranks: Sequence[int]) -> None:
        """End owned engines, if they live; ``restart`` brings them back."""
        self.check_controller()
        ending = [member for member in self.directory.members() if member.rank in ranks]
        end_engines(self.cluster, self.client, ranks, self._listed(ranks))
        for member in ending:  # an engine that was killed could not leave the world
            wait_until(partial(self._has_ended, member), _END_SECONDS)
            self.directory.leave(member)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(member.segment)

    def _has_ended(self, member: Member) -> bool:
        return not self.directory.alive(member)

    def rescale(self, count: int) -> None:
        """Change the number of owned engines: the next ranks start, or the highest ranks end.

        Raises:
            BadName: the number is not possible.
            LimitReached: the administrator's limit forbids the number.
            WorldError: an engine could not join. The number of engines is unchanged.
        """
        engine_names(count)
        if self.sites and count != len(self.names):
            raise BadName(f"no other number than {len(self.names)}: --sites fixes it at the start")
        before = len(self.names)
        if count < before:
            self.end(range(count, before))
            del self.names[count:]
        elif fresh := range(before, count):
            self.check_controller()
            with self._permit_for(fresh):
                self.names += map(str, fresh)
                try:
                    self._start(fresh)
                except BaseException:
                    self.end(fresh)
                    del self.names[before:]
                    raise

    def close(self) -> None:
        """Disconnect from the cluster; end an owned cluster, even if its engines are blocked.

        An owned cluster leaves no process and no file. Harmless when repeated.
        """
        deserted = self._is_deserted()
        self._permit.release()
        if self.directory:
            self.directory.close()
        if self.client:
            self.client.close(linger=0)
        if self.owned:
            end_cluster(self.cluster)
        if self._gateways:
            self._gateways.end()
            remove_files(self.cluster.profile_dir, self.cluster.cluster_id)
        if self.world and deserted:
            remove_world(self.world)

    def _is_deserted(self) -> bool:
        """Whether no engine lives, or none will live once an owned cluster has ended."""
        try:
            return self.owned or not self.directory or not self.living()
        except SFMError:  # the directory's server has ended
            return True

    def _living(self, ranks: Sequence[int]) -> list[Member]:
        return [member for member in self.living() if member.rank in ranks]

    def _listed(self, ranks: Sequence[int]) -> list[Member]:
        """All that had these ranks, also one that runs and was put out of the world."""
        members = (*self.directory.members(), *self.directory.departed())
        return [member for member in members if member.rank in ranks]

    def _launch(self, ranks: Sequence[int]) -> Any:
        named = [name for name in self.names if not name.isdigit()]
        environment = {"SFM_NAMES": ",".join(named), **self._environment}
        if limit := self.settings.memory_limit:
            environment[MEMORY] = str(limit)
        threads = self.settings.threads
        if threads and not any(name in os.environ for name in _BLAS):
            environment |= dict.fromkeys(_BLAS, str(threads))  # the engines already fill the cores
        options = {"ranks": list(ranks), "environment": environment}
        return self.cluster.engines[self.cluster.start_engines_sync(len(ranks), **options)]

    @contextlib.contextmanager
    def _permit_for(self, ranks: Iterable[int]) -> Iterator[None]:
        """Permit these ranks to run beside the living ones. Raises LimitReached."""
        living = {member.rank for member in self.living()}
        self._permit.acquire(len(living.union(ranks)), self.world)
        try:
            yield
        finally:
            self._permit.release()

    def _start(self, ranks: Sequence[int]) -> list[Member]:
        wait_for_engines(self.client, ranks, self._launch(ranks))
        self._verify(ranks)
        return self._living(ranks)

    def _verify(self, identities: Sequence[int]) -> None:
        """Ask engines whether they have joined: IPython would only log that one has not."""
        if not identities:
            return
        try:
            for _ in range(5):
                answers = self.client[list(identities)].apply_async(engine.report)
                reports = answers.get(timeout=PATIENCE)
                if answers.wait_for_output(1):
                    break  # otherwise the output's subscription is not set up, and cells lose some
        except CompositeError as failed:
            name, value, _, info = failed.elist[0]
            raise WorldError(
                f"engine {info.get('engine_id')} has not joined the world. It says: {name}: {value}"
            ) from failed
        members = self.directory.members()
        reachable = {(member.info.get("engine_id"), member.rank) for member in members}
        for identity, rank in set(reports) - reachable:
            raise WorldError(
                f"engine {identity} joined with rank {rank} on a machine that this notebook cannot "
                f"reach. Start the controller for other machines too: ipcluster start --ip=*"
            )
