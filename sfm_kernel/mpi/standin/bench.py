"""``python -m mpi4py.bench helloworld``: small programs that try an installation.

Under ``python -m sfm_kernel.mpi -n 4``. Each is also a function of a communicator. What SFM itself
takes is measured by ``python -m sfm_kernel.bench``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfm_kernel.mpi import MPI

_Arguments = Sequence[str] | None


def helloworld(comm: Any, args: _Arguments = None, verbose: bool = True) -> str:
    """Each rank says who and where it is, one after the other; returns what this one says."""
    options = _parser("helloworld", helloworld, verbose).parse_args(args)
    rank, size = comm.Get_rank(), comm.Get_size()
    width = len(str(size - 1))
    host = MPI.Get_processor_name()
    message = f"Hello, World! I am process {rank:{width}d} of {size} on {host}.\n"
    turn = np.empty(0, "B")
    if rank > 0:
        comm.Recv(turn, rank - 1)
    if not options.quiet:
        sys.stdout.write(message)
        sys.stdout.flush()
    if rank < size - 1:
        comm.Send(turn, rank + 1)
    comm.Barrier()
    return message


def ringtest(comm: Any, args: _Arguments = None, verbose: bool = True) -> float:
    """The seconds that a message takes to go round all ranks some times."""
    parser = _parser("ringtest", ringtest, verbose)
    _add_number(parser, "-n", "--size", 1, "bytes of the message")
    _add_number(parser, "-s", "--skip", 0, "rounds before the time is taken")
    _add_number(parser, "-l", "--loop", 1, "rounds that are timed")
    options = parser.parse_args(args)
    rank, size = comm.Get_rank(), comm.Get_size()
    before, after = (rank - 1) % size, (rank + 1) % size
    sent = np.full(options.size, 42, "B")
    received = np.zeros(options.size, "B")
    began = 0.0
    comm.Barrier()
    for number in range(options.skip + options.loop):
        if number == options.skip:
            began = MPI.Wtime()
        if size == 1:
            comm.Sendrecv(sent, after, 0, received, before, 0)
        elif rank == 0:
            comm.Send(sent, after)
            comm.Recv(received, before)
        else:
            comm.Recv(received, before)
            comm.Send(received, after)
    elapsed: float = MPI.Wtime() - began
    if options.skip + options.loop and not np.array_equal(sent, received):
        sys.stderr.write("ringtest: what came is not what was sent\n")
        comm.Abort(2)
    if not options.quiet and rank == 0:
        sys.stdout.write(
            f"time for {options.loop} loops = {elapsed:g} seconds "
            f"({size} processes, {options.size} bytes)\n"
        )
        sys.stdout.flush()
    return elapsed


def pingpong(
    comm: Any, args: _Arguments = None, verbose: bool = True
) -> list[tuple[int, float, float]]:
    """Sizes, and the mean and deviation of the seconds of one way between ranks 0 and 1."""
    parser = _parser("pingpong", pingpong, verbose)
    _add_number(parser, "-m", "--min-size", 1, "bytes of the smallest message")
    _add_number(parser, "-n", "--max-size", 1 << 26, "bytes of the largest message")
    _add_number(parser, "-s", "--skip", 10, "messages of a size before time is taken")
    _add_number(parser, "-l", "--loop", 1000, "messages of a size; fewer where they are large")
    parser.add_argument("-p", "--pickle", action="store_true", help="send objects, not buffers")
    options = parser.parse_args(args)
    exchange = _exchange_objects if options.pickle else _exchange_buffers
    found = []
    if not options.quiet and comm.Get_rank() == 0:
        print("# Size [B]  Bandwidth [MB/s] | Time Mean [s] ± StdDev [s]  Samples", flush=True)
    for nbytes in (1 << power for power in range(options.max_size.bit_length())):
        if nbytes < options.min_size:
            continue
        loop = max(1, min(options.loop, (1 << 28) // nbytes))
        data = np.zeros(nbytes, "B")
        comm.Barrier()
        times = [_timed(exchange, comm, data) for _ in range(options.skip + loop)][options.skip :]
        mean = statistics.mean(times)
        deviation = statistics.stdev(times) if len(times) > 1 else 0.0
        found.append((nbytes, mean, deviation))
        if not options.quiet and comm.Get_rank() == 0:
            speed = nbytes / mean / 1e6
            print(f"{nbytes:10d}{speed:18.2f} | {mean:.7e} ± {deviation:.4e} {loop:8d}", flush=True)
    return found


def _timed(exchange: Callable[[Any, Any], None], comm: Any, data: Any) -> float:
    began: float = MPI.Wtime()
    exchange(comm, data)
    end: float = MPI.Wtime()
    return (end - began) / 2


def _exchange_buffers(comm: Any, data: Any) -> None:
    if comm.Get_size() == 1:
        comm.Sendrecv(data, 0, 0, data.copy(), 0, 0)
    elif comm.Get_rank() == 0:
        comm.Send(data, 1)
        comm.Recv(data, 1)
    elif comm.Get_rank() == 1:
        comm.Recv(data, 0)
        comm.Send(data, 0)


def _exchange_objects(comm: Any, data: Any) -> None:
    if comm.Get_size() == 1:
        comm.sendrecv(data, 0, 0, None, 0, 0)
    elif comm.Get_rank() == 0:
        comm.send(data, 1)
        comm.recv(None, 1)
    elif comm.Get_rank() == 1:
        comm.send(comm.recv(None, 0), 0)


_COMMANDS: dict[str, Callable[..., Any]] = {
    "helloworld": helloworld,
    "ringtest": ringtest,
    "pingpong": pingpong,
}


def _parser(name: str, command: Callable[..., Any], verbose: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"python -m mpi4py.bench {name}", description=command.__doc__)
    parser.add_argument("-q", "--quiet", action="store_true", default=not verbose, help="no output")
    return parser


def _add_number(parser: Any, short: str, long: str, default: int, text: str) -> None:
    parser.add_argument(short, long, type=int, default=default, help=f"{text} ({default})")


def main(args: _Arguments = None) -> None:
    """Run the program that the command line names."""
    parser = argparse.ArgumentParser("python -m mpi4py.bench", description="Tries MPI.")
    parser.add_argument("command", choices=list(_COMMANDS), help="what to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments; -h shows them")
    options = parser.parse_args(args)
    _COMMANDS[options.command](MPI.COMM_WORLD, options.args)


if __name__ == "__main__":
    main()
