"""ZeroMQ, as the directory between machines uses it: one server and its clients.

    curve      encryption, and the check of clients' keys
    admission  bounds the number of strangers' connections
    sockets    ZeroMQ in an event loop, and the limits of strangers

(Messages between processes go over ZeroMQ in the native core, see ``sfm_kernel/transport/zmq.py``.)
"""
