"""Chunked transfers: small sends are eager, large ones go in acknowledged chunks.

A *transfer* moves ``count`` items from a buffer of one process into a buffer of another. If they
fit into one chunk, they go in one message, and the sender is done. Otherwise the receiver would
need memory for all of them beside the buffer that it has ready. So they go chunk by chunk; the
receiver copies each chunk into its buffer, lets go of it, and acknowledges it. At most ``window``
chunks are sent and not acknowledged: that is all the memory that the receiver needs. The paper's
protocol has one chunk on its way, and waits for each acknowledgement; with a window, the next
chunks are copied and sent meanwhile.

What travels, by attribute (the paper's names):

=============  ==================================================================================
every message  ``tag``, ``comm`` (the namespace's name); and ``transfer`` or, from the receiver,
               ``ack``: a name that no other transfer has
items          ``mtype`` "small" or "large", ``datatype``, ``count`` (of the transfer), ``start``,
               ``end`` (of this message; 0 is the first item of the transfer), ``last``, ``buf``
the end        ``mtype`` "failed" or "interrupted", ``why``, ``last``: the sender gives up
``ack``        ``end`` and ``last`` of the chunk; or ``refused`` or ``failed``, why, and ``last``
=============  ==================================================================================

A transfer opens with the message whose ``start`` is 0; the receiver takes the first such message
that matches, and from then on only those with this ``transfer``. Each side's messages end with
exactly one whose ``last`` is true. So messages of several transfers are never mixed up: neither of
two namespaces or tags, nor of one process that sends and receives at once, nor of many threads.

``mpi_send_buf`` blocks like ``MPI_Send``: eager or, if there are more items than fit into a chunk,
until the receiver has them. Two processes that send large buffers to each other, and receive
afterwards, wait for each other for ever. Let one receive first, or send in a thread.

Source: SFM paper, section 3, Example 3. Its program waits for an acknowledgement of anything,
and takes any message with the right source and tag; here both say to which transfer they belong.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from numpy.typing import DTypeLike

from sfm_kernel.endpoint import UNBOUNDED
from sfm_kernel.errors import PeerLost, SFMError, TransferError
from sfm_kernel.mpi.items import Items, destination, item_type, source, whole
from sfm_kernel.mpi.leftovers import drop_later, drop_now, drop_what_came, tidy
from sfm_kernel.mpi.transfers import is_orphan, new_transfer

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Context, Endpoint
    from sfm_kernel.message import Message
    from sfm_kernel.mpi.namespace import Namespace

CHUNK_BYTES = 1 << 18
"""Bytes of a chunk, and the most that is sent eagerly."""

WINDOW = 4
"""Chunks that may be on their way."""

ANY = None
"""As ``src`` or ``tag`` of a receive: whoever sends, whatever the tag."""

_speakers: WeakKeyDictionary[Endpoint, Context] = WeakKeyDictionary()
"""For each endpoint, itself without a limit of buffering."""


@dataclass(frozen=True)
class Received:
    """What a receive has taken: how many items, from which rank, with which tag."""

    count: int
    src: int
    tag: int | str


def mpi_getchunksize(datatype: DTypeLike, chunk_bytes: int = CHUNK_BYTES) -> int:
    """How many items of this type a chunk has: as many as ``chunk_bytes`` hold, at least 1."""
    return max(1, whole(chunk_bytes, "chunk_bytes", 1) // item_type(datatype).itemsize)


def plan(count: int, chunk: int) -> Iterator[tuple[int, int, bool]]:
    """``(start, end, last)`` of each message that moves ``count`` items, ``chunk`` at a time.

    Every item is in exactly one message, none is empty (but the only one, for no items at all),
    and only the last may be shorter than a chunk.
    """
    for start in range(0, max(count, 1), chunk):
        end = min(start + chunk, count)
        yield start, end, end == count


def mpi_send_buf(
    sfm: Endpoint,
    buf: Any,
    offset: int,
    count: int,
    datatype: DTypeLike,
    dest: int,
    tag: int | str,
    comm: Namespace,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    window: int = WINDOW,
) -> None:
    """Send ``count`` items of ``buf``, from number ``offset`` on, to a process that receives them.

    Blocks: with up to ``chunk_bytes`` of items, as ``send`` does; with more, until the receiver
        has them all in its buffer. Stop (KeyboardInterrupt) ends it; the receiver is told.
    Args:
        sfm: this process's endpoint, or a context of it.
        buf: a list or tuple of simple values, a NumPy array, or anything with the buffer
            protocol. An array of several dimensions counts as its memory, in C's order; with one
            dimension it may have strides. Bytes are memory that holds items of any type.
        offset, count: in items.
        datatype: NumPy's name for the type of the items.
        dest: rank of the receiver in ``comm``.
        tag: a number or a text, for the receiver to choose by.
        comm: the namespace. Transfers of two namespaces are apart, whatever their tags.
        chunk_bytes: size of a chunk; at least one item goes in each.
        window: chunks that the receiver may have beside its buffer, at least 1.
    Raises:
        TypeError, ValueError: an argument is wrong; nothing was sent, and the receiver waits on.
        TypeError, OverflowError: a value of a list is no item of this type. The list is looked at
            chunk by chunk; if some have been sent, the receiver is told.
        TransferError: the receiver has less room, expects another type, or was interrupted.
        PeerLost: the receiver died. Otherwise as ``send``.
    Order, Cost: as ``send``; a copy of each chunk here and one there, a message and its
        acknowledgement for each chunk, and memory for ``window`` chunks.
    Source: SFM paper, Example 3.
    Example:
        >>> from sfm_kernel.mpi import Namespace
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     comm, got = Namespace("doc", ("A",)), [0] * 6
        ...     mpi_send_buf(sfm, [10, 20, 30, 40], 1, 2, "int64", 0, 7, comm)
        ...     mpi_recv_buf(sfm, got, 3, 3, "int64", 0, 7, comm)
        Received(count=2, src=0, tag=7)
        >>> got
        [0, 0, 0, 20, 30, 0]
    """
    items = source(buf, offset, count, datatype)
    chunk = mpi_getchunksize(datatype, chunk_bytes)
    window = whole(window, "window", 1)
    tag = _checked_tag(tag)
    to: dict[str, Any] = {"dest": comm.rank_to_name(dest), "tag": tag}
    about: dict[str, Any] = {
        "comm": comm.name,
        "transfer": new_transfer(sfm),
        "datatype": items.dtype.str,
        "count": items.count,
    }
    tidy(sfm)
    if items.count <= chunk:
        buf = items.get(0, items.count)
        sfm.send(**to, mtype="small", start=0, end=items.count, last=True, **about, buf=buf)
    else:
        _send_chunks(sfm, to, about, items, chunk, window)


def mpi_recv_buf(
    sfm: Endpoint,
    buf: Any,
    offset: int,
    count: int,
    datatype: DTypeLike,
    src: int | None,
    tag: int | str | None,
    comm: Namespace,
) -> Received:
    """Receive at most ``count`` items into ``buf``, from number ``offset`` on.

    The other items of ``buf`` stay as they are.

    Blocks: until all items of one ``mpi_send_buf`` are there. Stop (KeyboardInterrupt) ends it;
        the sender is told, and what had come is in ``buf``.
    Args:
        buf: as for ``mpi_send_buf``, but writable: no tuple, no bytes. The two sides may use
            different kinds of buffers.
        offset, count, datatype, comm: as for ``mpi_send_buf``; the sender may send fewer items.
        src: rank of the sender in ``comm``, or ``ANY``.
        tag: the sender's, or ``ANY``. Transfers that match are taken in the order of arrival.
    Returns:
        How many items came, from which rank, with which tag.
    Raises:
        TypeError, ValueError: an argument is wrong; nothing was received.
        TransferError: more items come than ``count``, or items of another type, or the sender has
            failed or was interrupted meanwhile. That transfer is over; a sender that still waits
            gets the same error. Transfers that had been given up earlier are passed over.
        PeerLost: the sender has died before all was there. Otherwise as ``recv``.
    Order, Cost: as ``mpi_send_buf``. Beside ``buf``, memory for at most the sender's window.
    Source: SFM paper, Example 3.
    """
    into = destination(buf, offset, count, datatype)
    template: dict[str, Any] = {"comm": comm.name, "start": 0}
    if src is not ANY:
        template["src"] = comm.rank_to_name(src)
    if tag is not ANY:
        template["tag"] = _checked_tag(tag)
    tidy(sfm)
    m = _opening(sfm, template)
    misfit = _misfit(m, into)
    if m.mtype == "small":
        if misfit:
            raise TransferError(misfit)
        into.put(0, m.end, m.buf)
        return _received(m, src, comm)

    rest, reply = {"src": m.src, "transfer": m.transfer}, _reply(m)
    try:
        if misfit:
            raise TransferError(misfit)
        got = _received(m, src, comm)
        while True:
            into.put(m.start, m.end, m.buf)
            end, last = m.end, m.last
            del m  # its memory goes back before the sender hears that it may send the next
            _say(sfm, reply, end=end, last=last)
            if last:
                return got
            m = sfm.recv(**rest)
            if m.mtype != "large":
                raise TransferError(_given_up(m, m.why))
    except TransferError as error:
        _say(sfm, reply, refused=str(error), last=True)
        if misfit:
            drop_now(sfm, rest)
        raise
    except BaseException as error:
        _say(sfm, reply, failed=repr(error), last=True)
        drop_later(sfm, rest)
        raise


def _opening(sfm: Endpoint, template: dict[str, Any]) -> Message:
    """The first message of a transfer. Those that were given up before are dropped."""
    while True:
        m = sfm.recv(**template)
        if m.mtype == "small":
            return m
        rest, reply = {"src": m.src, "transfer": m.transfer}, _reply(m)
        if is_orphan(sfm, m.transfer, m.src):
            drop_what_came(sfm, rest)
            continue
        if m.mtype == "large":
            if not sfm.peek(**rest, mtype="interrupted"):
                return m
            drop_now(sfm, rest)
        _say(sfm, reply, refused="", last=True)


def _received(m: Message, src: int | None, comm: Namespace) -> Received:
    return Received(m.count, comm.name_to_rank(m.src) if src is ANY else src, m.tag)


def _reply(m: Message) -> dict[str, Any]:
    return {"dest": m.src, "tag": m.tag, "comm": m.comm, "ack": m.transfer}


def _misfit(m: Message, into: Items) -> str:
    """Why what comes cannot go where it should; empty if it can."""
    found, wanted = item_type(m.datatype), into.dtype
    if found != wanted:
        return (
            f"process {m.src!r} sends items of type {found} with tag {m.tag!r}, and {m.dest!r} "
            f"expects {wanted}: name the same datatype on both sides"
        )
    if m.count > into.count:
        return (
            f"process {m.src!r} sends {m.count:,} items with tag {m.tag!r}, and {m.dest!r} takes "
            f"at most {into.count:,}: give mpi_recv_buf a larger count, and a buffer that has it"
        )
    return ""


def _send_chunks(
    sfm: Endpoint,
    to: dict[str, Any],
    about: dict[str, Any],
    items: Items,
    chunk: int,
    window: int,
) -> None:
    acks = {"src": to["dest"], "ack": about["transfer"]}
    flying, sent, opened = 0, 0, False
    try:
        for start, end, last in plan(items.count, chunk):
            if flying == window:
                _await_ack(sfm, acks)
                flying -= 1
            buf = items.get(start, end)
            opened = True
            sfm.send(**to, mtype="large", start=start, end=end, last=last, **about, buf=buf)
            flying, sent = flying + 1, end
        for _ in range(flying):
            _await_ack(sfm, acks)
    except BaseException as error:
        # An interrupted first send may have sent its message or not. If not, this one is the
        # first of the transfer, and the receiver passes it over.
        first = {} if sent else {"start": 0}
        if opened and sent < items.count:
            mtype = "failed" if isinstance(error, Exception) else "interrupted"
            with suppress(SFMError):  # what has ended the transfer is raised, not this
                _say(sfm, to | about, mtype=mtype, why=repr(error), last=True, **first)
        if opened and not isinstance(error, TransferError):
            drop_later(sfm, acks)
        raise


def _await_ack(sfm: Endpoint, acks: dict[str, Any]) -> None:
    m = sfm.recv(**acks)
    if "refused" in m:
        raise TransferError(m.refused)
    if "failed" in m:
        raise TransferError(_given_up(m, m.failed))


def _say(sfm: Endpoint, about: dict[str, Any], /, **more: Any) -> None:
    """Tell the other side how far this one is. Never waits for it, and it may have died.

    An acknowledgement that waited, behind what this process has sent before, would wait for a
    process that may be waiting for the acknowledgement.
    """
    if sfm not in _speakers:
        _speakers[sfm] = sfm.with_buffering(UNBOUNDED)
    with suppress(PeerLost):  # what it had sent before is still received
        _speakers[sfm].send(**about, **more)


def _given_up(m: Message, why: str) -> str:
    """What a message says of the end of its sender's part."""
    what = "was interrupted" if why.startswith("KeyboardInterrupt") else "failed"
    return f"process {m.src!r} {what} in the middle of this transfer, and gave it up: {why}"


def _checked_tag(tag: Any) -> int | str:
    if isinstance(tag, str):
        return tag
    try:
        return operator.index(tag)
    except TypeError:
        raise TypeError(f"a tag is a whole number or a text, not {tag!r}") from None
