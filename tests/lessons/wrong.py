"""Typical mistakes of students in each exercise, and what the checks say of them.

A mistake is a solution with some of its text replaced, or a text of its own.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """``said`` has to stand in what is said. ``text``: the whole cell, if it is not the solution
    with each first of ``changed`` replaced by the second."""

    name: str
    what: str
    said: str
    changed: tuple[tuple[str, str], ...] = ()
    text: str = ""


def change(name: str, what: str, said: str, *changed: tuple[str, str]) -> Mistake:
    return Mistake(name, what, said, changed)


MISTAKES = [
    # ---- 00-first-steps
    change(
        "ring",
        "receives first",
        "Deadlock: 0 → 1 → 0",
        (
            "send(dest=(rank + 1) % size, word=word)\n    return recv(src=(rank - 1) % size).word",
            "w = recv(src=(rank - 1) % size).word\n    send(dest=(rank + 1) % size, word=word)\n"
            "    return w",
        ),
    ),
    change(
        "ring",
        "no first after the last",
        "no process is named 2. There: 0, 1",
        ("(rank + 1) % size", "rank + 1"),
    ),
    change(
        "ring",
        "expects it from the right",
        "with 3 processes (right with 2), it hangs",
        ("(rank - 1) % size", "(rank + 1) % size"),
    ),
    change(
        "ring",
        "no return",
        "Does every branch of ring end with a `return`?",
        ("return recv", "recv"),
    ),
    change(
        "ring",
        "sends twice",
        "2 messages were never received: from ",
        ("    return", "    send(dest=(rank + 1) % size, word=word)\n    return"),
    ),
    change("swap", "nobody is alone", "no process is named 3", ("partner == size", "False")),
    change(
        "swap",
        "receives first",
        "1 waits for recv(src=0) in cell 7, line 7 (swap)",
        (
            "send(dest=partner, word=word)\n    return recv(src=partner).word",
            "other = recv(src=partner).word\n    send(dest=partner, word=word)\n    return other",
        ),
    ),
    change("swap", "the alone one returns nothing", "and 'l", ("return word", "return")),
    # ---- 00-welcome
    change(
        "collect",
        "in the order of arrival",
        "rank 0 returned [",
        ("recv(src=other)", "recv()"),
    ),
    change(
        "collect", "forgets the last", "rank 0 returned ", ("range(1, size)", "range(1, size - 1)")
    ),
    change("collect", "forgets itself", "rank 0 returned [", ("[word] + ", "")),
    change("collect", "all return it", "and None was expected", ("return None", "return [word]")),
    change(
        "capitals_first", "no condition", "was expected", ("src=left, word=str.istitle", "src=left")
    ),
    change(
        "capitals_first",
        "a condition that is never true",
        "which <isupper> does not accept",
        ("str.istitle", "str.isupper"),
    ),
    # ---- 01-cpi
    change("simpson", "forgets to weigh the middle", "was expected", ("4 * f((a", "f((a")),
    change(
        "simpson",
        "tells n to all but the last",
        "1 waits for recv(src=0)",
        (
            "for other in range(1, size):\n            send",
            "for other in range(1, size - 1):\n            send",
        ),
    ),
    change(
        "simpson",
        "leaves intervals out",
        "was expected",
        ("range(rank, n, size)", "range(rank + 1, n, size)"),
    ),
    # ---- 02-ping-pong
    change("pingpong", "takes 1 for the step", "rank 0 returned 10", ("+ step", "+ 1")),
    change(
        "pingpong",
        "1 plays a round less",
        "0 waits for recv(src=1)",
        ("range(rounds)", "range(rounds - rank)"),
    ),
    change(
        "pingpong", "both return", "rank 1 returned 0, and None", (" if rank == 0 else None", "")
    ),
    change(
        "few_messages",
        "a message for each number",
        "1000 messages in all; 1 is enough",
        (
            "        send(dest=0, total=total)\n",
            "        for one in numbers:\n            send(dest=0, total=one)\n",
        ),
        ("range(1, size)", "range(1000 * (size - 1))"),
    ),
    change("few_messages", "forgets its own", "rank 0 returned", ("return total + ", "return ")),
    # ---- 03-dot-product
    change(
        "same_bits",
        "as they come",
        "Only the last bits differ",
        ("recv(src=other).part", "recv().part"),
    ),
    change(
        "same_bits",
        "forgets the last",
        "Deadlock: 1 ",
        (
            "for other in range(1, size):\n        send",
            "for other in range(1, size - 1):\n        send",
        ),
    ),
    change(
        "halo",
        "all send first",
        "This check has no buffers",
        ("rank % 2 == turn", "turn == 0"),
    ),
    change("halo", "a circle", "no process is named -1", ("rank > 0", "True")),
    # ---- 04-chunked-mpi
    change(
        "pipeline",
        "in one message",
        "sent only 1 message in all; the exercise asks for 10",
        ("data[start:start + chunk]", "data"),
        ("start += chunk", "start = len(data)"),
    ),
    change("pipeline", "no end", "1 waits for recv(src=0)", ("last=last)", "last=False)")),
    change(
        "pipeline", "the last sends on, too", "no process is named 2", ("rank < size - 1", "True")
    ),
    # ---- 05-reduction-scaling
    Mistake(
        "tree_sum",
        "all to rank 0",
        "rank 0 received 4 messages; no rank needs more than 3",
        text="def tree_sum(number):\n    if rank:\n        send(dest=0, n=number)\n"
        "        return None\n    return number + sum(recv().n for _ in range(1, size))\n",
    ),
    change(
        "tree_sum",
        "only for powers of two",
        "Nobody is named 3",
        ("if rank + apart < size:", "if True:"),
    ),
    # ---- 06-speedes
    change("pass_on", "does not pass on", "returned", ("left > 1", "left > 99")),
    change("pass_on", "passes on once too often", "returned", ("left > 1", "left > 0")),
    # ---- 07-mpi
    change(
        "safe_ring",
        "all send first",
        "0 is in comm.send(",
        (
            "return comm.sendrecv(number, dest=right, source=left)",
            "comm.send(number, dest=right)\n    return comm.recv(source=left)",
        ),
    ),
    change(
        "safe_ring",
        "expects it from the right",
        "with 3 processes (right with 2), ",
        ("source=left", "source=right"),
    ),
    change(
        "life",
        "one row of two",
        "was expected",
        ("        comm.Sendrecv(board[-2], dest=down, recvbuf=board[0], source=up)\n", ""),
    ),
    change(
        "life", "up and down exchanged", "was expected", ("board[1], dest=up", "board[-2], dest=up")
    ),
    # ---- 08-why-does-it-hang
    change(
        "hand_out",
        "forgets to tell the last",
        "2 waits for recv(src=0)",
        ("for worker in range(1, size):", "for worker in range(1, max(2, size - 1)):"),
    ),
    change(
        "hand_out", "hands out to itself", "rank ", ("1 + number % (size - 1)", "number % size")
    ),
    change(
        "neighbours", "-1 % size", "Nobody is named -1", ("(rank - 1) % size", "rank - 1 % size")
    ),
    change(
        "steady",
        "the barrier first",
        "Deadlock: 0 → 1 → 0",
        ("    if rank == 0:\n        send(dest=last, tag='plan', plan=plan)\n", ""),
        (
            "    group.barrier()\n",
            "    group.barrier()\n    if rank == 0:\n"
            "        send(dest=last, tag='plan', plan=plan)\n",
        ),
    ),
    # ---- 09-c
    change("token", "a step less", "was expected", ("step < size;", "step < size - 1;")),
    change(
        "token",
        "all send first",
        "MPI_Ssend(",
        (
            "MPI_Sendrecv_replace(&number, 1, MPI_LONG, right, 7, left, 7, MPI_COMM_WORLD,",
            "MPI_Ssend(&number, 1, MPI_LONG, right, 7, MPI_COMM_WORLD);\n"
            "        MPI_Recv(&number, 1, MPI_LONG, left, 7, MPI_COMM_WORLD,",
        ),
    ),
    change(
        "token", "a semicolon", "your cell does not compile:\n", ("sum += number;", "sum += number")
    ),
    change("primes", "1 is no prime", "was expected", ("n = 2 + rank", "n = 1 + rank")),
    change("primes", "divides by zero", "division by zero", ("n % d == 0", "n % (d - d) == 0")),
    # ---- 10-sites
    Mistake(
        "far_sum",
        "all to rank 0",
        "messages went from site to site; 2 are enough",
        text="def far_sum(number):\n    if rank:\n        send(dest=0, n=number)\n"
        "        return recv(src=0).total\n"
        "    total = number + sum(recv(src=r).n for r in range(1, size))\n"
        "    for r in range(1, size):\n        send(dest=r, total=total)\n    return total\n",
    ),
    change("far_sum", "the other site does not answer", "was expected", ("total += recv", "recv")),
    # ---- 11-river
    Mistake(
        "shuffle",
        "a message for each word",
        "the results are right, but the processes sent 13 messages in all; 2 are enough",
        text="def shuffle(words):\n    for word in [*words, None]:\n"
        "        for r in range(size):\n            if word is None or len(word) % size == r:\n"
        "                send(dest=r, word=word)\n    counts, left = {}, size\n    while left:\n"
        "        word = recv().word\n        if word is None:\n            left -= 1\n"
        "        else:\n            counts[word] = counts.get(word, 0) + 1\n    return counts\n",
    ),
    change(
        "shuffle",
        "forgets its own",
        "was expected",
        ("shares[rank] if r == rank", "() if r == rank"),
    ),
    change(
        "shuffle",
        "receives first",
        "Deadlock: 0 → 1 → 0",
        (
            "    for other in range(size):\n        if other != rank:\n"
            "            send(dest=other, words=shares[other])\n",
            "    came = [recv(src=r) for r in range(size) if r != rank]\n",
        ),
    ),
]
