"""ZeroMQ, as the directory between machines uses it: one server and its clients.

    curve      encryption, and the check of clients' keys
    admission  bounds the number of strangers' connections
    monitor    the state of a connection: up, down, refused
    sockets    ZeroMQ in an event loop, and the limits of strangers

(Messages between processes go over TCP, see ``sfm_kernel/transport/tcp.py``: what ZeroMQ does
before the first one takes five round trips, and its frames cannot be forwarded unread.)
"""
