"""ZeroMQ, as the directory between machines uses it: one server, and those who ask it.

    curve     encryption, and who may connect
    door      how many strangers may stand in front of a socket
    limits    what a stranger can take of this process
    line      what a connection's monitor tells: up, down, refused
    sockets   ZeroMQ in an event loop
    wake      wakes one

(Messages between processes go over TCP, see ``sfm_kernel/transport/tcp.py``: what ZeroMQ does
before the first one takes five round trips, and its frames cannot be forwarded unread.)
"""
