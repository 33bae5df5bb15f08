"""What stands for ``mpi4py.util``.

dtlib   datatypes of NumPy and of MPI
pkl5    communicators whose objects keep their buffers apart
pool    the interface of ``multiprocessing.pool``
sync    counters, locks and conditions that several processes share
"""
