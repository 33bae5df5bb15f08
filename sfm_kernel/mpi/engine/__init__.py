"""How MPI's calls happen: posted receives, transfers under way, and who waits for them.

process        this process in MPI: its endpoint, and COMM_WORLD's processes
communicator   what the handles of one communicator share
operation      what a request waits for
receives       receives that were posted, in their order
sends          sends: eager, synchronous, in chunks
progress       the engine: moves all of them on, and waits
hidden         messages between members that no user sees
"""
