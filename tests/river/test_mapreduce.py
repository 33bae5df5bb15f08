"""MapReduce: the result is that of one process, however the work is cut; and how jobs fail."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfm_kernel
from sfm_kernel import Endpoint, mapreduce, serving
from sfm_kernel.errors import JobFailed, PeerLost, ProcessFailed, SFMError, SpillError
from sfm_kernel.records import Runs, chunked, cut, lines, stable_hash

pytestmark = pytest.mark.usefixtures("forked")


def words(line: str) -> Iterator[tuple[str, int]]:
    for word in line.split():
        yield word, 1


def count(word: str, ones: Iterator[int]) -> int:
    return sum(ones)


def job(inputs: Any, *how: dict[str, Any], n: int = 3, **common: Any) -> list[Any]:
    """Run these jobs in turn with ``n - 1`` workers; return their results and counts."""

    def program(sfm: Endpoint) -> list[Any] | None:
        if sfm.rank:
            serving.serve(sfm)
            return None
        runs = []
        with serving.Attachment(sfm, serving.workers(sfm), serving.Service, "the test"):
            for options in how or ({},):
                result = mapreduce.run(
                    sfm, inputs, **({"map": words, "reduce": count} | common | options)
                )
                runs.append((list(result), dict(result.counts)))
            assert not sfm.context("answers").peek(), "messages are left"
        return runs

    (runs, *_) = sfm_kernel.run(program, n, timeout=150)
    return list(runs)


def test_workers_that_send_to_each_other_without_buffering() -> None:
    def program(sfm: Endpoint) -> mapreduce.Result | None:
        sfm.buffering = 0
        if sfm.rank:
            serving.serve(sfm)
            return None
        return mapreduce.run(sfm, ["a b", "b c", "c d"], words, count, split=1)

    result = sfm_kernel.run(program, 3, timeout=150)[0]
    assert result == [("a", 1), ("b", 2), ("c", 2), ("d", 1)]


SOURCES = sorted(Path(os.__file__).parent.glob("[a-c]*.py"))
"""Real text: sources of the standard library."""


@pytest.fixture(scope="module")
def counted() -> list[tuple[str, int]]:
    text = (path.read_bytes().decode(errors="surrogateescape") for path in SOURCES)
    return sorted(Counter(word for content in text for word in content.split()).items())


@pytest.mark.parametrize("n", [2, 4])
def test_words_of_real_files(n: int, counted: list[tuple[str, int]]) -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"combine": count},
        {"split": 1000},
        {"memory": 60_000},
        {"memory": 60_000, "combine": count, "split": 777},
    ]
    runs = job(SOURCES, *ways, n=n)
    for way, (result, counts) in zip(ways, runs, strict=True):
        assert result == counted, way
        assert counts["pairs"] == sum(number for _, number in counted)
        assert (counts["spilled"] > 0) == ("memory" in way), way
    assert runs[1][1]["shuffled"] < runs[0][1]["shuffled"], "combining saves nothing"


texts = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12), max_size=30
)


@settings(max_examples=6)
@given(texts, st.integers(1, 40), st.integers(0, 5000), st.booleans(), st.integers(2, 4))
def test_any_text(written: list[str], split: int, memory: int, combines: bool, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes("\n".join(written).encode())
        how = {"split": split, "memory": memory, "combine": count if combines else None}
        ((in_file, _), (as_records, _)) = (
            job([path], how, n=n)[0],
            job(written, how, n=n)[0],
        )
    wanted = sorted(Counter(word for line in written for word in line.split()).items())
    assert in_file == as_records == wanted


@given(texts, st.integers(1, 40), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_each_line_is_in_one_split(written: list[str], size: int, end: str, last: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes((end.join(written) + (end if last else "")).encode())
        found = [line for split in cut([path], size, 3) for line in lines(*split)]
        data = path.read_bytes()
    wanted = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    assert [line.encode() for _, line in found] == (wanted[:-1] if wanted[-1] == b"" else wanted)
    assert all(data[offset:].startswith(line.encode()) for offset, line in found)
    assert all((line.file, line.offset) == (path, offset) for offset, line in found)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 20), st.integers()), max_size=30).map(sorted), max_size=50
    ),
    st.integers(0, 3000),
)
def test_runs_are_merged_whatever_is_on_disk(runs: list[Any], memory: int) -> None:
    kept = Runs(memory, "", lambda entries: entries)
    for run in runs:
        kept.add(chunked((key, [value]) for key, value in run))
    got = [(key, value) for key, values in kept.entries() for value in values]
    assert sorted(got) == sorted(pair for run in runs for pair in run)
    assert [key for key, _ in got] == sorted(key for key, _ in got)
    if memory > 1 << 20:
        assert kept.spilled == 0


def test_many_files_become_one() -> None:
    kept = Runs(0, "", lambda entries: entries)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(100):
        kept.add(chunked([(number % 7, [number])]))
        assert len(os.listdir("/proc/self/fd")) <= before + 33
    got = sorted(value for _, values in kept.entries() for value in values)
    assert got == list(range(100))


def test_memory_is_kept_to() -> None:
    """A worker's pairs are many times its memory, and it stays about that small."""

    def program(sfm: Endpoint) -> int | None:
        if not sfm.rank:
            # Ten million bytes in each worker, none of them like another.
            mapreduce.run(sfm, range(2000), spread, longest, memory=1 << 20)
            return None
        before = resident()
        serving.serve(sfm)
        return resident() - before

    def spread(number: int) -> Iterator[tuple[int, bytes]]:
        for part in range(10):
            yield number * 10 + part, number.to_bytes(4, "little") * 250

    def longest(key: int, values: Iterator[bytes]) -> int:
        return max(map(len, values))

    def resident() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    _, *grown = sfm_kernel.run(program, 3)
    assert max(grown) < 10 << 20, grown


def test_keys_of_all_kinds() -> None:
    keys: list[list[Any]] = [
        ["", "a", "ä", "\ud800", "日本"],
        [-1, 0, 1.5, True, 2**70],
        [b"", b"a"],
        [("a", 1), ("a", 2), ("b", -1)],
    ]
    for some in keys:
        ((result, _),) = job(some * 3, map=lambda key: [(key, 1)], reduce=count)
        assert result == sorted((key, 3) for key in some)
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    assert stable_hash(("a", 1)) == stable_hash(("a", 1.0))


def test_the_hash_is_that_of_other_processes() -> None:
    code = "from sfm_kernel.records import stable_hash as h; print(h('a'), h(b'a'), h(('a', 2.5)))"
    hashes = set()
    for seed in "12":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
        hashes.add(run.stdout.split(b"\n")[0])
    assert len(hashes) == 1 and b" " in hashes.pop()


def fails(match: str, *, n: int = 3, **how: Any) -> str:
    """Return the error of a job that fails, once another job has been done after it."""

    def program(sfm: Endpoint) -> str | None:
        if sfm.rank:
            serving.serve(sfm)
            return None
        with serving.Attachment(sfm, serving.workers(sfm), serving.Service, "the test"):
            with pytest.raises(SFMError) as failure:
                mapreduce.run(sfm, **({"map": words, "reduce": count} | how))
            assert not sfm.context("answers").peek(), "messages are left"
            assert mapreduce.run(sfm, ["a b", "b"], words, count) == [("a", 1), ("b", 2)]
        return f"{type(failure.value).__name__}: {failure.value}"

    error = str(sfm_kernel.run(program, n, timeout=150)[0])
    assert re.search(match, error), error
    return error


def test_map_raises(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("1\n2\nthree\n4\n")
    error = fails(
        r"JobFailed: map, .* raised ValueError.*three.* at .*numbers.txt, line 3 \(byte 4\)",
        inputs=[path],
        split=3,
        map=lambda line: [(int(line), 1)],
    )
    assert "in <lambda>" in error and "Traceback (on" in error


@pytest.mark.parametrize(
    ("match", "how"),
    [
        (r"raised TypeError.*NoneType.* at record 0, 'a b'", {"map": lambda line: None}),
        (r"raised ValueError.*unpack.* at record 0, 'a b'", {"map": lambda line: [(1, 2, 3)]}),
        (r"reduce raised Zero.* for the key 'b'", {"reduce": lambda k, v: 1 / (k < "b")}),
        (r"combine raised .* for the key 'a'", {"combine": lambda k, v: 1 / 0}),
        (r"\[\] is no key|unhashable", {"map": lambda line: [([], 1)]}),
        (r"frozenset\(\) is no key: use texts", {"map": lambda line: [(frozenset(), 1)]}),
        (r"nan is no key", {"map": lambda line: [(float("nan"), 1)]}),
        (r"not supported between", {"map": lambda line: [(1, 1), ("a", 1)]}),
        (r"pickle", {"reduce": lambda k, v: open(os.devnull)}),  # noqa: SIM115
        (r"SystemExit", {"map": lambda line: sys.exit("no")}),
        (r"no_such_file", {"inputs": [Path("no_such_file")]}),
    ],
)  # fmt: skip
def test_functions_that_fail(match: str, how: dict[str, Any]) -> None:
    if "inputs" in how:
        with pytest.raises(ProcessFailed, match="FileNotFoundError"):
            job(how["inputs"])
    else:
        fails(match, **({"inputs": ["a b"]} | how))


def test_inputs_that_are_none() -> None:
    with pytest.raises(ProcessFailed, match=r"TypeError: inputs are paths.*\[Path\('x.txt'\)\]"):
        job("x.txt")
    with pytest.raises(ProcessFailed, match="split is a number of bytes, or records, 1 or more"):
        job(["a"], {"split": 0})
    assert job([])[0][0] == []


def test_nobody_works() -> None:
    with pytest.raises(ProcessFailed, match="nobody can work: start engines"):
        sfm_kernel.run(lambda sfm: mapreduce.run(sfm, ["a"], words, count), 1)
    with pytest.raises(ProcessFailed, match="no process is named 'X'"):
        job(["a"], {"workers": ["X"]})


def test_a_full_disk(tmp_path: Path) -> None:
    """The disk is full from the second spill on, on one of two workers."""

    def program(sfm: Endpoint) -> Any:
        if sfm.rank:
            make = tempfile.TemporaryFile
            if sfm.rank == 1:
                files = itertools.chain(
                    [make],
                    itertools.repeat(lambda dir: open("/dev/full", "wb+")),  # noqa: SIM115
                )
                tempfile.TemporaryFile = lambda dir: next(files)(dir=dir)  # type: ignore[assignment]
            serving.serve(sfm)
            tempfile.TemporaryFile = make  # this process is a fork, and may serve other tests
            opened = map("/proc/self/fd/{}".format, os.listdir("/proc/self/fd"))
            return [path for path in map(os.path.realpath, opened) if str(tmp_path) in path]
        with serving.Attachment(sfm, [1, 2], serving.Service, "the test"):
            with pytest.raises(JobFailed) as failure:
                mapreduce.run(sfm, range(9000), numbers, count, memory=100_000, spill=str(tmp_path))
            result = mapreduce.run(sfm, range(9000), numbers, count, memory=10 << 20)
        return str(failure.value), len(result)

    def numbers(number: int) -> Iterator[tuple[str, int]]:
        yield f"the number {number}, a key that is not short", 1

    (error, length), *left = sfm_kernel.run(program, 3, timeout=150)
    assert f"cannot be spilled to {str(tmp_path)!r}: [Errno 28] No space left on device" in error
    assert "on 1" in error and "Give another folder (spill=), more memory" in error
    assert length == 9000
    assert left == [[], []] and os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there() -> None:
    error = fails("cannot be spilled to '/no/such'", inputs=range(999), map=lambda i: [(i, i)],
                 memory=1, spill="/no/such")  # fmt: skip
    assert "No such file" in error


def test_a_spill_that_fails_leaves_what_there_is(tmp_path: Path) -> None:
    kept = Runs(0, str(tmp_path / "missing"), lambda entries: entries)
    with pytest.raises(SpillError) as failure:
        kept.add(chunked([(1, [2])]))
    assert failure.value.folder == str(tmp_path / "missing") and failure.value.nbytes > 0


@pytest.mark.fault
@pytest.mark.parametrize("when", ["mapping", "reducing"])
def test_a_worker_dies(when: str) -> None:
    def die(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def program(sfm: Endpoint) -> str | None:
        if sfm.rank:
            serving.serve(sfm)
            return None
        how: dict[str, Callable[..., Any]] = {"map": words, "reduce": count}
        how["map" if when == "mapping" else "reduce"] = lambda *given: (
            die() if "poison" in given[0] else (words if when == "mapping" else count)(*given)
        )
        with pytest.raises(PeerLost) as failure:
            mapreduce.run(sfm, ["a b", "poison", "c"] * 10, **how)
        with serving.Attachment(sfm, serving.workers(sfm), serving.Service, "the test"):
            again = mapreduce.run(sfm, ["a b", "b"], words, count)
        raise ArithmeticError(f"{failure.value} {again}")

    with pytest.raises(ProcessFailed) as failure:
        sfm_kernel.run(program, 3, timeout=150)
    error = str(failure.value)
    # The killed worker fails the run as well: either error may come first.
    assert "was killed by SIGKILL" in error or "while it worked on a MapReduce job" in error


def test_two_owners_at_once() -> None:
    """Their jobs share the workers, and do not wait for each other."""

    def program(sfm: Endpoint) -> Any:
        if sfm.rank > 1:
            serving.serve(sfm)
            return None
        other = sfm.context("test")
        with serving.Attachment(sfm, [2, 3], serving.Service, "the test"):
            other.send(dest=1 - (sfm.rank or 0))
            other.recv()
            return mapreduce.run(sfm, SOURCES[:20], words, count, workers=[2, 3], memory=50_000)

    first, second, *_ = sfm_kernel.run(program, 4, timeout=150)
    assert list(first) == list(second) and len(first) > 1000
