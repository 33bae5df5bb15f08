"""MapReduce on the processes of a world, by sending and receiving.

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

It ends where storage and failures begin: a job whose worker dies ends with PeerLost and is run
anew; all workers have to find the files, under the same path; results have to fit into the owner's
memory; a key's values are all reduced by one worker. Who needs more changes one line, and the same
job is done by Dask, on the same engines: ``run(client().become_dask(), …)``, with
``sfm_kernel.jupyter.client``, or any other ipyparallel client.

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
from sfm_kernel.transport.base import Name

__all__ = ["Line", "Result", "run"]

CHUNKS, WINDOW = 64, 2  # of a message; messages to one worker that it need not have taken
SLICE = 0.02  # seconds of work between two looks at what has come
PATIENCE = 1.0  # seconds for which an owner waits until a worker has left a job that failed


class Result(list[tuple[Any, Any]]):
    """Pairs of key and result. ``counts``: "pairs" of map, bytes "shuffled" and "spilled"."""

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
    """For each key that ``map`` gives, what ``reduce`` makes of its values: pairs, sorted by key.

    Blocks: until the workers have done it all; Stop ends the job.
    Args:
        where: this process's endpoint; or a Dask client, which needs no more than the functions.
        inputs: paths of text files (``Path``), whose lines are the records; or the records.
        map: ``map(record)`` gives pairs of key and value. Keys are all texts, or all numbers, or
            bytes, or tuples of these. A line is a ``Line``; what is not UTF-8 becomes surrogates.
        reduce: ``reduce(key, values)`` gives the key's result; values come in any order.
        combine: the same of some values, in each worker, so that less is sent.
        workers: names of those that serve; by default all others that have a rank.
        memory: bytes for pairs in each worker, roughly; more are spilled to files.
        split: bytes of a file, or records, that a worker is given at a time.
        spill: the folder for files; by default that of ``tempfile``.
    Raises:
        JobFailed: a function raised, and for which record; or the disk is full. PeerLost: a worker
            has died. No file is left, and nobody at work.
    """
    if isinstance(inputs, (str, bytes, Path)):
        raise TypeError(f"inputs are paths of text files, or records: [Path({str(inputs)!r})]")
    if split is not None and split < 1:
        raise ValueError(f"split is a number of bytes, or records, 1 or more, not {split}")
    job = _Job(map, reduce, combine, memory, spill)
    if not isinstance(where, Endpoint):
        return _run_on_dask(where, job, inputs, split)
    names = serving.workers(where) if workers is None else [*workers]
    if not names:
        raise SFMError("nobody can work: start engines, or let other processes serve(sfm)")
    rows, counts, wanting = list[Entry](), Counter[str](), list[Name]()
    with serving.Attachment(where, names, Worker, "mapreduce.run") as attachment:
        late, busy, there = ({*attachment.names} for _ in range(3))
        splits = cut([*inputs], split, len(busy))
        try:
            for name in busy:
                attachment.send(name, say="job", names=[*busy], **serving.pack(job))
            while busy:
                message = attachment.receive(lambda: list(late or busy))
                if message is None:
                    there -= {*(lost := attachment.lost())}
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
        finally:  # until all have said their last word, so that none is left
            attachment.release()
            while there and (last := attachment.receive(tuple, quiet=PATIENCE)):
                there -= {last.src} if last.say == "left" else set()
    return Result(((key, result) for key, (result,) in rows), counts)


def _run_on_dask(client: Any, job: _Job, inputs: Iterable[Any], split: int | None) -> Result:
    """The same job as tasks, whose results Dask moves, and spills, and computes again if lost."""
    client.wait_for_workers(1)  # engines become workers one by one
    count = 4 * len(client.nthreads())

    def mapped(split: Split) -> dict[int, list[Entry]]:
        groups: dict[Any, list[Any]] = {}
        for key, value in job.pairs(split):
            groups.setdefault(key, []).append(value)
        return partitioned(job.combined(groups.items()), count)

    def reduced(*parts: list[Entry]) -> list[tuple[Any, Any]]:
        return [*job.apply("reduce", heapq.merge(*parts, key=FIRST))]

    maps = client.map(mapped, [*cut([*inputs], split, count)], pure=False)
    parts = [[client.submit(dict.get, one, k, []) for one in maps] for k in range(count)]
    rows = client.gather([client.submit(reduced, *some, pure=False) for some in parts])
    return Result(chain(*rows), Counter())


class _Job(NamedTuple):
    """Arguments of ``run`` that its workers need."""

    map: Callable[[Any], Iterable[tuple[Any, Any]]]
    reduce: Callable[[Any, Iterator[Any]], Any]
    combine: Callable[[Any, Iterator[Any]], Any] | None
    memory: int
    spill: str

    def pairs(self, split: Split) -> Iterator[tuple[Any, Any]]:
        """What map gives for each record of a split."""
        source, start, end = split
        is_file = isinstance(source, Path)
        for at, record in lines(source, start, end) if is_file else enumerate(source, start):
            try:
                for key, value in self.map(record):  # noqa: UP028 - what is no pair fails here
                    yield key, value
            except Exception as error:
                place = f"record {at}, {record!r:.80}"
                if is_file:
                    place = f"{source}, line {line_number(source, at)} (byte {at})"
                told = f"map, which gives pairs of key and value, raised {error!r} at {place}"
                raise JobFailed(told) from error

    def apply(self, name: str, entries: Iterable[Entry]) -> Iterator[tuple[Any, Any]]:
        """Of sorted entries each key, and what "reduce" or "combine" makes of all its values."""
        for key, group in groupby(entries, FIRST):
            try:
                yield key, getattr(self, name)(key, (one for _, some in group for one in some))
            except Exception as error:
                raise JobFailed(f"{name} raised {error!r} for the key {key!r:.80}") from error

    def combined(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        """Of sorted entries one for each key if the job combines, else the same."""
        if self.combine is None:
            return entries
        return ((key, [value]) for key, value in self.apply("combine", entries))


class Worker(serving.Service):
    """What a worker does: maps splits, sends pairs to those whose they are, and reduces its own."""

    _steps: Iterator[bool] | None = None
    _runs: Any = None

    def take(self, message: Message) -> None:
        """What the owner or another worker says."""
        if self._steps is not None or message.say == "job":
            self._try(self._take, message)

    def work(self) -> bool:
        """Some milliseconds' work."""
        self._until = time.monotonic() + SLICE
        return bool(self._steps is not None and self._try(next, self._steps, False))

    def close(self) -> None:
        """The owner has released this worker, or has died."""
        self._steps = self._runs = None  # and with the runs their files
        self.answer(say="left")

    def _try(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            with serving.users_code():
                return function(*arguments)
        except BaseException as error:  # noqa: BLE001 - Stop, too, ends the job
            self._steps = self._runs = None
            if not isinstance(error, PeerLost):  # which the owner notices by itself
                failure = serving.Failure(error.__cause__ or error)
                why = str(error) if isinstance(error, SFMError) else failure.text
                self.answer(say="failed", why=why, failure=failure)

    def _tell(self, to: Name, what: str, **more: Any) -> None:
        self.sfm.context(serving.CONTEXT).send(dest=to, key=self.key, say=what, **more)

    def _take(self, message: Message) -> None:
        if message.say == "job":
            self._job, self._names = serving.unpack(message), message.names
            self._splits, self._mapping = list[Split | None](), {*self._names}
            self._unanswered, self._counts = Counter[Name](), Counter[str]()
            self._runs = Runs(self._job.memory // 2, self._job.spill, self._job.combined)
            self._steps = self._run()
        elif message.say == "split":
            self._splits.append(message.split)
        elif message.say == "run":
            self._runs.add(message.run)
            self._tell(message.src, "got")
        elif message.say == "got":
            self._unanswered[message.src] -= 1
        else:
            self._mapping.discard(message.src)

    def _run(self) -> Iterator[bool]:
        """The job's steps: True after one that did something, False where others are awaited."""
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
                    size = sum(getsizeof(one) + getsizeof(groups[one][0]) + 208 for one in groups)
                    if job.combine is None or size > job.memory // 4:
                        yield from self._ship(groups)
                        groups, size = {}, 0
                if time.monotonic() > self._until:
                    yield True
            self.answer(say="want")
        yield from self._ship(dict(job.combined(groups.items())))
        for name in self._names:
            self._tell(name, "mapped")
        while self._mapping or any(self._unanswered.values()):
            yield False
        rows = job.apply("reduce", self._runs.entries())
        for chunk in chunked((key, [result]) for key, result in rows):
            self.answer(say="rows", rows=chunk)
            if time.monotonic() > self._until:
                yield True
        self._counts["spilled"] = self._runs.spilled
        self.answer(say="done", counts=dict(self._counts))

    def _ship(self, groups: dict[Any, Any]) -> Iterator[bool]:
        """Send the pairs to their workers, as fast as these take them."""
        for part, entries in partitioned(groups.items(), len(self._names)).items():
            to, chunks = self._names[part], chunked(entries)
            while run := [*islice(chunks, CHUNKS)]:
                self._counts["shuffled"] += sum(map(len, run))
                while self._unanswered[to] >= WINDOW:
                    yield False
                self._unanswered[to] += 1
                self._tell(to, "run", run=run)
