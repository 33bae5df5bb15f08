"""Transports of packets: within a process, through shared memory, and between machines over TCP.

``base`` holds the contract, which ``inproc``, ``shm`` and ``tcp`` implement.
"""
