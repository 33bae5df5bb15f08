"""Messages over TCP: between machines, and everywhere with ``SFM_TRANSPORT=zmq``.

Every process listens with one ROUTER, and sends through one DEALER for each peer, made on first
use. Messages and acknowledgements never flow back through a connection: a process only receives
from its ROUTER and only sends through its DEALERs. So a killed sender's connection ends after all
that its kernel still had, and a thread may send while another one polls.

    identity    where this process is reached, and what makes it a member
    curve       encryption, and who may connect
    line        what a connection's monitor tells: up, down, refused
    link        the sending side of one peer: outbox, numbering
    network     the thread that receives, acknowledges and watches the lines
    wake        wakes it
    sockets     ZeroMQ in an event loop
    transport   the public class

ZeroMQ neither duplicates nor reorders, but drops what is in flight when a connection breaks.
Messages are therefore numbered for each pair; a gap makes the peer lost and is never silent.

Importing zmq takes 50 ms and its context two threads, so neither happens before somebody
connects or a route is asked for. Until then a plain listening socket holds the address.
"""

from sfm_kernel.transport.zmq.transport import ZmqTransport

__all__ = ["ZmqTransport"]
