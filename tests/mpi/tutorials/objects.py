"""Any object can be broadcast, scattered and gathered: here a configuration and word counts."""

from collections import Counter

from mpi4py import MPI

comm = MPI.COMM_WORLD
config = {"ignore": {"the", "a"}, "least": 2} if comm.rank == 0 else None
config = comm.bcast(config, root=0)
lines = None
if comm.rank == 0:
    text = "the cat saw a dog and the dog saw the cat and a bird saw the dog"
    lines = [text.split()[rank :: comm.size] for rank in range(comm.size)]
counts = Counter(word for word in comm.scatter(lines, root=0) if word not in config["ignore"])
total = comm.reduce(counts, op=lambda first, second: first + second, root=0)
if comm.rank == 0:
    print(sorted((word, count) for word, count in total.items() if count >= config["least"]))
