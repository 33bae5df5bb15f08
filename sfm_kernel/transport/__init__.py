"""Ways for packets: within a process, through shared memory, and over ZeroMQ.

``base`` holds the contract; each other module is one implementation.
"""
