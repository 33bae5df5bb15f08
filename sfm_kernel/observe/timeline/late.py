"""Late senders and late receivers: processes that let others wait, and the cost.

A *late sender*: a receiver was blocked in ``recv`` before the message was sent. It waited for the
sender from the begin of that span until the message was sent::

    cost = sent - begin of the blocked span

A message belongs to the blocked span in which it was received last: the last one ended the wait
(others may have gone to callbacks). So the cost is at most the span's length. A receive that timed
out and was called again counts from its last call.

A *late receiver*: a sender was blocked in ``send`` because the receiver had not received. Two kinds
of wait count, one before the message was sent and one after it:

* for room: the inbox was full, and the message was sent at the end of the blocked span;
  ``cost = sent - begin of the blocked span``
* for the receipt (``buffering=0``, ``MPI_Ssend``): the sender's next blocked ``send`` span after
  the message was sent, in which no other message was sent; ``cost = received - begin of the
  blocked span``, at most the span, and zero if the receiver was there first: then the sender was
  late.

Acknowledgements that are messages (of MPI's synchronous and large sends) are not a program's
messages, and do not count: a process that waits for one is blocked in a send.

If both ends were late, one after the other, the message is marked with the greater cost. While an
end of the message is not known, or a wait lasts, there is no verdict. Waits in collective calls do
not count: they concern all processes, and no single message.

Source: F. Wolf and B. Mohr, Automatic performance analysis of hybrid MPI/OpenMP applications,
Journal of Systems Architecture 49 (2003); M. Geimer, F. Wolf, B. Wylie, E. Abraham, D. Becker and
B. Mohr, The Scalasca performance toolset architecture, Concurrency and Computation: Practice and
Experience 22 (2010). They count from the begin of the call; an observer sees a call only once it
blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

Location = dict[str, Any] | None

Late = Literal["sender", "receiver"]


@dataclass(slots=True, eq=False)
class Span:
    """A time in which a process was in one state; ``end`` is None while it lasts."""

    uid: str
    begin: float
    end: float | None
    state: str
    where: Location
    is_reported: bool = False  # ``news`` has given it, so its end has to follow

    @property
    def last(self) -> float:
        """When it ended, for comparisons."""
        return math.inf if self.end is None else self.end


@dataclass(slots=True, eq=False)
class Flight:
    """A message from its send to its receipt, as far as it is known."""

    src: str  # the last 16 digits of the sender's uid
    dest: str  # and of the receiver's
    number: int
    sent: float | None = None
    received: float | None = None
    nbytes: int = 0
    attributes: list[tuple[str, str]] = field(default_factory=list)
    sent_at: Location = None
    received_at: Location = None
    wait: Span | None = None  # the receiver was blocked until it arrived
    room: Span | None = None  # the sender was blocked until it could be sent
    drain: Span | None = None  # the sender was blocked after it was sent

    @property
    def departed(self) -> float | None:
        """The time it was sent, corrected if the send was recorded after the receipt."""
        if self.sent is None or self.received is None:
            return self.sent
        return min(self.sent, self.received)

    @property
    def last(self) -> float:
        """The time of its receipt, or of its send if no receipt is known."""
        times = (self.received, self.sent, -math.inf)
        return next(time for time in times if time is not None)


def judge(flight: Flight) -> tuple[Late | None, float, float | None]:
    """The end that was late, if any; the seconds that the other end waited; since when."""
    departed = flight.departed
    if departed is None or flight.received is None:
        return None, 0.0, None
    early = max(0.0, departed - flight.wait.begin) if flight.wait else 0.0
    room = max(0.0, departed - flight.room.begin) if flight.room else 0.0
    drain = 0.0
    if flight.drain and not early:
        drain = max(0.0, min(flight.received, flight.drain.last) - flight.drain.begin)
    if room + drain > early:
        first = flight.room if room else flight.drain
        return "receiver", room + drain, first.begin if first else None
    return ("sender", early, flight.wait.begin) if early and flight.wait else (None, 0.0, None)
