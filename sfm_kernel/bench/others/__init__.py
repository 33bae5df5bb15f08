"""What users would pick instead of SFM, measured beside it.

What can run between two engines (sockets, pipes, pyzmq) does so. mpi4py and ipyparallel bring
processes of their own; ``crew`` starts them, and parks them while others are measured.
"""
