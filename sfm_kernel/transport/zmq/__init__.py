"""Messages through ZeroMQ: between machines over TCP, encrypted, for whoever has the world's key.

In a world of one machine nothing listens, unless ``SFM_TRANSPORT`` asks for it: "zmq" goes through
Unix sockets in the world's folder, which nobody else can enter; "tcp" as between machines.

Every process listens with one ROUTER, and sends through one DEALER for each peer, made on first
use. Messages and acknowledgements never flow back through a connection: a process only receives
from its ROUTER and only sends through its DEALERs. So a killed sender's connection ends after all
that its kernel still had, and a thread may send while another one polls.

    identity    where this process is reached, and what makes it a member
    curve       encryption, and who may connect
    door        how many strangers may stand in front of a socket
    limits      what a stranger can take of this process
    line        what a connection's monitor tells: up, down, refused
    network     the thread that opens links, watches the lines and says goodbye
    transport   the public class
    sockets     ZeroMQ in an event loop
    wake        wakes one

What happens for each message happens in the native core (``native/src/zmq``), which uses the
sockets directly: no Python runs and no lock of Python's is needed, so that a process that computes
still takes in and acknowledges, and an interrupt finds a message whole. A thread that waits for a
message takes it from the socket itself.

ZeroMQ neither duplicates nor reorders, but drops what is in flight when a connection breaks.
Messages are therefore numbered for each pair; a gap makes the peer lost and is never silent. Large
ones go in parts, of which two may be under way.

Importing zmq takes 50 ms and its context two threads, so neither happens before somebody
connects or a route is asked for. Until then a plain listening socket holds the address.
"""

from sfm_kernel.transport.zmq.transport import ZmqTransport

__all__ = ["ZmqTransport"]
