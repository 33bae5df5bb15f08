"""Typical mistakes of students in each exercise, and what the checks say of them."""

from __future__ import annotations


class Mistake:
    """A wrong cell for an exercise, and a part of the verdict on it.

    Args:
        what: the mistake in a few words.
        said: must stand in the verdict.
        changed: texts of the solution, each with its replacement.
        text: the cell, if it is no changed solution.
    """

    def __init__(self, what: str, said: str, *changed: tuple[str, str], text: str = "") -> None:
        self.what, self.said, self.changed, self.text = what, said, changed, text


MISTAKES = {
    # ---- 00-first-steps
    "ring": [
        Mistake(
            "receives first",
            "Deadlock: 0 → 1 → 0",
            (
                "send(dest=(rank + 1) % size, word=word)\n"
                "    return recv(src=(rank - 1) % size).word",
                "w = recv(src=(rank - 1) % size).word\n"
                "    send(dest=(rank + 1) % size, word=word)\n    return w",
            ),
        ),
        Mistake(
            "no first after the last",
            "no process is named 2. There: 0, 1",
            ("(rank + 1) % size", "rank + 1"),
        ),
        Mistake(
            "expects it from the right",
            "with 3 processes (right with 2), it hangs",
            ("(rank - 1) % size", "(rank + 1) % size"),
        ),
        Mistake(
            "no return", "Does every branch of ring end with a `return`?", ("return recv", "recv")
        ),
        Mistake(
            "sends twice",
            "2 messages were never received: from ",
            ("    return", "    send(dest=(rank + 1) % size, word=word)\n    return"),
        ),
    ],
    "swap": [
        Mistake("nobody is alone", "no process is named 3", ("partner == size", "False")),
        Mistake(
            "receives first",
            "1 waits for recv(src=0) in cell 7, line 7 (swap)",
            (
                "send(dest=partner, word=word)\n    return recv(src=partner).word",
                "other = recv(src=partner).word\n    send(dest=partner, word=word)\n"
                "    return other",
            ),
        ),
        Mistake("the alone one returns nothing", "and 'l", ("return word", "return")),
    ],
    # ---- 00-welcome
    "collect": [
        Mistake("in the order of arrival", "rank 0 returned [", ("recv(src=other)", "recv()")),
        Mistake("forgets the last", "rank 0 returned ", ("range(1, size)", "range(1, size - 1)")),
        Mistake("forgets itself", "rank 0 returned [", ("[word] + ", "")),
        Mistake("all return it", "and None was expected", ("return None", "return [word]")),
    ],
    "capitals_first": [
        Mistake("no condition", "was expected", ("src=left, word=str.istitle", "src=left")),
        Mistake(
            "a condition that is never true",
            "which <isupper> does not accept",
            ("str.istitle", "str.isupper"),
        ),
    ],
    # ---- 01-cpi
    "simpson": [
        Mistake("forgets to weigh the middle", "was expected", ("4 * f((a", "f((a")),
        Mistake(
            "tells n to all but the last",
            "1 waits for recv(src=0)",
            (
                "for other in range(1, size):\n            send",
                "for other in range(1, size - 1):\n            send",
            ),
        ),
        Mistake(
            "leaves intervals out",
            "was expected",
            ("range(rank, n, size)", "range(rank + 1, n, size)"),
        ),
    ],
    # ---- 02-ping-pong
    "pingpong": [
        Mistake("takes 1 for the step", "rank 0 returned 10", ("+ step", "+ 1")),
        Mistake(
            "1 plays a round less",
            "0 waits for recv(src=1)",
            ("range(rounds)", "range(rounds - rank)"),
        ),
        Mistake("both return", "rank 1 returned 0, and None", (" if rank == 0 else None", "")),
    ],
    "few_messages": [
        Mistake(
            "a message for each number",
            "1000 messages in all; 1 is enough",
            (
                "        send(dest=0, total=total)\n",
                "        for one in numbers:\n            send(dest=0, total=one)\n",
            ),
            ("range(1, size)", "range(1000 * (size - 1))"),
        ),
        Mistake("forgets its own", "rank 0 returned", ("return total + ", "return ")),
    ],
    # ---- 03-dot-product
    "same_bits": [
        Mistake(
            "as they come", "Only the last bits differ", ("recv(src=other).part", "recv().part")
        ),
        Mistake(
            "forgets the last",
            "Deadlock: 1 ",
            (
                "for other in range(1, size):\n        send",
                "for other in range(1, size - 1):\n        send",
            ),
        ),
    ],
    "halo": [
        Mistake("all send first", "This check has no buffers", ("rank % 2 == turn", "turn == 0")),
        Mistake("a circle", "no process is named -1", ("rank > 0", "True")),
    ],
    # ---- 04-chunked-mpi
    "pipeline": [
        Mistake(
            "in one message",
            "sent only 1 message in all; the exercise asks for 10",
            ("data[start:start + chunk]", "data"),
            ("start += chunk", "start = len(data)"),
        ),
        Mistake("no end", "1 waits for recv(src=0)", ("last=last)", "last=False)")),
        Mistake("the last sends on, too", "no process is named 2", ("rank < size - 1", "True")),
    ],
    # ---- 05-reduction-scaling
    "tree_sum": [
        Mistake(
            "all to rank 0",
            "rank 0 received 4 messages; no rank needs more than 3",
            text="def tree_sum(number):\n    if rank:\n        send(dest=0, n=number)\n"
            "        return None\n    return number + sum(recv().n for _ in range(1, size))\n",
        ),
        Mistake(
            "only for powers of two", "Nobody is named 3", ("if rank + apart < size:", "if True:")
        ),
    ],
    # ---- 06-speedes
    "pass_on": [
        Mistake("does not pass on", "returned", ("left > 1", "left > 99")),
        Mistake("passes on once too often", "returned", ("left > 1", "left > 0")),
    ],
    # ---- 07-mpi
    "safe_ring": [
        Mistake(
            "all send first",
            "0 is in comm.send(",
            (
                "return comm.sendrecv(number, dest=right, source=left)",
                "comm.send(number, dest=right)\n    return comm.recv(source=left)",
            ),
        ),
        Mistake(
            "expects it from the right",
            "with 3 processes (right with 2), ",
            ("source=left", "source=right"),
        ),
    ],
    "life": [
        Mistake(
            "one row of two",
            "was expected",
            ("        comm.Sendrecv(board[-2], dest=down, recvbuf=board[0], source=up)\n", ""),
        ),
        Mistake(
            "up and down exchanged", "was expected", ("board[1], dest=up", "board[-2], dest=up")
        ),
    ],
    # ---- 08-why-does-it-hang
    "hand_out": [
        Mistake(
            "forgets to tell the last",
            "2 waits for recv(src=0)",
            ("for worker in range(1, size):", "for worker in range(1, max(2, size - 1)):"),
        ),
        Mistake("hands out to itself", "rank ", ("1 + number % (size - 1)", "number % size")),
    ],
    "neighbours": [
        Mistake("-1 % size", "Nobody is named -1", ("(rank - 1) % size", "rank - 1 % size"))
    ],
    "steady": [
        Mistake(
            "the barrier first",
            "Deadlock: 0 → 1 → 0",
            ("    if rank == 0:\n        send(dest=last, tag='plan', plan=plan)\n", ""),
            (
                "    group.barrier()\n",
                "    group.barrier()\n    if rank == 0:\n"
                "        send(dest=last, tag='plan', plan=plan)\n",
            ),
        )
    ],
    # ---- 09-c
    "token": [
        Mistake("a step less", "was expected", ("step < size;", "step < size - 1;")),
        Mistake(
            "all send first",
            "MPI_Ssend(",
            (
                "MPI_Sendrecv_replace(&number, 1, MPI_LONG, right, 7, left, 7, MPI_COMM_WORLD,",
                "MPI_Ssend(&number, 1, MPI_LONG, right, 7, MPI_COMM_WORLD);\n"
                "        MPI_Recv(&number, 1, MPI_LONG, left, 7, MPI_COMM_WORLD,",
            ),
        ),
        Mistake(
            "a semicolon", "your cell does not compile:\n", ("sum += number;", "sum += number")
        ),
    ],
    "primes": [
        Mistake("1 is no prime", "was expected", ("n = 2 + rank", "n = 1 + rank")),
        Mistake("divides by zero", "division by zero", ("n % d == 0", "n % (d - d) == 0")),
    ],
    # ---- 10-sites
    "far_sum": [
        Mistake(
            "all to rank 0",
            "messages went from site to site; 2 are enough",
            text="def far_sum(number):\n    if rank:\n        send(dest=0, n=number)\n"
            "        return recv(src=0).total\n"
            "    total = number + sum(recv(src=r).n for r in range(1, size))\n"
            "    for r in range(1, size):\n        send(dest=r, total=total)\n    return total\n",
        ),
        Mistake("the other site does not answer", "was expected", ("total += recv", "recv")),
    ],
    # ---- 11-river
    "shuffle": [
        Mistake(
            "a message for each word",
            "the results are right, but the processes sent 13 messages in all; 2 are enough",
            text="def shuffle(words):\n    for word in [*words, None]:\n"
            "        for r in range(size):\n            if word is None or len(word) % size == r:\n"
            "                send(dest=r, word=word)\n    counts, left = {}, size\n"
            "    while left:\n        word = recv().word\n        if word is None:\n"
            "            left -= 1\n        else:\n"
            "            counts[word] = counts.get(word, 0) + 1\n    return counts\n",
        ),
        Mistake(
            "forgets its own", "was expected", ("shares[rank] if r == rank", "() if r == rank")
        ),
        Mistake(
            "receives first",
            "Deadlock: 0 → 1 → 0",
            (
                "    for other in range(size):\n        if other != rank:\n"
                "            send(dest=other, words=shares[other])\n",
                "    came = [recv(src=r) for r in range(size) if r != rank]\n",
            ),
        ),
    ],
}
