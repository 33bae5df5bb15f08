"""A process of a world in the lab, which does jobs, one after the other.

    python -m sfm_kernel.lessons.sites.program NAME      with SFM_WORLD, SFM_DIRECTORY and SFM_KEY

``world`` starts it, sends it lines of JSON, and receives one for each. Times of different programs
can be compared, since they share one machine's clock.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import sfm_kernel
from sfm_kernel.directory import RemoteDirectory
from sfm_kernel.errors import PeerLost, SFMError
from sfm_kernel.lessons.sites.counts import REPORTED_AFTER, of_links, of_reports
from sfm_kernel.lessons.sites.raw import WARM_BYTES
from sfm_kernel.transport.zmq import ZmqTransport

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

SILENCE = 0.05
"""Seconds without a message that are reported as a silence."""


class Numbers:
    """Whether numbered messages of each sender came once, and in order."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._skipped: dict[str, set[int]] = {}
        self._doubled = self._late = 0

    def add(self, src: str, number: int) -> None:
        """Count a message that has come."""
        due, skipped = self._next.get(src, 0), self._skipped.setdefault(src, set())
        if number >= due:
            skipped.update(range(due, number))
            self._next[src] = number + 1
        elif number in skipped:
            skipped.remove(number)
            self._late += 1
        else:
            self._doubled += 1

    def counts(self) -> dict[str, int]:
        """The numbers of messages that are missing, came twice, or came after a later one."""
        lost = sum(map(len, self._skipped.values()))
        return {"lost": lost, "doubled": self._doubled, "late": self._late}


class Program:
    """Does the jobs; each public method is one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sfm: Endpoint | None = None

    @property
    def sfm(self) -> Endpoint:
        """The endpoint, once joined."""
        assert self._sfm is not None, "join first"
        return self._sfm

    def join(self) -> dict[str, Any]:
        """Join the world; return the seconds that this took."""
        start = time.monotonic()
        self._sfm = sfm_kernel.join(os.environ["SFM_WORLD"], self._name)
        return {"join_s": time.monotonic() - start}

    def know(self, names: list[str], seconds: float = 30.0) -> None:
        """Wait until this process knows that all of these have joined."""
        end = time.monotonic() + seconds
        while missing := set(names) - {member.name for member in self.sfm.members()}:
            if time.monotonic() > end:
                raise SFMError(f"{sorted(missing)} have not joined in {seconds:g} s")
            time.sleep(0.02)

    def settle(self, to: str, kind: str, seconds: float = 20.0) -> dict[str, Any]:
        """Wait until the route to ``to`` is of that kind; return the kind."""
        end = time.monotonic() + seconds
        while (found := self.sfm.route_kind(to)) != kind and time.monotonic() < end:
            time.sleep(0.02)
        if found != kind:
            raise SFMError(f"messages to {to!r} go by {found!r}, not by {kind!r}")
        return {"kind": found}

    def kind(self, to: str) -> dict[str, Any]:
        """The kind of the route to ``to``."""
        return {"kind": self.sfm.route_kind(to)}

    def see_gateways(self, count: int, seconds: float = 20.0) -> None:
        """Wait until ``count`` gateways report that each is connected to those of other sites."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reports = self._reports()
            others = {report["uid"]: report["site"] for report in reports}
            if len(reports) == count and all(
                {to["uid"] for to in report["gateways"] if to["connections"]}
                >= {uid for uid, site in others.items() if site != report["site"]}
                for report in reports
            ):
                return
            time.sleep(0.05)
        raise SFMError(f"{count} gateways should have met in {seconds:g} s, and have not")

    def gateways_count(self) -> dict[str, int]:
        """The kernels' counts of connections between gateways."""
        time.sleep(REPORTED_AFTER)
        return of_reports(self._reports())

    def count(self) -> dict[str, int]:
        """The kernel's counts of this process's direct links to other sites."""
        (far,) = (end for end in self.sfm._transports if isinstance(end, ZmqTransport))
        return of_links(far.exchange.connections())

    def _reports(self) -> list[dict[str, Any]]:
        key = bytes.fromhex(os.environ["SFM_KEY"])
        world, address = os.environ["SFM_WORLD"], os.environ["SFM_DIRECTORY"]
        with RemoteDirectory(world, address, key) as directory:
            return [{"uid": uid, **report} for uid, report in directory.reports().items()]

    def serve(self, idle: float = 120.0) -> dict[str, Any]:
        """Answer questions until a message says stop, or none comes for ``idle`` seconds.

        Returns: "answered" and "heard", the numbers of answers and of numbered questions; "lost",
        "doubled" and "late", the numbers of questions that were skipped, came twice, or came after
        a later one; "first_at", the time of the first; "silences", the begin and end of each time
        longer than ``SILENCE`` in which none came.
        """
        numbers, silences = Numbers(), list[tuple[float, float]]()
        answered = heard = 0
        first = last = None
        ended = ""
        while not ended:
            try:
                question = self.sfm.recv(idle, tag="question")
            except SFMError as error:
                ended = type(error).__name__
                continue
            if "stop" in question:
                ended = "stop"
                continue
            now = time.monotonic()
            first = first or now
            if last and now - last > SILENCE:
                silences.append((last, now))
            last = now
            if "counted" in question:
                heard += 1
                numbers.add(question.src, question.number)
            if question.wanted:
                answered += 1
                self.sfm.send(dest=question.src, tag="answer", number=question.number)
        return {
            "answered": answered,
            "heard": heard,
            "first_at": first,
            "silences": silences,
            "ended": ended,
            **numbers.counts(),
        }

    def stop(self, to: str) -> None:
        """Let ``to`` stop serving."""
        self.sfm.send(dest=to, tag="question", stop=True)

    def meet(self, to: str) -> dict[str, Any]:
        """Send the first message to ``to``; return its time, and the seconds of round trips."""
        sent_at = time.monotonic()
        trips = list(self._asked(to, 8, 5))
        return {"sent_at": sent_at, "round_trips_s": trips}

    def ask(
        self, to: str, length: int, count: int, silence: float = 0.0, warm: int = 0
    ) -> dict[str, Any]:
        """Round trips with ``length`` bytes there; before each traffic, and then a silence.

        Args:
            silence: its length in seconds.
            warm: the number of times that ``WARM_BYTES`` are sent, each with its answer.
        """
        return self.ask_silently(to, length, [silence] * count, warm)

    def ask_silently(
        self, to: str, length: int, silences: list[float], warm: int = 3
    ) -> dict[str, Any]:
        """Round trips with ``length`` bytes there, one after each of these silences."""
        seconds = list[float]()
        for silence in silences:
            list(self._asked(to, WARM_BYTES, warm))
            time.sleep(silence)
            seconds += self._asked(to, length, 1)
        return {"seconds": seconds}

    def lose(self, src: str) -> dict[str, Any]:
        """Wait for a message of ``src``, which is killed meanwhile; return when PeerLost came."""
        try:
            self.sfm.recv(src=src, tag="never")
        except PeerLost:
            return {"at": time.monotonic()}
        raise SFMError(f"{src!r} has sent what it never sends")

    def flood(self, to: str, length: int, seconds: float, patience: float) -> dict[str, Any]:
        """Send numbered messages as fast as possible for ``seconds``; wait for the last answer.

        ``patience``: the longest wait for that answer, in seconds.
        """
        data, start, number = np.zeros(length, np.uint8), time.monotonic(), 0
        while time.monotonic() < start + seconds:
            self._ask_numbered(to, number, data=data)
            number += 1
        self._ask_numbered(to, number, wanted=True)
        self.sfm.recv(patience, tag="answer", number=number)
        return {"sent": number + 1, "seconds": time.monotonic() - start}

    def _ask_numbered(self, to: str, number: int, wanted: bool = False, **more: Any) -> None:
        self.sfm.send(dest=to, tag="question", number=number, counted=True, wanted=wanted, **more)

    def request(self, to: str, length: int, seconds: float, pause: float) -> dict[str, Any]:
        """Ask small questions for ``seconds``; return the seconds of each."""
        took, end = list[float](), time.monotonic() + seconds
        while time.monotonic() < end:
            took += self._asked(to, length, 1)
            time.sleep(pause)
        return {"seconds": took}

    def bulk(self, to: str, length: int, seconds: float) -> dict[str, Any]:
        """Send large messages for ``seconds``, two under way; return their number and time."""
        data, start, number = np.zeros(length, np.uint8), time.monotonic(), 0
        while time.monotonic() < start + seconds:
            self.sfm.send(dest=to, tag="question", data=data, number=number, wanted=True)
            if number > 0:
                self.sfm.recv(tag="answer", number=number - 1)
            number += 1
        self.sfm.recv(tag="answer", number=number - 1)
        return {"messages": number, "seconds": time.monotonic() - start}

    def barriers(self, members: list[str], count: int) -> dict[str, Any]:
        """Seconds of each of ``count`` barriers of these members, in this order, after a first."""
        from sfm_kernel.collectives import Group  # takes 0.1 s, and other jobs do not need it

        group = Group(self.sfm, members)
        seconds = []
        for _ in range(count + 1):
            start = time.monotonic()
            group.barrier()
            seconds.append(time.monotonic() - start)
        return {"seconds": seconds[1:]}

    def play(self, steps: list[Any], iterations: int) -> dict[str, Any]:
        """Compute and exchange, as ``patterns`` describes; return the seconds of each iteration.

        A number is a time to compute; a pair of lists has the receivers with numbers of bytes, and
        the senders.
        """
        seconds = []
        room = np.zeros(max([1, *(n for step in steps if isinstance(step, list)
                                  for _, n in step[0])]), np.uint8)  # fmt: skip
        for _ in range(iterations):
            start = time.monotonic()
            for step in steps:
                if isinstance(step, list):
                    for to, length in step[0]:
                        self.sfm.send(dest=to, tag="step", data=room[:length])
                    for src in step[1]:
                        self.sfm.recv(src=src, tag="step")
                else:
                    time.sleep(step)
            seconds.append(time.monotonic() - start)
        return {"seconds": seconds}

    def stream(self, to: str, length: int, count: int) -> dict[str, Any]:
        """Seconds until ``count`` messages, sent one after the other, have all arrived."""
        data = np.zeros(length, np.uint8)
        start = time.monotonic()
        for number in range(count):
            last = number == count - 1
            self.sfm.send(dest=to, tag="question", data=data, number=number, wanted=last)
        self.sfm.recv(tag="answer", number=count - 1)
        return {"seconds": time.monotonic() - start}

    def beat(
        self, to: str, seconds: float, late: float, pause: float = 0.1, patience: float = 1.0
    ) -> Any:
        """Ask again and again for ``seconds``; return each send and answer time, and any error.

        It ends ``patience`` seconds after an answer that has taken more than ``late`` seconds: the
        path is back, and since answers come in order, there is no earlier one to wait for.

        ``patience``: seconds to wait for an answer before the next question; later answers count,
        too.
        """
        beats: list[list[float | None]] = []
        start, ended = time.monotonic(), ""
        end = start + seconds
        while time.monotonic() < end and not ended:
            beats.append([time.monotonic(), None])
            try:
                number = len(beats) - 1
                self._ask_numbered(to, number, wanted=True)
                self._hear(beats, patience, number)
            except SFMError as error:
                ended = f"{type(error).__name__} after {time.monotonic() - start:.1f} s"
            back = [heard for asked, heard in beats if asked and heard and heard - asked > late]
            end = min([end, *(heard + patience for heard in back)])
            time.sleep(pause)
        try:
            self._hear(beats, patience, -1)
        except SFMError:
            pass  # reported already
        return {"beats": beats, "ended": ended}

    def _hear(self, beats: list[list[float | None]], patience: float, until: int) -> None:
        deadline = time.monotonic() + patience
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                number = self.sfm.recv(remaining, tag="answer").number
            except sfm_kernel.RecvTimeout:
                return
            beats[number][1] = time.monotonic()
            if number == until:
                return

    def _asked(self, to: str, length: int, count: int) -> Iterator[float]:
        data = np.zeros(length, np.uint8)
        for number in range(count):
            start = time.monotonic()
            self.sfm.send(dest=to, tag="question", data=data, number=number, wanted=True)
            self.sfm.recv(tag="answer", number=number)
            yield time.monotonic() - start


def main(arguments: list[str]) -> int:
    """Do the job of each line of stdin, until it ends."""
    program = Program(*arguments)
    for line in sys.stdin:
        job = json.loads(line)
        method: Callable[..., Any] = getattr(program, job.pop("job"))
        try:
            answer = method(**job)
        except SFMError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    if program._sfm is not None:
        program.sfm.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
