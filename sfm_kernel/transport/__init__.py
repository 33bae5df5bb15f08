"""Transports of packets: within a process, through shared memory, and between machines over TCP.

``base`` holds the contract; each other module is one implementation.
"""
