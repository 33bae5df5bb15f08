"""A master hands out tasks, one at a time, to workers that ask: the tag says what a message is."""

from mpi4py import MPI

READY, START, DONE, EXIT = range(4)

comm = MPI.COMM_WORLD
status = MPI.Status()
tasks = list(range(20))

if comm.size == 1:
    print("alone:", sum(task**2 for task in tasks))
elif comm.rank == 0:
    todo = iter(tasks)
    results, closed = {}, 0
    while closed < comm.size - 1:
        data = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        worker, tag = status.Get_source(), status.Get_tag()
        if tag == READY:
            task = next(todo, None)
            comm.send(task, dest=worker, tag=EXIT if task is None else START)
        elif tag == DONE:
            task, result = data
            results[task] = result
        elif tag == EXIT:
            closed += 1
    print("all done:", len(results) == len(tasks), sum(results.values()))
else:
    while True:
        comm.send(None, dest=0, tag=READY)
        task = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == EXIT:
            break
        comm.send((task, task**2), dest=0, tag=DONE)
    comm.send(None, dest=0, tag=EXIT)
