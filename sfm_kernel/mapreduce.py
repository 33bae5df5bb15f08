"""MapReduce on the processes of a world, built on ``send`` and ``recv`` alone.

    >>> from sfm_kernel import mapreduce, serving
    >>> def words(line):
    ...     return ((word.lower(), 1) for word in line.split())
    >>> def count(word, ones):
    ...     return sum(ones)
    >>> def job(sfm):
    ...     if sfm.rank > 0:
    ...         return serving.serve(sfm)
    ...     return mapreduce.run(sfm, ["To be or", "not to be"], words, count)
    >>> sfm_kernel.run(job, n=3)[0]
    [('be', 2), ('not', 1), ('or', 1), ('to', 2)]

Its limits: a job whose worker dies ends with PeerLost and has to be run again; all workers must
find the input files under the same path; the results must fit into the owner's memory; one worker
reduces all values of a key. Dask has none of these limits, and runs the same job on the same
engines: pass ``client().become_dask()`` instead of the endpoint, with ``client`` from
``sfm_kernel.jupyter`` or any other ipyparallel client.

Source: J. Dean, S. Ghemawat, "MapReduce: Simplified data processing on large clusters", OSDI 2004.
"""

from __future__ import annotations

import heapq
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path
from sys import getsizeof
from typing import Any, NamedTuple

from sfm_kernel import serving
from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import JobFailed, PeerLost, SFMError
from sfm_kernel.message import Message
from sfm_kernel.records import (
    FIRST,
    Entry,
    Line,
    Runs,
    Split,
    chunked,
    cut,
    line_number,
    lines,
    partitioned,
)

__all__ = ["Line", "Result", "run"]

CHUNKS = 64  # chunks of a run that are sent in one message
WINDOW = 2  # messages to one worker that may be unacknowledged
SLICE = 0.02  # seconds of work before a worker takes the messages that have arrived
PATIENCE = 5.0  # seconds for which an owner waits for a worker's last message of a failed job


class Result(list[tuple[Any, Any]]):
    """A list of pairs of key and result, sorted by key.

    ``counts`` has the number of ``"pairs"`` that ``map`` gave, and the bytes that were
    ``"shuffled"`` (sent between workers) and ``"spilled"`` (written to disk). Dask counts nothing.
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]], counts: Counter[str]) -> None:
        super().__init__(sorted(pairs, key=FIRST))
        self.counts = counts


def run(
    where: Any,
    inputs: Iterable[Any],
    map: Callable[[Any], Iterable[tuple[Any, Any]]],
    reduce: Callable[[Any, Iterator[Any]], Any],
    *,
    combine: Callable[[Any, Iterator[Any]], Any] | None = None,
    workers: Iterable[Name] | None = None,
    memory: int = 64 << 20,
    split: int | None = None,
    spill: str = "",
) -> Result:
    """Call ``map`` with each record, and ``reduce`` once for each key with the values of that key.

    Blocks: until the job is done. Stop ends the job.
    Args:
        where: this process's endpoint; or a Dask client, for which ``combine``, ``split`` and the
            two functions apply and the rest is ignored.
        inputs: paths of text files (``Path``), whose lines are the records; or the records.
        map: ``map(record)`` gives pairs of key and value. All keys are texts, or all are numbers,
            or bytes, or tuples of these. A line of a file is a ``Line``; bytes that are not UTF-8
            become surrogates.
        reduce: ``reduce(key, values)`` returns the key's result. The values have no fixed order.
        combine: ``combine(key, values)`` reduces some values of a key to one value, within a
            worker, before they are sent: less data travels.
        workers: names or ranks of the workers; by default every other process that has a rank.
        memory: approximate bytes for pairs in each worker; further pairs are spilled to files.
        split: how much a worker maps at a time: bytes of a file, or a number of records.
        spill: the folder for spilled pairs; by default the folder of ``tempfile``.
    Raises:
        JobFailed: a function raised (the message names the record or the key), or the disk is full.
        PeerLost: a worker has died.
        After an error no file of the job remains, and its workers are released.
    """
    if isinstance(inputs, (str, bytes, Path)):
        raise TypeError(f"inputs are paths of text files, or records: [Path({str(inputs)!r})]")
    if split is not None and split < 1:
        raise ValueError(f"split is a number of bytes, or records, 1 or more, not {split}")
    job = _Job(map, reduce, combine, memory, spill)
    if not isinstance(where, Endpoint):
        return _run_on_dask(where, job, inputs, split)
    rows, counts, wanting = list[Entry](), Counter[str](), list[Name]()
    with serving.Attachment(where, workers, Worker, "mapreduce.run") as attachment:
        if not attachment.names:
            raise SFMError("nobody can work: start engines, or let other processes serve(sfm)")
        late, busy, attached = ({*attachment.names} for _ in range(3))
        splits = cut([*inputs], split, len(busy))
        try:
            for name in busy:
                attachment.send(name, say="job", names=[*busy], **serving.pack(job))
            while busy:
                message = attachment.receive(lambda: list(late or busy))
                if message is None:
                    attached -= {*(lost := attachment.lost())}
                    raise PeerLost(lost[0], "while it worked on a MapReduce job, which has ended")
                if message.say == "rows":
                    rows += pickle.loads(message.rows)
                elif message.say == "want":
                    late.discard(message.src)
                    wanting.append(message.src)
                    while wanting and not late:
                        attachment.send(wanting.pop(), say="split", split=next(splits, None))
                elif message.say == "done":
                    busy.discard(message.src)
                    counts.update(message.counts)
                else:
                    trace = message.failure.traceback(message.src)
                    raise JobFailed(f"{message.why}\n\n{trace}") from message.failure.error
        except KeyboardInterrupt:
            attachment.interrupt([*busy])
            raise
        finally:  # take the last message of each worker, so that none stays in the inbox
            attachment.release()
            while attached and (last := attachment.receive(tuple, quiet=PATIENCE)):
                attached -= {last.src} if last.say == "left" else set()
    return Result(((key, result) for key, (result,) in rows), counts)


def _run_on_dask(client: Any, job: _Job, inputs: Iterable[Any], split: int | None) -> Result:
    """Run the job as tasks. Dask moves and spills their results, and recomputes lost ones."""
    client.wait_for_workers(1)  # engines become workers one by one
    count = 4 * len(client.nthreads())

    def mapped(split: Split) -> dict[int, list[Entry]]:
        groups: dict[Any, list[Any]] = {}
        for key, value in job.pairs(split):
            groups.setdefault(key, []).append(value)
        return partitioned(job.combined(groups.items()), count)

    def reduced(*lists: list[Entry]) -> list[tuple[Any, Any]]:
        return [*job.apply("reduce", heapq.merge(*lists, key=FIRST))]

    maps = client.map(mapped, [*cut([*inputs], split, count)], pure=False)
    partitions = [[client.submit(dict.get, m, k, []) for m in maps] for k in range(count)]
    rows = client.gather([client.submit(reduced, *lists, pure=False) for lists in partitions])
    return Result(chain(*rows), Counter())


class _Job(NamedTuple):
    """The arguments of ``run`` that its workers need."""

    map: Callable[[Any], Iterable[tuple[Any, Any]]]
    reduce: Callable[[Any, Iterator[Any]], Any]
    combine: Callable[[Any, Iterator[Any]], Any] | None
    memory: int
    spill: str

    def pairs(self, split: Split) -> Iterator[tuple[Any, Any]]:
        """The pairs that ``map`` gives for each record of a split."""
        source, start, end = split
        is_file = isinstance(source, Path)
        for number, record in lines(source, start, end) if is_file else enumerate(source, start):
            try:
                for key, value in self.map(record):  # noqa: UP028 - a result that is no pair fails
                    yield key, value
            except Exception as error:
                location = f"record {number}, {record!r:.80}"
                if is_file:
                    location = f"{source}, line {line_number(source, number)} (byte {number})"
                text = f"map, which gives pairs of key and value, raised {error!r} at {location}"
                raise JobFailed(text) from error

    def apply(self, name: str, entries: Iterable[Entry]) -> Iterator[tuple[Any, Any]]:
        """Each key of sorted entries, and what "reduce" or "combine" makes of all its values."""
        for key, group in groupby(entries, FIRST):
            try:
                yield key, getattr(self, name)(key, (v for _, values in group for v in values))
            except Exception as error:
                raise JobFailed(f"{name} raised {error!r} for the key {key!r:.80}") from error

    def combined(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """Sorted entries, reduced to one for each key if the job has ``combine``."""
        if self.combine is None:
            return entries
        return ((key, [value]) for key, value in self.apply("combine", entries))


class Worker(serving.Service):
    """A worker's share of a job: it maps splits, sends each pair to the worker of the pair's key,
    and reduces the pairs of its own keys."""

    _steps: Iterator[bool] | None = None
    _runs: Any = None

    def take(self, message: Message) -> None:
        """Take a message of the owner or of another worker."""
        if self._steps is not None or message.say == "job":
            self._try(self._take, message)

    def work(self) -> bool:
        """Work for ``SLICE`` seconds."""
        self._until = time.monotonic() + SLICE
        return bool(self._steps is not None and self._try(next, self._steps, False))

    def close(self) -> None:
        """The owner has released this worker, or has died."""
        self._steps = self._runs = None  # the files of the runs go with them
        self.answer(say="left")

    def _try(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            with serving.users_code():
                return function(*arguments)
        except BaseException as error:  # noqa: BLE001 - Stop, too, ends the job
            self._steps = self._runs = None
            if not isinstance(error, PeerLost):  # the owner notices a death by itself
                failure = serving.Failure(error.__cause__ or error)
                why = str(error) if isinstance(error, SFMError) else failure.text
                self.answer(say="failed", why=why, failure=failure)

    def _take(self, message: Message) -> None:
        if message.say == "job":
            self._job, self._names = serving.unpack(message), message.names
            self._splits, self._mapping = list[Split | None](), {*self._names}
            self._unacknowledged, self._counts = Counter[Name](), Counter[str]()
            self._runs = Runs(self._job.memory // 2, self._job.spill, self._job.combined)
            self._steps = self._run()
        elif message.say == "split":
            self._splits.append(message.split)
        elif message.say == "run":
            self._runs.add(message.run)
            self.send(message.src, say="got")
        elif message.say == "got":
            self._unacknowledged[message.src] -= 1
        else:
            self._mapping.discard(message.src)

    def _run(self) -> Iterator[bool]:
        """The job's steps: True after a step with work, False while it waits for other workers."""
        job, groups, size = self._job, dict[Any, Any](), 0
        self.answer(say="want")
        while True:
            while not self._splits:
                yield False
            if (split := self._splits.pop()) is None:
                break
            for key, value in job.pairs(split):
                self._counts["pairs"] += 1
                groups.setdefault(key, []).append(value)
                size += getsizeof(value) + 8 + (len(groups[key]) == 1 and getsizeof(key) + 200)
                if size > job.memory // 2:
                    groups = dict(job.combined(groups.items()))
                    size = sum(getsizeof(key) + getsizeof(groups[key][0]) + 208 for key in groups)
                    if job.combine is None or size > job.memory // 4:
                        yield from self._ship(groups)
                        groups, size = {}, 0
                if time.monotonic() > self._until:
                    yield True
            self.answer(say="want")
        yield from self._ship(dict(job.combined(groups.items())))
        for name in self._names:
            self.send(name, say="mapped")
        while self._mapping or any(self._unacknowledged.values()):
            yield False
        rows = job.apply("reduce", self._runs.entries())
        for chunk in chunked((key, [result]) for key, result in rows):
            self.answer(say="rows", rows=chunk)
            if time.monotonic() > self._until:
                yield True
        self._counts["spilled"] = self._runs.spilled
        self.answer(say="done", counts=dict(self._counts))

    def _ship(self, groups: dict[Any, Any]) -> Iterator[bool]:
        """Send the pairs to their workers, as fast as these acknowledge them."""
        for number, entries in partitioned(groups.items(), len(self._names)).items():
            dest, chunks = self._names[number], chunked(entries)
            while run := [*islice(chunks, CHUNKS)]:
                self._counts["shuffled"] += sum(map(len, run))
                while self._unacknowledged[dest] >= WINDOW:
                    yield False
                self._unacknowledged[dest] += 1
                self.send(dest, say="run", run=run)
