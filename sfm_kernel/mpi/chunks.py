"""Chunked transfers: small sends are eager, large ones are sent in acknowledged chunks.

A *transfer* moves ``count`` items from a buffer of one process into a buffer of another. Items that
fit into one chunk are sent in one message, and the sender does not wait. A larger message would
need memory in the receiver besides its buffer. Larger transfers are therefore sent chunk by chunk:
the receiver copies each chunk into its buffer, frees it, and acknowledges it. At most ``window``
chunks are sent and not acknowledged, which limits the memory that the receiver needs. The paper's
protocol sends one chunk and waits for its acknowledgement; with a window, the next chunks are
copied and sent meanwhile.

The messages have these attributes (the paper's names):

=============  ==================================================================================
every message  ``tag``, ``comm`` (the namespace's name); and ``transfer`` or, from the receiver,
               ``ack``: the unique name of the transfer
items          ``mtype`` "small" or "large", ``datatype``, ``count`` (of the transfer), ``start``,
               ``end`` (of this message; 0 is the first item of the transfer), ``last``, ``buf``
the end        ``mtype`` "failed" or "interrupted", ``why``, ``last``: the sender gives up
``ack``        ``end`` and ``last`` of the chunk; or ``refused`` or ``failed``, why, and ``last``
=============  ==================================================================================

A transfer opens with the message whose ``start`` is 0. The receiver takes the first such message
that matches, and then only messages of this ``transfer``. Each side's messages end with exactly one
whose ``last`` is true. So messages of different transfers are never mixed up: of two namespaces or
tags, of a process that sends and receives at the same time, or of several threads.

``mpi_send_buf`` blocks like ``MPI_Send``: it is eager up to one chunk, and otherwise waits until
the receiver has all items. Two processes that first send large buffers to each other and then
receive wait for each other for ever: let one receive first, or send in a thread.

Source: SFM paper, section 3, Example 3. The paper's program waits for any acknowledgement and takes
any message with the right source and tag; these functions also compare the transfer.
"""

from __future__ import annotations

import itertools
import operator
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from numpy.typing import DTypeLike

from sfm_kernel.directory import Name
from sfm_kernel.endpoint import UNBOUNDED
from sfm_kernel.errors import PeerLost, SFMError, TransferError
from sfm_kernel.mpi.items import Items, checked_int, destination, item_type, source
from sfm_kernel.mpi.leftovers import drop_arrived, drop_later, drop_now, tidy

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Context, Endpoint
    from sfm_kernel.message import Message
    from sfm_kernel.mpi.namespace import Namespace

CHUNK_BYTES = 1 << 18
"""Bytes of a chunk, and of the largest eager send."""

WINDOW = 4
"""Number of chunks that may be sent and not acknowledged."""

ANY = None
"""As ``src`` or ``tag`` of a receive: any sender, any tag."""

_counter = itertools.count()
_prefixes: WeakKeyDictionary[Endpoint, str] = WeakKeyDictionary()
_unbounded: WeakKeyDictionary[Endpoint, Context] = WeakKeyDictionary()
"""For each endpoint, the same without a limit of buffering."""


@dataclass(frozen=True)
class Received:
    """The result of a receive: the number of items, the sender's rank, and the tag."""

    count: int
    src: int
    tag: int | str


def mpi_getchunksize(datatype: DTypeLike, chunk_bytes: int = CHUNK_BYTES) -> int:
    """The number of items of this type in a chunk of ``chunk_bytes`` bytes, at least 1."""
    return max(1, checked_int(chunk_bytes, "chunk_bytes", 1) // item_type(datatype).itemsize)


def plan(count: int, chunk: int) -> Iterator[tuple[int, int, bool]]:
    """``(start, end, last)`` of each message that moves ``count`` items, ``chunk`` at a time.

    Every item is in exactly one message. Only the last message may be shorter than a chunk. A
    transfer of no items has one empty message.
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
    """Send ``count`` items of ``buf``, beginning with item ``offset``, to another process.

    Blocks: as ``send`` does if the items fit into one chunk; otherwise until the receiver has all
        of them in its buffer. Stop (KeyboardInterrupt) ends it; the receiver raises TransferError.
    Args:
        sfm: this process's endpoint, or a context of it.
        buf: a list or tuple of simple values, a NumPy array, or another object with the buffer
            protocol. An array of several dimensions is sent as its memory, in C order; an array of
            one dimension may have strides. Bytes can hold items of any type.
        offset, count: numbers of items.
        datatype: the NumPy type of the items, as ``"float64"``.
        dest: the receiver's rank in ``comm``.
        tag: a number or a text that the receiver can select by.
        comm: the namespace. Transfers of different namespaces are independent.
        chunk_bytes: bytes of a chunk, which has at least one item.
        window: number of chunks that may be sent and not acknowledged, at least 1.
    Raises:
        TypeError, ValueError: an argument is wrong. Nothing was sent; the receiver still waits.
        TypeError, OverflowError: a value of a list does not fit the type. Lists are checked chunk
            by chunk; if some chunks have been sent, the receiver raises TransferError.
        TransferError: the receiver has less room, expects another type, or was interrupted.
        PeerLost: the receiver has died. Other errors as ``send``.
    Order, Cost: as ``send``; for each chunk a copy on both sides, a message and an acknowledgement;
        memory for ``window`` chunks.
    Source: SFM paper, Example 3.
    Example:
        >>> from sfm_kernel.mpi import Namespace
        >>> with sfm_kernel.join("doc", name="A") as sfm:
        ...     comm, items = Namespace("doc", ("A",)), [0] * 6
        ...     mpi_send_buf(sfm, [10, 20, 30, 40], 1, 2, "int64", 0, 7, comm)
        ...     mpi_recv_buf(sfm, items, 3, 3, "int64", 0, 7, comm)
        Received(count=2, src=0, tag=7)
        >>> items
        [0, 0, 0, 20, 30, 0]
    """
    items = source(buf, offset, count, datatype)
    chunk = mpi_getchunksize(datatype, chunk_bytes)
    window = checked_int(window, "window", 1)
    tag = _checked_tag(tag)
    to: dict[str, Any] = {"dest": comm.rank_to_name(dest), "tag": tag}
    about: dict[str, Any] = {
        "comm": comm.name,
        "transfer": _new_transfer(sfm),
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
    """Receive at most ``count`` items into ``buf``, beginning with item ``offset``.

    The other items of ``buf`` are unchanged.

    Blocks: until all items of one ``mpi_send_buf`` have arrived. Stop (KeyboardInterrupt) ends it;
        the sender raises TransferError, and ``buf`` has the items that had arrived.
    Args:
        sfm: this process's endpoint, or a context of it.
        buf: as for ``mpi_send_buf``, but writable: not a tuple or bytes. The two sides may use
            different kinds of buffers.
        offset, count, datatype, comm: as for ``mpi_send_buf``; the sender may send fewer items.
        src: the sender's rank in ``comm``, or ``ANY``.
        tag: the sender's tag, or ``ANY``. Matching transfers are taken in the order of arrival.
    Returns:
        The number of items, the sender's rank, and the tag.
    Raises:
        TypeError, ValueError: an argument is wrong; nothing was received.
        TransferError: the sender sends more than ``count`` items or another type, has failed or was
            interrupted. The transfer is over; a sender that still waits raises the same error.
            Transfers that were given up before they began are skipped.
        PeerLost: the sender has died before all items arrived. Other errors as ``recv``.
    Order, Cost: as ``mpi_send_buf``. Besides ``buf``, memory for the sender's window.
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
        result = _received(m, src, comm)
        while True:
            into.put(m.start, m.end, m.buf)
            end, last = m.end, m.last
            del m  # free its memory before the sender sends the next chunk
            _send_now(sfm, reply, end=end, last=last)
            if last:
                return result
            m = sfm.recv(**rest)
            if m.mtype != "large":
                raise TransferError(_given_up(m, m.why))
    except TransferError as error:
        _send_now(sfm, reply, refused=str(error), last=True)
        if misfit:
            drop_now(sfm, rest)
        raise
    except BaseException as error:
        _send_now(sfm, reply, failed=repr(error), last=True)
        drop_later(sfm, rest)
        raise


def _new_transfer(sfm: Endpoint) -> str:
    """The name of a transfer, used once; it identifies the incarnation of the sending process."""
    if sfm not in _prefixes:
        _prefixes[sfm] = getattr(sfm, "uid", None) or secrets.token_hex(16)
    return f"{_prefixes[sfm][:12]}-{next(_counter)}"


def _is_orphan(sfm: Endpoint, transfer: str, sender: Name) -> bool:
    """Whether the sender is dead and another process, which does not know this transfer, has its
    name. False for a context, which does not know the members of the world."""
    if not hasattr(sfm, "members"):
        return False
    uids = [member.uid for member in sfm.members() if member.name == sender]
    return not any(uid.startswith(transfer.partition("-")[0]) for uid in uids)


def _opening(sfm: Endpoint, template: dict[str, Any]) -> Message:
    """Receive the first message of a transfer; drop transfers that were given up before it."""
    while True:
        m = sfm.recv(**template)
        if m.mtype == "small":
            return m
        rest, reply = {"src": m.src, "transfer": m.transfer}, _reply(m)
        if _is_orphan(sfm, m.transfer, m.src):
            drop_arrived(sfm, rest)
            continue
        if m.mtype == "large":
            if not sfm.peek(**rest, mtype="interrupted"):
                return m
            drop_now(sfm, rest)
        _send_now(sfm, reply, refused="", last=True)


def _received(m: Message, src: int | None, comm: Namespace) -> Received:
    return Received(m.count, comm.name_to_rank(m.src) if src is ANY else src, m.tag)


def _reply(m: Message) -> dict[str, Any]:
    return {"dest": m.src, "tag": m.tag, "comm": m.comm, "ack": m.transfer}


def _misfit(m: Message, into: Items) -> str:
    """The reason why the items do not fit into the buffer; "" if they do."""
    sent, expected = item_type(m.datatype), into.dtype
    if sent != expected:
        return (
            f"process {m.src!r} sends items of type {sent} with tag {m.tag!r}, and {m.dest!r} "
            f"expects {expected}: name the same datatype on both sides"
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
    unacknowledged, sent, opened = 0, 0, False
    try:
        for start, end, last in plan(items.count, chunk):
            if unacknowledged == window:
                _await_ack(sfm, acks)
                unacknowledged -= 1
            buf = items.get(start, end)
            opened = True
            sfm.send(**to, mtype="large", start=start, end=end, last=last, **about, buf=buf)
            unacknowledged, sent = unacknowledged + 1, end
        for _ in range(unacknowledged):
            _await_ack(sfm, acks)
    except BaseException as error:
        # An interrupted first send may not have sent its message. Then this one is the first of the
        # transfer, and the receiver skips it.
        first = {} if sent else {"start": 0}
        if opened and sent < items.count:
            mtype = "failed" if isinstance(error, Exception) else "interrupted"
            with suppress(SFMError):  # the error that has ended the transfer is raised
                _send_now(sfm, to | about, mtype=mtype, why=repr(error), last=True, **first)
        if opened and not isinstance(error, TransferError):
            drop_later(sfm, acks)
        raise


def _await_ack(sfm: Endpoint, acks: dict[str, Any]) -> None:
    m = sfm.recv(**acks)
    if "refused" in m:
        raise TransferError(m.refused)
    if "failed" in m:
        raise TransferError(_given_up(m, m.failed))


def _send_now(sfm: Endpoint, about: dict[str, Any], /, **more: Any) -> None:
    """Send the other side a report, without waiting; the other side may have died.

    If an acknowledgement waited behind earlier sends of this process, it could wait for a process
    that waits for the acknowledgement.
    """
    if sfm not in _unbounded:
        _unbounded[sfm] = sfm.with_buffering(UNBOUNDED)
    with suppress(PeerLost):  # the messages that it has sent are still received
        _unbounded[sfm].send(**about, **more)


def _given_up(m: Message, why: str) -> str:
    """The text of the error for a message in which its sender gives up the transfer."""
    verb = "was interrupted" if why.startswith("KeyboardInterrupt") else "failed"
    return f"process {m.src!r} {verb} in the middle of this transfer, and gave it up: {why}"


def _checked_tag(tag: Any) -> int | str:
    if isinstance(tag, str):
        return tag
    try:
        return operator.index(tag)
    except TypeError:
        raise TypeError(f"a tag is a whole number or a text, not {tag!r}") from None
