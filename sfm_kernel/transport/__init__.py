"""Transports of packets: within a process, through shared memory, and between machines over ZeroMQ.

``base`` holds the contract, which ``inproc``, ``shm`` and ``zmq`` implement.
"""
