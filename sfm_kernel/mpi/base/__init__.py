"""What every part of ``sfm_kernel.mpi.MPI`` stands on.

handle        Handle: what communicators, datatypes, requests … have in common
constants     the integers
codes         error codes: names, texts, and those that a program adds
errors        Exception, the calls for error codes, ``fail``, ``translated``
errhandler    Errhandler, and the mixin of what has one
info          Info
keyvals       attributes of communicators, datatypes and windows
pickles       Pickle: how objects become bytes
buffered      attached buffers, for buffered sends
general       Init … Finalize, versions, clocks, grids, memory
sessions      Session
not_offered   what MPI has and this package has not: each name says so when it is used
options       what a program has set in ``mpi4py.rc``
"""
