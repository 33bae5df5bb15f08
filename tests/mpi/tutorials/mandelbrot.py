"""The Mandelbrot set: rows are tasks that workers fetch, since some take longer than others."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
width, height, most = 60, 40, 50
ROW, STOP = 1, 2


def compute(y: int) -> np.ndarray:
    c = np.linspace(-2, 1, width) + 1j * (-1 + 2 * y / (height - 1))
    z, steps = np.zeros(width, complex), np.zeros(width, "i")
    for _ in range(most):
        inside = abs(z) <= 2
        steps += inside
        z[inside] = z[inside] ** 2 + c[inside]
    return steps


if comm.rank == 0:
    image, status = np.zeros((height, width), "i"), MPI.Status()
    rows = list(range(height))
    if comm.size == 1:
        for y in rows:
            image[y] = compute(y)
    under_way = {}
    for worker in range(1, comm.size):
        under_way[worker] = rows.pop()
        comm.send(under_way[worker], worker, ROW)
    while under_way:
        line = np.empty(width, "i")
        comm.Recv(line, MPI.ANY_SOURCE, ROW, status)
        worker = status.Get_source()
        image[under_way.pop(worker)] = line
        if rows:
            under_way[worker] = rows.pop()
            comm.send(under_way[worker], worker, ROW)
    for worker in range(1, comm.size):
        comm.send(None, worker, STOP)
    expected = np.array([compute(y) for y in range(height)])
    print(
        "image is right:", np.array_equal(image, expected), "points inside:", (image == most).sum()
    )
else:
    status = MPI.Status()
    while True:
        y = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        if status.tag == STOP:
            break
        comm.Send(compute(y), dest=0, tag=ROW)
